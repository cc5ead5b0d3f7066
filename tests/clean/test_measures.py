"""Words, lines and paragraphs of columns against `str` and `re`, on any text and any slice of a column."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.clean import measures as cut
from corpusforge.clean.measures import Words, find_words
from corpusforge.text import byte_slices, text_bytes
from tests.oracles.gopher import duplicates

SPACES = [
    " ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\x0b",
    "\x1c",
    "\x85",
    "\xa0",
    "\u1680",
    "\u2003",
    "\u2028",
    "\u202f",
    "\u3000",
]
CHARACTERS = [
    "a",
    "B",
    ".",
    "…",
    "-",
    "•",
    "é",
    "中",
    "文",
    "e\u0301",
    "\U0001f600",
    "\u200b",
    "\ufeff",
    "\x00",
    "\x7f",
]
TEXT = st.one_of(
    st.lists(st.sampled_from([*SPACES, *CHARACTERS, *CHARACTERS]), max_size=30).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
)
COLUMN = st.tuples(st.lists(TEXT, max_size=6), st.integers(0, 3)).map(
    lambda drawn: pa.array(["a b", *drawn[0], "中\n"], pa.string()).slice(drawn[1])
)


def words_by_document(words: Words) -> list[list[str]]:
    values = byte_slices(words.data, words.starts, words.stops).to_pylist()
    return [values[a:b] for a, b in zip(words.offsets[:-1], words.offsets[1:], strict=True)]


def by_document(found: cut.Lines) -> list[list[str]]:
    values = byte_slices(found.data, found.starts, found.stops).to_pylist()
    return [values[a:b] for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


@given(COLUMN)
def test_words_are_those_of_str_split(column: pa.StringArray) -> None:
    words = find_words(column)
    expected = [text.split() for text in column.to_pylist()]
    assert words_by_document(words) == expected
    assert words.characters.tolist() == [len(word) for text in expected for word in text]
    assert words.vocabulary.take(pa.array(words.numbers)).to_pylist() == [word for text in expected for word in text]
    assert words.documents.tolist() == [n for n, text in enumerate(expected) for _ in text]


@given(COLUMN, st.data())
def test_words_of_some_documents(column: pa.StringArray, data: st.DataObject) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(column), max_size=len(column))), bool)
    whole, texts = find_words(column), column.filter(pa.array(mask))
    if data.draw(st.booleans()):
        assert len(whole.numbers) == len(whole.characters)  # computed before, they are chosen as well
    chosen, again = whole.choose(np.flatnonzero(mask), texts), find_words(texts)
    assert words_by_document(chosen) == words_by_document(again)
    assert chosen.characters.tolist() == again.characters.tolist()
    assert chosen.bases.tolist() == again.bases.tolist()
    words = chosen.vocabulary.take(pa.array(chosen.numbers)).to_pylist()
    assert words == [word for text in texts.to_pylist() for word in text.split()]


@given(COLUMN)
def test_lines_are_those_of_re_split(column: pa.StringArray) -> None:
    texts = column.to_pylist()
    assert by_document(cut.split_at_each(column)) == [text.split("\n") for text in texts]
    assert by_document(cut.split_at_runs(column)) == [re.split("\n+", text) for text in texts]
    paragraphs = cut.split_paragraphs(column, find_words(column))
    assert by_document(paragraphs) == [re.split("\n{2,}", text.strip()) for text in texts]


@given(COLUMN)
def test_repeats_stay_inside_a_document(column: pa.StringArray) -> None:
    found = cut.split_at_each(column)
    again = found.choose(cut.repeats(found))
    assert by_document(again) == [duplicates(text.split("\n")) for text in column.to_pylist()]


@given(COLUMN, st.lists(st.sampled_from([*CHARACTERS, "...", "a b", "中文"]), max_size=4).map(tuple))
def test_edges_are_those_of_str(column: pa.StringArray, strings: tuple[str, ...]) -> None:
    data, offsets = text_bytes(column)
    spans = (data, offsets[:-1], offsets[1:])
    texts = column.to_pylist()
    assert cut.beginning_with(*spans, strings).tolist() == [text.startswith(strings) for text in texts]
    assert cut.ending_with(*spans, strings).tolist() == [text.endswith(strings) for text in texts]


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["\n"], ["\u3000\n\n\u3000"]])
def test_empty_texts_have_no_words(texts: list[str]) -> None:
    column = pa.array(texts, pa.string())
    words = find_words(column)
    assert words.counts.tolist() == [0] * len(texts)
    assert len(words.vocabulary) == 0
    assert by_document(cut.split_paragraphs(column, words)) == [[""]] * len(texts)
