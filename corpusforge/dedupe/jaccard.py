"""The true Jaccard similarity of pairs of sets of shingles.

Comes in: shingle hashes in a row, and for each pair two ranges of them. Goes out: shared shingles by all shingles.

Decision: all pairs of a block are sorted together, as 64-bit words of (pair, hash, side): equal hashes of both sides
become neighbours. The hashes have 31 random bits, so of two spans of 70 shingles one in 400,000 pairs counts one
shingle too many as shared.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from corpusforge.dedupe.minima import U32
from corpusforge.dedupe.normalise import Bools
from corpusforge.seeds import U64
from corpusforge.text import I64

_CELLS = 1 << 20
"""Shingles sorted at once: 8 MiB, and as many pairs as share them (at least one)."""


def jaccard(
    left: U32, left_starts: I64, left_stops: I64, right: U32, right_starts: I64, right_stops: I64
) -> npt.NDArray[np.float32]:
    """The similarity of the sets ``left[left_starts[i]:left_stops[i]]`` and so on the right; no range is empty.

    >>> hashes = np.array([5, 7, 7, 9, 5, 1], np.uint32)
    >>> jaccard(hashes, np.array([0]), np.array([4]), hashes, np.array([3]), np.array([6])).tolist()
    [0.5]
    """
    sizes = (left_stops - left_starts) + (right_stops - right_starts)
    blocks = np.cumsum(sizes) // _CELLS
    bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(sizes)]
    found = np.zeros(len(sizes), np.float32)
    for a, b in itertools.pairwise(bounds):
        sides = ((left, left_starts, left_stops), (right, right_starts, right_stops))
        words = np.concatenate([_words(hashes, x[a:b], y[a:b], side) for side, (hashes, x, y) in enumerate(sides)])
        words.sort()
        found[a:b] = _shares(words, np.cumsum(sizes[a:b]))
    return found


def _words(hashes: U32, starts: I64, stops: I64, side: int) -> U64:
    """(pair, hash, side) of every shingle of ranges. Hashes are odd, so that their lowest bit is free for the side."""
    sizes = stops - starts
    first = np.cumsum(sizes) - sizes
    at = np.repeat(starts - first, sizes)
    at += np.arange(len(at))
    named = np.repeat(np.arange(len(sizes), dtype=np.uint64) << np.uint64(32) | np.uint64(side), sizes)
    named |= hashes[at] & np.uint32(0xFFFFFFFE)
    return named


def _shares(words: U64, ends: I64) -> npt.NDArray[np.float64]:
    """Shared by all of sorted words. ``ends``: behind the last word of each pair.

    A step from a word to the next of 0 is the same shingle of the same side, of 1 the same of the other side.
    """
    steps = np.full(len(words), 2, np.uint64)
    np.bitwise_xor(words[1:], words[:-1], out=steps[1:])
    shared, fresh = (_counts(flags, ends) for flags in (steps == 1, steps > 1))
    return shared / fresh


def _counts(flags: Bools, ends: I64) -> I64:
    """How many flags are set up to each end from the one before."""
    sums = np.cumsum(flags, dtype=np.int32)[ends - 1]
    return np.diff(sums, prepend=np.int32(0)).astype(np.int64)
