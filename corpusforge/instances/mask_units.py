"""Mask units: what is masked together. Single tokens and whole words are here, runs of words in `mask_runs`.

A unit chooses positions of many instances at once, under a budget of tokens for each instance. The names of units and
their modules are a table in `sections.instances`.

`token` chooses single tokens at random, exactly as many as the budget. `whole-word` is google-research/bert's rule
(create_pretraining_data.py, do_whole_word_mask): words in random order, each masked where it still fits into the
budget, else passed over. A word is a run of maskable tokens from one word start to the next, so it never reaches over a
special token, and the part of a word that an instance begins with is a word of its own. The order is that of a hash of
each word. Of most instances only the words with small hashes are sorted, as many as the budget probably needs; where
these are too few the others follow, with the same result as if all had been sorted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools, offsets_of, ranges
from corpusforge.sections.instances import MASK_UNITS

_HASH_BITS = 31
"""Bits of a hash that order words; words with the same follow each other as in the text. With 17 bits of the row of a
slice (`masking`) above and 16 of the word below they make one 64-bit number, and sorting numbers is fast."""

_DEVIATIONS = 4.0
"""How many deviations more words than the mean number needed are looked at first."""


class Runs(NamedTuple):
    """Runs in order: ``begins`` and ``lengths``, ``[runs]``, in tokens (inside `mask_runs` also in words)."""

    begins: I64
    lengths: I64


class Choice(NamedTuple):
    """The positions to mask in the flat ids, ascending, and the runs of tokens they are, where the unit has runs."""

    positions: I64
    runs: Runs | None = None


Choose = Callable[[U64, Bools, Bools | None, I64, I64], Choice]
"""``choose(keys, maskable, word_starts, offsets, budgets)``: ``keys`` and ``budgets`` (tokens) one per instance,
``maskable`` and ``word_starts`` flat, one per token; an instance may have fewer maskable tokens than its budget."""


class MaskUnit(NamedTuple):
    """How a unit masks.

    ``needs_words``: it must be given word starts, and masks words whole; ``is_exact``: masks as many tokens as the
    budget, else at most; ``rounds_up``: its budget is rounded up; ``has_runs``: its choice names runs; ``once_a_run``:
    what is seen of a run is decided once; ``tokens_at_once``: tokens that are fastest masked together.
    """

    choose: Choose
    needs_words: bool = True
    is_exact: bool = False
    rounds_up: bool = False
    has_runs: bool = False
    once_a_run: bool = False
    tokens_at_once: int = 1 << 17  # so that temporaries stay in the cache: 150 M tokens/s, 95 at 2**22


def find_unit(name: str) -> MaskUnit:
    """The mask unit of a name. Raises ValueError if there is none.

    >>> find_unit("token").needs_words, find_unit("span").once_a_run
    (False, True)
    """
    if name not in MASK_UNITS:
        raise ValueError(f"no mask unit {name!r}: there are {', '.join(MASK_UNITS)}")
    units: dict[str, MaskUnit] = importlib.import_module(f"corpusforge.instances.{MASK_UNITS[name].module}").UNITS
    return units[name]


def choose_tokens(keys: U64, maskable: Bools, word_starts: Bools | None, offsets: I64, budgets: I64) -> Choice:
    """Single tokens: as many as the budget, or as there are."""
    candidates = np.flatnonzero(maskable)
    bounds = np.searchsorted(candidates, offsets)
    return Choice(candidates[choose_numbers(keys, bounds, np.minimum(budgets, np.diff(bounds)))])


def choose_numbers(keys: U64, bounds: I64, counts: I64) -> I64:
    """Choose ``counts[i]`` numbers from [bounds[i], bounds[i + 1]) without replacement, ascending.

    Each row has an endless sequence of uniform draws; chosen are its first ``counts[i]`` different values. That is
    sampling without replacement exactly, and needs random words for about a fifth of the tokens instead of a sort of
    all of them. Rows with too many repeated values are drawn again, with more draws of the same sequence.
    """
    chosen = np.zeros(int(bounds[-1]), bool)
    todo = np.flatnonzero(counts)
    draws = _enough_draws(counts, np.diff(bounds))
    while len(todo):
        satisfied = _draw(keys[todo], bounds[todo], bounds[todo + 1], counts[todo], draws[todo], chosen)
        todo = todo[~satisfied]
        draws[todo] *= 2
    return np.flatnonzero(chosen)


def _enough_draws(counts: I64, available: I64) -> I64:
    """Draws of which probably ``counts`` differ: the mean number needed, and three deviations of it."""
    share = np.minimum(counts / np.maximum(available, 1), 0.999)
    mean = -np.log1p(-share) * available
    return np.asarray(np.ceil(mean + 3 * np.sqrt(np.maximum(mean - counts, 0)) + 1), np.int64)


def _draw(keys: U64, low: I64, high: I64, counts: I64, draws: I64, chosen: Bools) -> Bools:
    """Set ``chosen`` for rows whose ``draws`` hold enough different values; return which rows those are."""
    total = int(draws.sum())
    counters = ranges(np.zeros_like(draws), draws)
    words = seeds.words(0, "mask-draw", np.repeat(keys, draws), counters.view(np.uint64))
    values = below(words >> np.uint64(32), np.repeat((high - low).view(np.uint64), draws)) + np.repeat(low, draws)
    # NumPy assigns repeated indices in order, so that backwards the first draw of a value is what stays.
    numbers = np.arange(total)
    first = np.empty(len(chosen), np.int64)
    first[values[::-1]] = numbers[::-1]
    fresh = first[values] == numbers
    ordinal = np.cumsum(fresh)
    starts = offsets_of(draws)
    before = np.concatenate(([0], ordinal))[starts]
    satisfied = np.asarray(np.diff(before) >= counts)
    used = fresh & (ordinal <= np.repeat(np.where(satisfied, before[:-1] + counts, -1), draws))
    chosen[values[used]] = True
    return satisfied


def below(words: U64, limits: U64 | np.uint64) -> I64:
    """The lower 32 bits of each word as a number in [0, limit); bias below limit / 2**32."""
    scaled: U64 = ((words & np.uint64(0xFFFFFFFF)) * limits) >> np.uint64(32)
    return scaled.view(np.int64)


class Words(NamedTuple):
    """Words of many instances, in order: ``begins`` (position in the flat ids) and ``sizes`` (tokens), ``[words]``;
    instance i owns words ``bounds[i]`` to ``bounds[i + 1]``."""

    begins: I64
    sizes: I64
    bounds: I64


def words_of(maskable: Bools, word_starts: Bools, offsets: I64) -> Words:
    """The words of instances; ``maskable`` and ``word_starts`` are flat, one per token.

    >>> flags = np.array([0, 1, 1, 0, 1, 0], bool), np.array([1, 0, 0, 1, 1, 1], bool)
    >>> [a.tolist() for a in words_of(*flags, np.array([0, 6]))]
    [[1, 4], [2, 1], [0, 2]]
    """
    before = np.concatenate((np.zeros(1, bool), maskable[:-1]))
    before[offsets[:-1][offsets[:-1] < len(before)]] = False
    candidates = np.flatnonzero(maskable)
    first = np.flatnonzero((word_starts | ~before)[candidates])
    begins = candidates[first]
    sizes = np.diff(first, append=len(candidates))
    return Words(begins, sizes, np.searchsorted(begins, offsets))


def choose_words(keys: U64, words: Words, budgets: I64) -> I64:
    """Numbers of the words to mask, ascending: at most ``budgets[i]`` tokens of instance i.

    ``keys``: ``[n]``, random numbers of the instances.
    """
    counts = np.diff(words.bounds)
    row = np.repeat(np.arange(len(keys)), counts)
    ordinal = np.arange(len(row)) - np.repeat(words.bounds[:-1], counts)
    draws = seeds.words(0, "mask-word", keys[row], ordinal.view(np.uint64)) >> np.uint64(64 - _HASH_BITS)
    left, chosen = budgets.copy(), np.zeros(len(row), bool)
    limits = _limits(words, counts, budgets)
    early = draws < limits[row]
    _fill(np.flatnonzero(early), row, ordinal, draws, words, left, chosen)
    open_ = (left > 0) & (limits < np.uint64(1 << _HASH_BITS))
    if open_.any():
        _fill(np.flatnonzero(~early & open_[row]), row, ordinal, draws, words, left, chosen)
    return np.flatnonzero(chosen)


def _limits(words: Words, counts: I64, budgets: I64) -> U64:
    """Hashes below these belong to enough words, probably: a share of the words that has the budget's tokens."""
    ends = offsets_of(words.sizes)[words.bounds]
    tokens = np.maximum(np.diff(ends), 1)
    wanted = budgets * counts / tokens + 2  # two spare ones, for words that are passed over
    share = np.minimum((wanted + _DEVIATIONS * np.sqrt(wanted)) / np.maximum(counts, 1), 1.0)
    return np.asarray((share * (1 << _HASH_BITS)).astype(np.uint64))


