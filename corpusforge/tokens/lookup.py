"""Look-up tables for whole columns: a trie of tokens, and a dictionary of 128-bit keys.

Both lie in flat arrays, so that thousands of words are looked up by a few gathers, and both compare keys in full, so
that answers are exact whatever the hash.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I32, I64, U8, U64, Bools, ranges
from corpusforge.text import text_bytes

_SPREAD_32 = 0x9E3779B1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Knuth's multipliers for 32 and 64 bits (The Art of Computer Programming 3, 6.4): the same in every process."""


class Trie:
    """The tokens that begin at a place of a word.

    A double array (Aoe 1989): the children of a node lie at ``base + byte`` of one table, so that a step of all words
    takes two gathers and a comparison. ``roots[i]``: 0 or 1, in which of two tries token i lies (beginnings and insides
    of words).
    """

    def __init__(self, tokens: Sequence[bytes], ids: Sequence[int], roots: Sequence[int]) -> None:
        parents, letters, nodes = _edges(tokens, np.array(roots, np.int64))
        bases, size = _bases(parents, letters)
        slots = np.concatenate([[0, 1], bases[parents] + letters]).astype(np.int32)  # of each node
        self._base, self._owner, self._ids = (np.full(size, -1, np.int32) for _ in range(3))
        self._base[slots] = bases
        self._owner[slots[2:]] = slots[parents]
        self._ids[slots[nodes]] = ids

    def matches(self, rows: Sequence[U8], at: int, words: I64, root: int = 0) -> Iterator[tuple[int, I64, I32]]:
        """Tokens that begin at byte ``at`` of these words (ascending), by length: the words that have one, its id.

        ``rows``: as in `column_encoders.Letters`, byte p of all words that are longer than p.
        """
        state = np.int32(root)
        for place in range(at, len(rows)):
            row = rows[place]
            reach = np.searchsorted(words, len(row))  # the others end here
            if reach < len(words):
                words, state = words[:reach], state[:reach] if state.ndim else state
            slots = self._base[state] + row[words]
            on = np.flatnonzero(self._owner[slots] == state)
            words, state = words[on], slots[on]
            if not len(words):
                return
            ids = self._ids[state]
            hit = np.flatnonzero(ids >= 0)
            if len(hit):
                yield place - at + 1, words[hit], ids[hit]


def _edges(tokens: Sequence[bytes], nodes: I64) -> tuple[I64, I64, I64]:
    """Parent and byte of every node from number 2 on, parents ascending, 0 and 1 are roots; the node of each token."""
    flat = np.frombuffer(b"".join(tokens), np.uint8)
    lengths = np.array([len(token) for token in tokens], np.int64)
    firsts, nodes, number, levels = np.cumsum(lengths) - lengths, nodes.copy(), 2, []
    for depth in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > depth)
        keys, inverse = np.unique(nodes[longer] << 8 | flat[firsts[longer] + depth], return_inverse=True)
        nodes[longer] = number + inverse
        number += len(keys)
        levels.append(keys)
    edges = np.concatenate([np.empty(0, np.int64), *levels])
    return edges >> 8, edges & 0xFF, nodes


def _bases(parents: I64, letters: I64) -> tuple[I64, int]:
    """A base for every node so that no two edges share a slot, and the number of slots; 0 and 1 are the roots'.

    Bases are tried for many nodes at once, those with most children first.
    """
    degrees = np.bincount(parents, minlength=len(parents) + 2)
    firsts = np.cumsum(degrees) - degrees
    span = 1 << (2 * len(parents) + 256).bit_length()  # at most half of it fills
    bases, taken, claims = np.zeros(len(degrees), np.int64), np.zeros(span + 256, bool), np.empty(span + 256, np.int64)
    taken[:2] = True
    for low, high in ((33, 257), (9, 33), (3, 9), (1, 3)):
        todo, attempt = np.flatnonzero((degrees >= low) & (degrees < high)), 0
        while len(todo):
            attempt += 1
            trial = (todo * 31 + attempt) * _SPREAD_32 % span
            who = np.repeat(np.arange(len(todo)), degrees[todo])
            slots = trial[who] + letters[ranges(firsts[todo], degrees[todo])]
            claims[slots] = who
            lost = np.zeros(len(todo), bool)
            lost[who[taken[slots] | (claims[slots] != who)]] = True
            bases[todo[~lost]] = trial[~lost]
            taken[slots[~lost[who]]] = True
            todo = todo[lost]
    return bases, span + 256


