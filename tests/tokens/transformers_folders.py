"""What every vocabulary folder must do in `transformers`, of version 4 and of version 5."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from corpusforge.tokens.families import load_vocab
from corpusforge.tokens.vocab import Vocab
from tests.tokens.small_vocabularies import made_up_text, of_family

TEXTS = [
    "naked sin rakes on. Tin Öre, brüder!",
    "DON'T, he said (twice): 3.14 + x_y = ?",
    "東京 tower\tand\nlines   with  spaces ",
    "e\u0301t\u00e9 ﬁn ½ ☃ \U0001f600 \u200b\u00a0\u3000x",
    "",
    "a" * 300,
    *made_up_text().to_pylist()[:5],
]


def write(vocab: Vocab, folder: Path) -> Path:
    """The vocabulary's folder on disk."""
    folder.mkdir()
    for name, data in vocab.save_files().items():
        (folder / name).write_bytes(data)
    return folder


def check_folder(name: str, folder: Path) -> None:
    """A vocabulary of this family written, loaded by AutoTokenizer, and everything compared."""
    import transformers

    vocab = of_family(name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(write(vocab, folder / "v")))
    check_class(tokenizer, folder / "v")
    check_ids(tokenizer, vocab)
    check_frames(tokenizer, vocab)
    check_round_trip(tokenizer, vocab)
    tokenizer.save_pretrained(str(folder / "again"))
    assert load_vocab(str(folder / "again")) == vocab


def check_class(tokenizer: Any, folder: Path) -> None:
    """The class is the one that tokenizer_config.json names; transformers 4 adds "Fast" to it."""
    named = json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"]
    class_name = type(tokenizer).__name__
    # transformers 5 has TokenizersBackend where 4 has PreTrainedTokenizerFast.
    assert class_name in {named, f"{named}Fast", "TokenizersBackend" if named == "PreTrainedTokenizerFast" else named}


def check_ids(tokenizer: Any, vocab: Vocab) -> None:
    """The same tokens with the same ids, and texts to the same ids."""
    assert len(tokenizer) == vocab.size
    assert tokenizer.get_vocab() == {token: i for i, token in enumerate(vocab.tokens)}
    for role, id_ in dataclasses.asdict(vocab.specials).items():
        assert getattr(tokenizer, f"{role}_token_id") == id_, role
    library = vocab.library_tokenizer(added=False)
    for text in TEXTS:
        assert tokenizer(text, add_special_tokens=False).input_ids == library.encode(text).ids, text


def check_frames(tokenizer: Any, vocab: Vocab) -> None:
    """[CLS] A [SEP] B [SEP], or <s> A </s></s> B </s>, with the segments of the family."""
    first, second = ("on. naked", "tin ore")
    a, b = (tokenizer(text, add_special_tokens=False).input_ids for text in (first, second))
    cls, sep = [vocab.specials.cls], [vocab.specials.sep]
    assert tokenizer(first).input_ids == [*cls, *a, *sep]
    pair = tokenizer(first, second, return_token_type_ids=True)
    if vocab.family.name == "bpe":
        assert (vocab.tokens[cls[0]], vocab.tokens[sep[0]]) == ("<s>", "</s>")
        assert pair.input_ids == [*cls, *a, *sep, *sep, *b, *sep]
        assert set(pair.token_type_ids) == {0}
    else:
        assert (vocab.tokens[cls[0]], vocab.tokens[sep[0]]) == ("[CLS]", "[SEP]")
        assert pair.input_ids == [*cls, *a, *sep, *b, *sep]
        assert pair.token_type_ids == [0] * (len(a) + 2) + [1] * (len(b) + 1)


def check_round_trip(tokenizer: Any, vocab: Vocab) -> None:
    """Decoded ids are the text: as it was for bytes, else with words in lower case without accents."""
    for text in made_up_text().to_pylist()[:5]:
        decoded = tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True)
        wanted = text if vocab.family.name == "bpe" else text.replace("ü", "u")
        assert decoded.replace(" .", ".") == wanted
    mask = vocab.tokens[vocab.specials.mask]
    assert vocab.specials.mask in tokenizer(f"tin {mask} ore").input_ids