def _fill(candidates: I64, row: I64, ordinal: I64, draws: U64, words: Words, left: I64, chosen: Bools) -> None:
    """Go through the candidates in the order of their hashes, all instances at once; ``left`` and ``chosen`` change."""
    owners, ordinals = row[candidates].view(np.uint64), ordinal[candidates].view(np.uint64)
    order = (owners << np.uint64(47)) | (draws[candidates] << np.uint64(16)) | ordinals
    order.sort()
    rows = (order >> np.uint64(47)).view(np.int64)
    numbers = words.bounds[rows] + (order & np.uint64(0xFFFF)).view(np.int64)
    sizes = words.sizes[numbers]
    while True:  # a round: until the first word of each instance that does not fit
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


def budgets_of(maskable: Bools, offsets: I64, budgets: I64) -> I64:
    """The budgets, of each instance no more than it has maskable tokens."""
    tokens = np.concatenate(([0], np.cumsum(maskable)))[offsets]
    return np.asarray(np.minimum(budgets, np.diff(tokens)))


def choose_whole_words(keys: U64, maskable: Bools, word_starts: Bools | None, offsets: I64, budgets: I64) -> Choice:
    """Whole words, at most ``budgets`` tokens of them."""
    assert word_starts is not None
    words = words_of(maskable, word_starts, offsets)
    chosen = choose_words(keys, words, budgets_of(maskable, offsets, budgets))
    return Choice(ranges(words.begins[chosen], words.sizes[chosen]))


UNITS = {
    "token": MaskUnit(choose_tokens, needs_words=False, is_exact=True),
    "whole-word": MaskUnit(choose_whole_words),
}