class KeyTable:
    """Numbers of 128-bit keys, from 0 on in the order in which they were added; open addressing."""

    def __init__(self) -> None:
        self._low = self._high = np.empty(0, np.uint64)
        self._slots = np.full(16, -1, np.int32)

    def __len__(self) -> int:
        return len(self._low)

    def find(self, low: U64, high: U64) -> I32:
        """Numbers of keys, -1 for those that were not added."""
        if not len(self):
            return np.full(len(low), -1, np.int32)
        slots = self._first_slots(low, high)
        numbers = self._slots[slots]
        far = np.flatnonzero((numbers >= 0) & ((self._low[numbers] != low) | (self._high[numbers] != high)))
        while len(far):  # another key has that slot: look at the next one
            slots[far] = (slots[far] + 1) & (len(self._slots) - 1)
            numbers[far] = here = self._slots[slots[far]]
            far = far[(here >= 0) & ((self._low[here] != low[far]) | (self._high[here] != high[far]))]
        return numbers

    def add(self, low: U64, high: U64) -> None:
        """Give new keys, each once, the next numbers."""
        added = np.arange(len(self), len(self) + len(low))
        self._low, self._high = np.concatenate([self._low, low]), np.concatenate([self._high, high])
        if 4 * len(self) > len(self._slots):  # at most a quarter is filled
            self._slots = np.full(1 << (8 * len(self)).bit_length(), -1, np.int32)
            added = np.arange(len(self))
        slots = self._first_slots(self._low[added], self._high[added])
        while len(added):
            free = self._slots[slots] < 0
            self._slots[slots[free]] = added[free]  # of several the last one stays
            lost = np.flatnonzero(self._slots[slots] != added)
            added, slots = added[lost], (slots[lost] + 1) & (len(self._slots) - 1)

    def _first_slots(self, low: U64, high: U64) -> I64:
        mixed = low * _SPREAD
        mixed ^= mixed >> np.uint64(29)
        mixed += high
        mixed *= _SPREAD
        return (mixed >> np.uint64(65 - len(self._slots).bit_length())).view(np.int64)


_SHORT = 15  # bytes of a word that leave room for its length
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


class KnownWords:
    """Numbers of words, from 0 on in the order in which they were added.

    Words of up to 15 bytes are keys of a `KeyTable`, longer ones of a Python dictionary.
    """

    def __init__(self) -> None:
        self._short, self._long = KeyTable(), dict[str, int]()
        self._numbers, self._size = np.empty(0, np.int32), 0

    def __len__(self) -> int:
        return self._size

    def find(self, words: pa.StringArray) -> I32:
        """Numbers of words, -1 for those that were not added."""
        low, high, short = _packed(words)
        keys = self._short.find(low, high)
        numbers = np.where(keys < 0, -1, np.append(self._numbers, -1)[keys]).astype(np.int32)
        # Python list: few words are that long.
        texts = words.filter(pa.array(~short)).to_pylist()
        numbers[~short] = np.fromiter(map(self._long.get, texts, itertools.repeat(-1)), np.int32, len(texts))
        return numbers

    def add(self, words: pa.StringArray) -> None:
        """Number distinct new words."""
        low, high, short = _packed(words)
        numbers = np.arange(self._size, self._size + len(words), dtype=np.int32)
        self._short.add(low[short], high[short])
        self._numbers = np.concatenate([self._numbers, numbers[short]])
        self._long.update(zip(words.filter(pa.array(~short)).to_pylist(), numbers[~short].tolist(), strict=True))
        self._size += len(words)


def _packed(words: pa.StringArray) -> tuple[U64, U64, Bools]:
    """Words as keys (their bytes, then zeros, in the last byte their length), and which words are short enough."""
    data, offsets = text_bytes(words)
    starts, lengths = offsets[:-1], np.diff(offsets)
    padded = np.append(data[: offsets[-1]], np.zeros(16, np.uint8))
    eight = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))  # the eight bytes from every place on
    low = eight[starts] & _FIRST_BYTES[np.minimum(lengths, 8)]
    high = eight[starts + 8] & _FIRST_BYTES[np.clip(lengths - 8, 0, 7)]
    return low, high | lengths.astype(np.uint64) << np.uint64(56), lengths <= _SHORT
