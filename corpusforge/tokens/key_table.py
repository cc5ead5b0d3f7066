"""A dictionary for columns: keys of 128 bits to the number under which each came, looked up many at once.

In: keys as two columns of 64 bits. Out: their numbers. The decision: open addressing in flat arrays, and keys are
compared in full, so that answers are exact whatever the hash. Words of up to 15 bytes are such keys (`KnownWords`).
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I32, I64, U64, Bools
from corpusforge.text import text_bytes

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Knuth's multiplier in 64 bits (The Art of Computer Programming 3, 6.4)."""

_SHORT = 15  # bytes of a word that leave room for its length
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


class KeyTable:
    """Numbers of keys, from 0 on in the order in which they were added."""

    def __init__(self) -> None:
        self._low = self._high = np.empty(0, np.uint64)
        self._slots = np.full(16, -1, np.int32)

    def __len__(self) -> int:
        return len(self._low)

    def find(self, low: U64, high: U64) -> I32:
        """Numbers of keys, -1 where one is not there."""
        if not len(self):
            return np.full(len(low), -1, np.int32)
        slots = self._first_slots(low, high)
        numbers = self._slots[slots]
        far = np.flatnonzero((numbers >= 0) & ((self._low[numbers] != low) | (self._high[numbers] != high)))
        while len(far):  # another key has that slot: look at the next one
            slots[far] = (slots[far] + 1) & (len(self._slots) - 1)
            numbers[far] = found = self._slots[slots[far]]
            far = far[(found >= 0) & ((self._low[found] != low[far]) | (self._high[found] != high[far]))]
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


class KnownWords:
    """Numbers of words, from 0 on in the order in which they were added; long ones are keys of a Python dictionary."""

    def __init__(self) -> None:
        self._short, self._long = KeyTable(), dict[str, int]()
        self._numbers, self._size = np.empty(0, np.int32), 0

    def __len__(self) -> int:
        return self._size

    def find(self, words: pa.StringArray) -> I32:
        """Numbers of words, -1 where one was not added."""
        low, high, short = _packed(words)
        found = self._short.find(low, high)
        numbers = np.where(found < 0, -1, np.append(self._numbers, -1)[found]).astype(np.int32)
        # A Python list with a reason: few words are that long.
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
    """Words as keys: their bytes in order, behind them zeros, last their length; and which words are short enough."""
    data, offsets = text_bytes(words)
    starts, lengths = offsets[:-1], np.diff(offsets)
    padded = np.append(data[: offsets[-1]], np.zeros(16, np.uint8))
    eight = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))  # the eight bytes from every place on
    low = eight[starts] & _FIRST_BYTES[np.minimum(lengths, 8)]
    high = eight[starts + 8] & _FIRST_BYTES[np.clip(lengths - 8, 0, 7)]
    return low, high | lengths.astype(np.uint64) << np.uint64(56), lengths <= _SHORT
