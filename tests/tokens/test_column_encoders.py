"""Encoding by columns gives the library's ids: vocabularies made to be awkward, and the words of real text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import sections
from corpusforge.schemas import DOCUMENTS
from corpusforge.tokens import byte_bpe, encode, sentencepiece_family, wordpiece
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.column_encoders import LONGEST, WordParts
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.gpt2_split import GPT2
from corpusforge.tokens.sentencepiece_family import ALBERT, SentencePiece
from corpusforge.tokens.vocab import ROLES, Vocab, with_roles
from corpusforge.tokens.wordpiece import WordPiece

LETTERS = "abcé東😀"
words = st.lists(st.text(LETTERS + "#x", max_size=12) | st.text("ab", min_size=30, max_size=LONGEST + 5), max_size=12)
strings = st.text(LETTERS, min_size=1, max_size=4)


def check(vocab: Vocab, texts: Sequence[str]) -> int:
    """Ids are the library's, word by word; returns how many words were left to it."""
    ids, lengths, left = vocab.family.column_encoder(vocab).encode(pa.array(texts, pa.string()))
    library = vocab.family.word_tokenizer(vocab)
    parts = np.split(ids, np.cumsum(lengths)[:-1]) if len(texts) else []
    for text, part, given_up in zip(texts, parts, left.tolist(), strict=True):
        expected = library.encode([text], is_pretokenized=True, add_special_tokens=False).ids
        assert part.tolist() == ([] if given_up else expected), text
    return int(left.sum())


def named(tokens: Sequence[str], family: object, names: Sequence[str]) -> Vocab:
    distinct = dict.fromkeys([*names, *tokens])
    return with_roles(list(distinct), family, dict(zip(ROLES, names, strict=True)))  # type: ignore[arg-type]


@given(st.lists(strings | strings.map("##{}".format) | st.just("##"), max_size=25), st.integers(3, 60), words)
def test_longest_match(tokens: list[str], longest: int, texts: list[str]) -> None:
    check(named(tokens, WordPiece(UNCASED, longest), wordpiece.NAMES), texts)


@given(
    st.dictionaries(
        strings | st.sampled_from(LETTERS), st.sampled_from([-0.1, -0.2, -0.3, -1.0, -2.0, -3.0, -7.7]), max_size=25
    ),
    st.booleans(),
    words,
)
def test_best_path_with_equal_sums(scores: dict[str, float], letters: bool, texts: list[str]) -> None:
    pieces = {**dict.fromkeys(LETTERS if letters else "", -9.0), **scores}
    names = sentencepiece_family.NAMES
    family = SentencePiece("unigram", ALBERT, (*[0.0] * len(names), *pieces.values()))
    check(named([*pieces], family, names), texts)


MIXED = "ab1,▁é☃"
mixed = st.text(MIXED + "%", min_size=1, max_size=12)
pieces = st.lists(st.text(MIXED, min_size=1, max_size=3), max_size=15, unique=True)


@given(pieces, st.lists(st.sampled_from("ab1,▁é"), unique=True), st.booleans(), st.data(), st.lists(mixed, max_size=12))
def test_best_path_by_parts(
    tokens: list[str], letters: list[str], exact: bool, data: st.DataObject, texts: list[str]
) -> None:
    distinct = list(dict.fromkeys([*letters, *tokens]))
    values = st.sampled_from([-1.0, -1.5, -2.0, -3.25] if exact else [-0.1, -0.2, -0.3, -1.7])
    names = sentencepiece_family.NAMES
    family = SentencePiece("unigram", ALBERT, (*[0.0] * len(names), *(data.draw(values) for _ in distinct)))
    vocab = named(distinct, family, names)
    assert isinstance(family.column_encoder(vocab), WordParts) == (exact or not distinct)
    check(vocab, texts)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12), st.lists(mixed, max_size=12))
def test_merges_by_parts(pairs: list[tuple[int, int]], texts: list[str]) -> None:
    merges = merges_of(pairs, "ab1,▁é")
    family = SentencePiece("bpe", ALBERT, merges=tuple(merges))
    tokens = [*"ab1,▁é", *(left + right for left, right in merges)]
    check(named(tokens, family, sentencepiece_family.NAMES), texts)


def merges_of(numbers: list[tuple[int, int]], symbols: Sequence[str]) -> list[tuple[str, str]]:
    """Merges of existing symbols, in any order, some twice, some with an existing result."""
    known, merges = [*symbols], []
    for left, right in numbers:
        merges.append((known[left % len(known)], known[right % len(known)]))
        known.append("".join(merges[-1]))
    return merges


numbers = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=30)


@given(numbers, st.randoms(use_true_random=False), words)
def test_merges_of_bytes(pairs: list[tuple[int, int]], random: object, texts: list[str]) -> None:
    merges = merges_of(pairs, "abÃ©æĿ±")
    random.shuffle(merges)  # type: ignore[attr-defined]
    check(byte_bpe.arrange(merges, 384), [text for text in texts if text])


@given(numbers, st.randoms(use_true_random=False), words)
def test_merges_of_characters(pairs: list[tuple[int, int]], random: object, texts: list[str]) -> None:
    merges = merges_of(pairs, "abé東")
    random.shuffle(merges)  # type: ignore[attr-defined]
    family = SentencePiece("bpe", ALBERT, merges=tuple(merges))
    tokens = [*"abé東c", *(left + right for left, right in merges)]
    check(named(tokens, family, sentencepiece_family.NAMES), texts)


LEARNED: dict[str, Callable[[pa.Table], Vocab]] = {
    "wordpiece": lambda counts: wordpiece.learn(counts, sections.Vocab(size=2048, lowercase=True, alphabet=1000)).vocab,
    "bpe": lambda counts: byte_bpe.learn(counts, sections.Vocab(size=4096, unused=0)).vocab,
    "unigram": lambda counts: (
        sentencepiece_family.learn(counts, sections.Vocab(model="unigram", size=4096, coverage=0.9995)).vocab
    ),
    "sentencepiece-bpe": lambda counts: (
        sentencepiece_family.learn(counts, sections.Vocab(model="sentencepiece-bpe", size=4096, coverage=0.9995)).vocab
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text_en/novels-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
@pytest.mark.parametrize("family", sorted(LEARNED))
def test_words_of_real_text(shared_data: Path, family: str, name: str) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(20), strict=False)]
    segmentation = {"wordpiece": UNCASED, "bpe": GPT2}.get(family, ALBERT)
    vocab = LEARNED[family](count_words(pa.array(texts[:5]), segmentation))
    distinct = count_words(pa.array(texts), segmentation)["word"].to_pylist()
    assert check(vocab, distinct) < len(distinct) * (0.1 if "_en" in name else 0.9)


def test_few_new_words_or_many_have_the_same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The quick brown fox, 東京 " + "x" * 200, "jumps over a lazy dog. Zoë's!"]
    empty = {"url": None, "source": "s", "position": 0, "timestamp": None, "language": None}
    batch = pa.RecordBatch.from_pylist([{"id": str(i), "text": t, **empty} for i, t in enumerate(texts)], DOCUMENTS)
    vocab = byte_bpe.learn(count_words(pa.array(texts * 3), GPT2), sections.Vocab(size=320, unused=0)).vocab
    few = Encoder(vocab).encode(batch)
    monkeypatch.setattr(encode, "FEW_WORDS", 0)
    assert Encoder(vocab).encode(batch) == few
