"""Whole words: what is masked together, and which of them are.

Comes in: which positions may be masked, and which tokens begin a word. Goes out: `Units`, and the positions of those
chosen. The one decision: a unit is a run of maskable tokens from one word start to the next, so it never reaches over
a special token, and the part of a word that an instance begins with is a unit of its own.

The rule is google-research/bert's (create_pretraining_data.py, do_whole_word_mask): units in random order, each masked
where it still fits into the budget of tokens, else passed over. The order is that of a hash of each unit. Of most
instances only the units with small hashes are sorted, as many as the budget probably needs; the others follow where it
did not, with the same result as if all had been sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools, offsets_of, ranges

_HASH_BITS = 31
"""Bits of a hash that order units; units with the same follow each other as in the text. With 17 bits of the row of a
slice (`masking`) above and 16 of the unit below they make one 64-bit word, and sorting words is fast."""

_DEVIATIONS = 4.0
"""How many deviations more units than the mean number needed are looked at first."""


class Units(NamedTuple):
    """Units of many instances, in order: ``begins`` (position in the flat ids) and ``sizes`` (tokens), ``[units]``;
    instance i owns units ``bounds[i]`` to ``bounds[i + 1]``."""

    begins: I64
    sizes: I64
    bounds: I64


def units_of(maskable: Bools, word_starts: Bools, offsets: I64) -> Units:
    """The units of instances; ``maskable`` and ``word_starts`` are flat, one a token.

    >>> flags = np.array([0, 1, 1, 0, 1, 0], bool), np.array([1, 0, 0, 1, 1, 1], bool)
    >>> [a.tolist() for a in units_of(*flags, np.array([0, 6]))]
    [[1, 4], [2, 1], [0, 2]]
    """
    before = np.concatenate((np.zeros(1, bool), maskable[:-1]))
    before[offsets[:-1][offsets[:-1] < len(before)]] = False
    candidates = np.flatnonzero(maskable)
    first = np.flatnonzero((word_starts | ~before)[candidates])
    begins = candidates[first]
    sizes = np.diff(first, append=len(candidates))
    return Units(begins, sizes, np.searchsorted(begins, offsets))


def choose_words(keys: U64, units: Units, budgets: I64) -> I64:
    """Numbers of the units to mask, ascending: at most ``budgets[i]`` tokens of instance i.

    ``keys``: ``[n]``, random words of the instances.
    """
    counts = np.diff(units.bounds)
    row = np.repeat(np.arange(len(keys)), counts)
    ordinal = np.arange(len(row)) - np.repeat(units.bounds[:-1], counts)
    draws = seeds.words(0, "mask-word", keys[row], ordinal.view(np.uint64)) >> np.uint64(64 - _HASH_BITS)
    left, chosen = budgets.copy(), np.zeros(len(row), bool)
    limits = _limits(units, counts, budgets)
    early = draws < limits[row]
    _fill(np.flatnonzero(early), row, ordinal, draws, units, left, chosen)
    open_ = (left > 0) & (limits < np.uint64(1 << _HASH_BITS))
    if open_.any():
        _fill(np.flatnonzero(~early & open_[row]), row, ordinal, draws, units, left, chosen)
    return np.flatnonzero(chosen)


def _limits(units: Units, counts: I64, budgets: I64) -> U64:
    """Hashes below these belong to enough units, probably: a share of the units that has the budget's tokens."""
    ends = offsets_of(units.sizes)[units.bounds]
    tokens = np.maximum(np.diff(ends), 1)
    wanted = budgets * counts / tokens + 2  # a unit passed over now and then
    share = np.minimum((wanted + _DEVIATIONS * np.sqrt(wanted)) / np.maximum(counts, 1), 1.0)
    return np.asarray((share * (1 << _HASH_BITS)).astype(np.uint64))


def _fill(some: I64, row: I64, ordinal: I64, draws: U64, units: Units, left: I64, chosen: Bools) -> None:
    """Go through some units in the order of their hashes, all instances at once; ``left`` and ``chosen`` change."""
    words = (
        (row[some].view(np.uint64) << np.uint64(47)) | (draws[some] << np.uint64(16)) | ordinal[some].view(np.uint64)
    )
    words.sort()
    rows = (words >> np.uint64(47)).view(np.int64)
    numbers = units.bounds[rows] + (words & np.uint64(0xFFFF)).view(np.int64)
    sizes = units.sizes[numbers]
    while True:  # a round: until the first unit of each instance that does not fit
        keep = np.flatnonzero(sizes <= left[rows])
        if not len(keep):
            return
        rows, numbers, sizes = rows[keep], numbers[keep], sizes[keep]
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        sums = np.cumsum(sizes)
        counts = np.diff(begins, append=len(rows))
        sums -= np.repeat(sums[begins] - sizes[begins], counts)
        taken = sums <= left[rows]
        chosen[numbers[taken]] = True
        last = np.flatnonzero(taken & np.append(~taken[1:] | (rows[1:] != rows[:-1]), True))
        left[rows[last]] -= sums[last]
        rows, numbers, sizes = rows[~taken], numbers[~taken], sizes[~taken]


def positions_of(units: Units, chosen: I64) -> I64:
    """The positions of all tokens of these units, in order."""
    return ranges(units.begins[chosen], units.sizes[chosen])
