from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from corpusforge.errors import ManifestInvalid, RecipeInvalid
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.families import adopt_vocab, load_vocab
from corpusforge.tokens.vocab import Specials, Vocab, check_size
from corpusforge.tokens.wordpiece import WordPiece, arrange

PIECES = ["a", "b", "é", "中", "hello", "world", "##a", "##b", "##ing", "!", "[", "]", "mask", "\u2028x"[1:], "\u00df"]


def vocabulary(unused: int = 99, size: int = 128, **settings: bool) -> Vocab:
    return arrange(PIECES, size, unused, BertSegmentation(**settings))


def write(vocab: Vocab, folder: Path, *, without: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    for name, data in vocab.save_files().items():
        if name != without:
            (folder / name).write_bytes(data)
    return folder


def edit(folder: Path, change) -> Path:
    raw = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    change(raw)
    (folder / "tokenizer.json").write_text(json.dumps(raw), "utf-8")
    return folder


@pytest.mark.parametrize(
    "vocab",
    [
        vocabulary(),
        vocabulary(3, 64),
        vocabulary(lowercase=False),
        vocabulary(strip_accents=False, isolate_chinese=False),
    ],
    ids=["bert", "compact", "cased", "accents"],
)
def test_saved_and_loaded_is_the_same(tmp_path: Path, vocab: Vocab) -> None:
    loaded = load_vocab(str(write(vocab, tmp_path / "v")))
    assert loaded == vocab
    assert loaded.digest == vocab.digest


def test_vocab_txt_alone_is_enough(tmp_path: Path) -> None:
    vocab = vocabulary(lowercase=False)
    folder = write(vocab, tmp_path / "v", without="tokenizer.json")
    assert load_vocab(str(folder)) == vocab


def test_the_digest_covers_everything_that_decides_ids() -> None:
    vocab = vocabulary()
    other_order = (*vocab.tokens[:-2], vocab.tokens[-1], vocab.tokens[-2])
    others = [
        vocabulary(lowercase=False),
        dataclasses.replace(vocab, tokens=other_order),
        dataclasses.replace(vocab, family=WordPiece(max_word_characters=200)),
        vocab.padded(192),
    ]
    assert len({v.digest for v in [vocab, *others]}) == 5
    assert vocabulary().digest == vocab.digest


@pytest.mark.parametrize("vocab", [vocabulary(), vocabulary(3, 64, lowercase=False)], ids=["bert", "compact-cased"])
def test_transformers_loads_the_folder(tmp_path: Path, vocab: Vocab) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(write(vocab, tmp_path / "v")))
    s, ids = vocab.specials, {token: i for i, token in enumerate(vocab.tokens)}
    assert len(tokenizer) == vocab.size
    assert tokenizer.get_vocab() == ids
    special_ids = [getattr(tokenizer, f"{key}_token_id") for key in ("pad", "unk", "cls", "sep", "mask")]
    assert special_ids == list(dataclasses.astuple(s))
    assert tokenizer("aba 中!").input_ids == [s.cls, ids["a"], ids["##b"], ids["##a"], ids["中"], ids["!"], s.sep]
    pair, lowercase = tokenizer("a", "b é"), vocab.family.segmentation.lowercase
    # Uncased text loses its accent, and this vocabulary has no plain e.
    assert pair.input_ids == [
        s.cls,
        ids["a"],
        s.sep,
        ids["b"],
        s.unk if lowercase else ids["é"],
        s.sep,
    ]
    assert pair.token_type_ids == [0, 0, 0, 1, 1, 1]
    assert tokenizer("[MASK]").input_ids == [s.cls, s.mask, s.sep]


def test_what_transformers_saves_is_adopted(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    odd = arrange(PIECES, 100, 3, BertSegmentation(False))
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(write(odd, tmp_path / "v")))
    tokenizer.add_special_tokens({"additional_special_tokens": ["[ENT]"]})
    tokenizer.save_pretrained(str(tmp_path / "again"))
    vocab = adopt_vocab(str(tmp_path / "again"))
    assert vocab.size == 128
    assert vocab.tokens[:101] == (*odd.tokens, "[ENT]")
    assert vocab.specials == odd.specials
    assert 100 in vocab.unused  # no text produces it, and masking never draws it
    assert vocab.tokens[-1] == f"[unused{len(vocab.unused) - 2}]"
    assert not vocab.family.segmentation.lowercase


@pytest.mark.parametrize("token", ["mask", "中", "!"])
def test_specials_that_text_could_produce_are_refused(token: str) -> None:
    tokens = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", token)
    with pytest.raises(ManifestInvalid, match="plain text could produce"):
        Vocab(tokens, Specials(0, 1, 2, 3, 4), (), WordPiece())


def test_a_token_occurs_once() -> None:
    with pytest.raises(ManifestInvalid, match="twice"):
        arrange(["a", "a"], 64, 0, BertSegmentation())


def test_sizes() -> None:
    check_size(30_528)
    check_size(30_522, allow_any_size=True)
    with pytest.raises(RecipeInvalid, match="30,464 or 30,528, or pass --allow-any-size"):
        check_size(30_522)
