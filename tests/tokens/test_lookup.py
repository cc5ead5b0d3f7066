"""Look-up tables against dictionaries and a search by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.tokens.lookup import KeyTable, KnownWords, Trie


@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=40), max_size=4))
def test_a_table_of_keys_is_a_dictionary(parts: list[list[tuple[int, int]]]) -> None:
    table, numbers = KeyTable(), dict[tuple[int, int], int]()
    every = np.stack(np.meshgrid(np.arange(42), np.arange(42))).reshape(2, -1).astype(np.uint64)
    for part in parts:
        new = [key for key in dict.fromkeys(part) if key not in numbers]
        table.add(*np.array(new, np.uint64).reshape(-1, 2).T)
        numbers.update(zip(new, range(len(numbers), len(numbers) + len(new)), strict=True))
        assert table.find(*every).tolist() == [numbers.get((a, b), -1) for a, b in every.T.tolist()]


some = st.lists(st.text("ab\x00é", max_size=20) | st.text(max_size=9), max_size=30)


@given(st.lists(some, max_size=4), some)
def test_known_words_are_a_dictionary(parts: list[list[str]], queries: list[str]) -> None:
    known, numbers = KnownWords(), dict[str, int]()
    for part in parts:
        new = [word for word in dict.fromkeys(part) if word not in numbers]
        known.add(pa.array(new, pa.string()))
        numbers.update(zip(new, range(len(numbers), len(numbers) + len(new)), strict=True))
    words = pa.array(["begin", *queries, *numbers], pa.string()).slice(1)
    assert known.find(words).tolist() == [numbers.get(word, -1) for word in words.to_pylist()]


@given(st.lists(st.binary(min_size=1, max_size=4), unique=True, max_size=60), st.binary(max_size=6))
def test_a_trie_finds_the_tokens_that_begin_here(tokens: list[bytes], text: bytes) -> None:
    trie = Trie(tokens, list(range(len(tokens))), [0] * len(tokens))
    rows = [np.array([byte], np.uint8) for byte in text]
    for at in range(len(text)):
        token_ids = [int(ids[0]) for _, _, ids in trie.matches(rows, at, np.zeros(1, np.int64))]
        assert token_ids == sorted(
            (i for i, t in enumerate(tokens) if text[at:].startswith(t)), key=lambda i: len(tokens[i])
        )
