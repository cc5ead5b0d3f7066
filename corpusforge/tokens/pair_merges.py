"""Byte-pair merges for all words at once: in every round each word joins its first pair of the lowest rank.

In: distinct words. Out: their ids. The decision: this is the library's order (huggingface/tokenizers,
models/bpe/word.rs: a heap by rank, then by place), one merge a word and round, with the ranks of all pairs at hand so
that a round is a minimum over positions and two look-ups. Left are words of more than `LONGEST` symbols.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.arrays import I32, I64, U64
from corpusforge.text import text_bytes
from corpusforge.tokens.columns import code_points
from corpusforge.tokens.key_table import KeyTable
from corpusforge.tokens.word_columns import Answers, Letters, all_known, gather, letters_of

_PLACE_BITS, _PLACES = 6, 63  # a key is rank and place, so that the least is the pair to join
_NONE = np.int32(2**31 - 1)  # the key of a pair that nothing joins
_NO_SYMBOL = 2**31 - 1  # joined into its left neighbour, or beyond the word


class PairMerges:
    """Encodes words. ``pairs``: ids left, right and what they become, first come first; ``symbols``: the id of each
    byte, or of each code point (-1: none, such words are left)."""

    def __init__(self, pairs: Sequence[tuple[int, int, int]], symbols: I32) -> None:
        table = np.array(pairs, np.int64).reshape(-1, 3)
        rank = {(left, right): k for k, (left, right, _) in enumerate(pairs)}  # of equals the last counts
        self._ranks = np.array([*rank.values(), -1], np.int64)  # by number of the pair; the last: no pair
        self._pairs = KeyTable()
        self._pairs.add(*table[self._ranks[:-1], :2].T.astype(np.uint64))
        self._made, self._symbols, self._known = table[:, 2].astype(np.int32), symbols, symbols >= 0

    def encode(self, words: pa.StringArray) -> Answers:
        letters = self._letters(words)
        cells = _Cells(letters, lambda left, right: self._ranks[self._pairs.find(left, right)])
        while len(at := cells.pick()):
            cells.join(at, self._made)
        return gather(len(words), letters, cells.left())

    def _letters(self, words: pa.StringArray) -> Letters:
        data, offsets = text_bytes(words)
        if len(self._symbols) == 256:
            return letters_of(self._symbols[data], offsets)
        leads = np.flatnonzero((data & 0xC0) != 0x80)
        usable = all_known(words, self._known)
        return letters_of(self._symbols[code_points(data, leads)], np.searchsorted(leads, offsets), usable)


class _Cells:
    """The symbols of all words as linked lists, row behind row; the last cell stands for what is beyond a word."""

    def __init__(self, letters: Letters, rank: Callable[[U64, U64], I64]) -> None:
        counts = [len(row) for row in letters.rows]
        self._firsts, self._rank, self._words = np.cumsum([0, *counts]), rank, len(letters.order)
        self._beyond = beyond = int(self._firsts[-1])
        self._places = np.repeat(np.arange(len(counts) + 1, dtype=np.int32), [*counts, 1])
        self._symbols = np.concatenate([*letters.rows, [_NO_SYMBOL]]).astype(np.int64)
        self._next, self._before = np.full(beyond + 1, beyond), np.full(beyond + 1, beyond)
        for place, count in enumerate(counts[1:]):
            here, there = np.arange(count) + self._firsts[place], np.arange(count) + self._firsts[place + 1]
            self._next[here], self._before[there] = there, here
        self._keys = self._keyed(self._symbols, self._symbols[self._next], self._places)

    def pick(self) -> I64:
        """The words that have a pair to join; which one is kept in mind."""
        best = np.full(self._words, _NONE)
        for first, stop in itertools.pairwise(self._firsts.tolist()):
            np.minimum(best[: stop - first], self._keys[first:stop], out=best[: stop - first])
        words = np.flatnonzero(best != _NONE)
        self._best = best[words]
        return words

    def join(self, words: I64, made: I32) -> None:
        """Join that pair of each of these words."""
        here = self._firsts[self._best & _PLACES] + words
        gone = self._next[here]
        right, left = self._next[gone], self._before[here]
        new = made[self._best >> _PLACE_BITS]
        self._symbols[here], self._symbols[gone] = new, _NO_SYMBOL
        self._next[here], self._before[right] = right, here
        self._keys[gone] = _NONE
        self._keys[here] = self._keyed(new, self._symbols[right], self._places[here])
        self._keys[left] = self._keyed(self._symbols[left], new, self._places[left])

    def left(self) -> list[tuple[I64, I32]]:
        """Words and their symbols, place by place."""
        rows = [self._symbols[first:stop] for first, stop in itertools.pairwise(self._firsts.tolist())]
        words = [np.flatnonzero(row != _NO_SYMBOL) for row in rows]
        return [(at, row[at].astype(np.int32)) for at, row in zip(words, rows, strict=True)]

    def _keyed(self, left: npt.NDArray[Any], right: npt.NDArray[Any], places: I32) -> I32:
        ranks = self._rank(left.astype(np.uint64), right.astype(np.uint64))
        return np.where(ranks < 0, _NONE, ranks << _PLACE_BITS | places).astype(np.int32)
