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
        found[a:b] = _shares(words, b - a)
    return found


def _words(hashes: U32, starts: I64, stops: I64, side: int) -> npt.NDArray[np.uint64]:
    """(pair, hash, side) of every shingle of ranges. Hashes are odd, so that their lowest bit is free for the side."""
    sizes = stops - starts
    pairs = np.repeat(np.arange(len(sizes)), sizes)
    at = np.arange(len(pairs)) + (starts - (np.cumsum(sizes) - sizes))[pairs]
    named = pairs.astype(np.uint64) << np.uint64(32) | hashes[at] & np.uint32(0xFFFFFFFE)
    return np.asarray(named | np.uint64(side))


def _shares(words: npt.NDArray[np.uint64], pairs: int) -> npt.NDArray[np.float64]:
    """Shared by all of sorted words: those of one (pair, hash) lie together, the left side first."""
    fresh = np.ones(len(words), np.bool_)
    fresh[1:] = words[1:] != words[:-1]
    words = words[fresh]
    sets = words >> np.uint64(1)
    shared = np.flatnonzero(sets[1:] == sets[:-1])
    owners = (words >> np.uint64(32)).astype(np.int64)
    both = np.bincount(owners[shared], minlength=pairs)
    every = np.bincount(owners, minlength=pairs) - both
    return both / every
