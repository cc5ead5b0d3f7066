from __future__ import annotations

import gzip
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text import text_bytes
from corpusforge.tokens.bert_split import BertSegmentation, BertSplitter, splitter_for
from corpusforge.tokens.splitting import ODD, Words
from tests.oracles import wordpiece
from tests.tokens import hard_text

UNCASED, CASED = BertSegmentation(True), BertSegmentation(False)
ALL = [
    UNCASED,
    CASED,
    BertSegmentation(True, False),
    BertSegmentation(False, True, False),
    BertSegmentation(True, clean=False),
]


def rows_of(words: Words) -> list[list[str]]:
    bounds = words.offsets.tolist()
    values = words.values.to_pylist()
    return [values[a:b] for a, b in itertools.pairwise(bounds)]


def split(texts: list[str], normalization: BertSegmentation) -> list[list[str]]:
    return rows_of(splitter_for(normalization).split(*text_bytes(pa.array(texts, pa.string()))))


@given(hard_text.columns, st.sampled_from(ALL))
def test_words_are_the_librarys(texts: list[str], normalization: BertSegmentation) -> None:
    assert split(texts, normalization) == [wordpiece.words(text, normalization) for text in texts]


@given(hard_text.columns, st.integers(1, 40), st.sampled_from([UNCASED, CASED]))
def test_chunks_change_nothing(texts: list[str], size: int, normalization: BertSegmentation) -> None:
    data, rows = text_bytes(pa.array(texts, pa.string()))
    chunks = splitter_for(normalization).chunks(data, rows, size)
    together = [word for chunk in chunks for word in chunk.values.to_pylist()]
    assert together == [word for text in texts for word in wordpiece.words(text, normalization)]


def test_long_rows_are_chunked_at_white_space_only(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["ab cd " * 50 + "x" * 300, "", "y" * 9000 + " end", "東京" * 100]
    monkeypatch.setattr(BertSplitter.chunks, "__defaults__", (64,))
    assert split(texts, UNCASED) == [wordpiece.words(text, UNCASED) for text in texts]


@given(hard_text.columns, st.integers(0, 3), st.integers(0, 3))
def test_slices_of_columns(texts: list[str], begin: int, length: int) -> None:
    data, rows = text_bytes(pa.array(texts, pa.string()).slice(min(begin, len(texts)), length))
    expected = [wordpiece.words(text, UNCASED) for text in texts[begin : begin + length]]
    assert rows_of(splitter_for(UNCASED).split(data, rows)) == expected


def test_rows_split_words() -> None:
    data = np.frombuffer(b"abcd", np.uint8)
    assert rows_of(splitter_for(UNCASED).split(data, np.array([0, 1, 1, 3, 4]))) == [["a"], [], ["bc"], ["d"]]


def test_marks_that_are_reordered_go_to_the_library() -> None:
    texts = ["plain", "a\U0001d165\u302e b \U0001d165\U0001d16d", "more"]
    words = splitter_for(UNCASED).split(*text_bytes(pa.array(texts)))
    assert words.by_library == 1
    assert rows_of(words) == [wordpiece.words(text, UNCASED) for text in texts]


def test_a_splitter_is_pickled_as_its_settings() -> None:
    assert pickle.loads(pickle.dumps(splitter_for(CASED))) is splitter_for(CASED)


@pytest.mark.parametrize("normalization", [UNCASED, CASED])
def test_nasty_files(shared_data: Path, normalization: BertSegmentation) -> None:
    nasty = shared_data / "nasty"
    texts: list[str] = []
    for name in ("blns.txt", "ungoliant-garbage.txt"):
        texts += (nasty / name).read_bytes()[:200_000].decode("utf-8", "replace").replace("\x00", "").split("\n")
    texts += json.loads((nasty / "blns.json").read_text("utf-8"))
    assert split(texts, normalization) == [wordpiece.words(text, normalization) for text in texts]


@pytest.mark.parametrize("name", ["text_en/enwiki2018-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
def test_real_text(shared_data: Path, name: str) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(150), strict=False)]
    assert split(texts, UNCASED) == [wordpiece.words(text, UNCASED) for text in texts]


POINTS = [chr(p) for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000]


@pytest.mark.slow
@pytest.mark.parametrize("normalization", [UNCASED, CASED])
def test_every_character_among_letters(normalization: BertSegmentation) -> None:
    # Letters that could compose with a character, or take their case from what stands around them.
    texts = [f"Σ{c}ΑΣ {c}{c}e\u0301{c}" for c in POINTS]
    assert split(texts, normalization) == [splitter_for(normalization).words_of(text) for text in texts]


@pytest.mark.slow
def test_no_character_is_reordered_unless_it_is_known_to_be() -> None:
    # What makes the splice exact. A character with a combining class changes places with at least one of two marks
    # that stay in the text and have classes of their own (U+302E: 224, U+1D165: 216), in one order or the other.
    splitter = splitter_for(UNCASED)
    splitter.split(*text_bytes(pa.array(POINTS)))
    moved = set()
    for c in POINTS:
        answer = splitter._answer(c)
        pattern = "{0}\u302e {0}\U0001d165 \u302e{0} \U0001d165{0}"
        if splitter.words_of(pattern.format(c)) != [w for w in pattern.format(answer).split(" ") if w]:
            moved.add(c)
    known = {c for c in POINTS if splitter._index[ord(c)] == ODD}
    assert moved <= known
    assert "\u302e" in known
    assert len(known) < 400
