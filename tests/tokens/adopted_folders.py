"""Folders as people download them, written by the classes of `transformers`, adopted and padded to 64."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from corpusforge.tokens import sentencepiece_file as files
from corpusforge.tokens.families import adopt_vocab
from corpusforge.tokens.gpt2_split import LETTERS
from corpusforge.tokens.vocab import Vocab
from tests.tokens.transformers_folders import TEXTS

VERSION = int(transformers.__version__.split(".")[0])

BERT = ["[PAD]", *(f"[unused{k}]" for k in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abdeiknorst.,!東",
        "##n", "##a", "##ed", "naked", "tin", "##e", "##r", "##s", "don", "'"]  # fmt: skip
MERGES = [("n", "a"), ("na", "k"), ("Ġ", "o"), ("Ġo", "n"), ("i", "n"), ("t", "in"), ("Ġ", "Ġ")]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", *LETTERS, *(a + b for a, b in MERGES), "madeupword0000", "<mask>"]
ALBERT = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "▁", *"abdeiknorst.,!", "▁tin", "▁on", "ak", "ed", "▁n"]


def bert_vocab_txt(folder: Path) -> Any:
    """As google-research/bert publishes it: a vocab.txt alone, uncased."""
    return _bert(folder, do_lower_case=True)


def bert_saved(folder: Path) -> Any:
    """As a download from the hub: saved by the class, cased, with its tokenizer.json."""
    tokenizer = _bert(folder, do_lower_case=False)
    tokenizer.save_pretrained(str(folder))
    return tokenizer


def roberta_saved(folder: Path) -> Any:
    """Saved by the class: tokenizer.json, vocab.json, merges.txt."""
    tokenizer = _roberta(folder)
    tokenizer.save_pretrained(str(folder))
    return tokenizer


def roberta_native(folder: Path) -> Any:
    """vocab.json and merges.txt alone, as facebook/roberta-base had them at first."""
    return _roberta(folder)


def albert_saved(folder: Path) -> Any:
    """Saved by the class: tokenizer.json, and a spiece.model where the class has one."""
    tokenizer = _albert(folder)
    tokenizer.save_pretrained(str(folder))
    return tokenizer


KINDS: dict[str, Callable[[Path], Any]] = {
    "bert, vocab.txt alone": bert_vocab_txt,
    "bert, saved": bert_saved,
    "roberta, saved": roberta_saved,
    "roberta, its two files alone": roberta_native,
    "albert, saved": albert_saved,
}


def check(kind: str, folder: Path) -> None:
    """A folder of this kind, adopted: its ids as they were, padded to 64, and the same ids for text."""
    (folder / "theirs").mkdir()
    original = KINDS[kind](folder / "theirs")
    vocab = adopt_vocab(str(folder / "theirs"))
    table = original.get_vocab()
    assert vocab.size % 64 == 0 and vocab.size - len(table) < 64
    assert {token: vocab.tokens.index(token) for token in table} == table
    assert all(vocab.tokens[i].startswith("[unused") and i in vocab.unused for i in range(len(table), vocab.size))
    for role, id_ in dataclasses.asdict(vocab.specials).items():
        assert getattr(original, f"{role}_token_id") == id_, role
    ours = _loaded(vocab, folder / "ours")
    assert len(ours) == vocab.size
    library = vocab.library_tokenizer(added=False)
    for text in TEXTS:
        assert library.encode(text).ids == original(text, add_special_tokens=False).input_ids, text
        assert ours(text).input_ids == original(text).input_ids, text


def _loaded(vocab: Vocab, folder: Path) -> Any:
    folder.mkdir()
    for name, data in vocab.save_files().items():
        (folder / name).write_bytes(data)
    return transformers.AutoTokenizer.from_pretrained(str(folder))


def _bert(folder: Path, **settings: Any) -> Any:
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in BERT), "utf-8")
    path = str(folder / "vocab.txt")
    if VERSION == 4:
        return transformers.BertTokenizerFast(vocab_file=path, **settings)
    return transformers.BertTokenizer(vocab=path, **settings)


def _roberta(folder: Path) -> Any:
    ids = {token: i for i, token in enumerate(ROBERTA)}
    (folder / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False), "utf-8")
    merges = "".join(f"{a} {b}\n" for a, b in MERGES)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}", "utf-8")
    paths = (str(folder / "vocab.json"), str(folder / "merges.txt"))
    if VERSION == 4:
        return transformers.RobertaTokenizerFast(vocab_file=paths[0], merges_file=paths[1])
    return transformers.RobertaTokenizer(vocab=paths[0], merges=paths[1])


def _albert(folder: Path) -> Any:
    scores = [0.0] * 5 + [-1.0 - 0.1 * k for k in range(len(ALBERT) - 5)]
    pieces = list(zip(ALBERT, scores, strict=True))
    if VERSION == 5:
        return transformers.AlbertTokenizer(vocab=pieces)
    # 4 makes no tokenizer of pieces; this is the tokenizer.json of albert-base-v2 but for its character map.
    tokenizer = Tokenizer(models.Unigram(pieces, 1, False))
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    steps = [*quotes, normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.AlbertTokenizerFast(tokenizer_object=tokenizer)


def converted_by_4(folder: Path) -> None:
    """The conversion of a spiece.model alone by transformers 4: words are split at spaces only, another family."""
    scores = [0.0] * 5 + [-1.0 - 0.1 * k for k in range(len(ALBERT) - 5)]
    kinds = [files.CONTROL, files.UNKNOWN, *[files.CONTROL] * 3, *[files.NORMAL] * (len(ALBERT) - 5)]
    model = files.Model(tuple(ALBERT), tuple(scores), tuple(kinds), "unigram", b"")
    (folder / "spiece.model").write_bytes(files.write_model(model, {"pad": 0, "unk": 1, "bos": 2, "eos": 3}))
    transformers.AlbertTokenizerFast(vocab_file=str(folder / "spiece.model")).save_pretrained(str(folder))
