"""Lines against str.splitlines and str.strip, on any Unicode."""

from __future__ import annotations

import sys

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.text import split_lines
from tests.texts import TEXTS, sliced


@given(st.lists(TEXTS, max_size=5))
@example(["a\r", "\nb"])
def test_lines_are_those_of_python(texts: list[str]) -> None:
    rows = split_lines(sliced(texts))
    values = rows.values.to_pylist()
    lines = [values[a:b] for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    assert lines == [[line.strip() for line in t.splitlines()] for t in texts]


def test_every_character_is_stripped_and_split_as_python_does() -> None:
    characters = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    texts = [f"{c}a{c}b{c}" for c in characters]
    rows = split_lines(pa.array(texts))
    expected = [line.strip() for t in texts for line in t.splitlines()]
    assert rows.values.equals(pa.array(expected))


def test_no_documents_have_no_lines() -> None:
    assert split_lines(pa.array([], pa.string())).offsets.tolist() == [0]
