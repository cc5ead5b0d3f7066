"""Mask units that are runs of words: ALBERT's n-grams and SpanBERT's spans.

The length of a run is drawn first and then a place for it is looked for, as SpanBERT does (section 3.1), so that
lengths follow their distribution whatever is masked already; ALBERT's code draws a place first and loses long n-grams
to overlaps. All places where the whole run fits into the instance are equally likely; runs do not overlap and contain
no special token.

A run that would exceed the budget loses words at its end, so the last of an instance may be shorter. After `TRIES`
places that are taken, the length is halved; an instance without a place for a single word after `WORD_TRIES` is
finished, under its budget. All unfinished instances advance together, one try per step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools, offsets_of, ranges
from corpusforge.instances.mask_units import Choice, Choose, MaskUnit, Runs, Words, budgets_of, words_of

NGRAM_SHARES = (6 / 11, 3 / 11, 2 / 11)
"""1, 2 and 3 words: p(n) is proportional to 1/n (ALBERT, section 3.1, equation 1)."""

GEOMETRIC, LONGEST_SPAN = 0.2, 10
"""SpanBERT, section 3.1: lengths are geometric with p = 0.2, at most 10 words; renormalized, their mean is 3.8."""

TRIES, WORD_TRIES = 8, 24
"""Places tried for a run of one length, and for a single word, before an instance is finished. Ours: with 15 %
masked one long span in a thousand is halved, and with 40 % fewer than 2 in 100 instances end under their budget."""

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def span_shares() -> tuple[float, ...]:
    """The share of each length from 1 on.

    >>> round(sum(n * share for n, share in enumerate(span_shares(), 1)), 2)
    3.8
    """
    raw = [(1 - GEOMETRIC) ** (n - 1) * GEOMETRIC for n in range(1, LONGEST_SPAN + 1)]
    return tuple(share / sum(raw) for share in raw)


def thresholds(shares: tuple[float, ...]) -> U64:
    """A draw of 32 bits below threshold k and not below those before means length k + 1; the last is 2**32."""
    sums = np.rint(np.cumsum(shares) * 2.0**32).astype(np.uint64)
    sums[-1] = 1 << 32
    return sums


def run_lengths(keys: U64, numbers: I64, limits: U64) -> I64:
    """The lengths drawn for the runs of these numbers of instances."""
    draws = seeds.words(0, "mask-length", keys, numbers.view(np.uint64)) >> _HALF
    return np.searchsorted(limits, draws, "right") + 1


class _State(NamedTuple):
    """The state of each unfinished instance, ``[n]``: its row, words and where they begin, tokens left, the length of
    the next run, runs placed, steps taken, tries for this length."""

    row: I64
    first: I64
    words: I64
    left: I64
    length: I64
    placed: I64
    step: I64
    tries: I64


def choose_runs(keys: U64, words: Words, budgets: I64, shares: tuple[float, ...]) -> Runs:
    """Runs whose lengths have these shares, from 1 word on: at most ``budgets[i]`` tokens of instance i.

    ``keys``: ``[n]``, random numbers of the instances.
    """
    limits = thresholds(shares)
    tokens = offsets_of(words.sizes)
    breaks = np.ones(len(words.begins), np.int64)
    breaks[1:] = words.begins[1:] != words.begins[:-1] + words.sizes[:-1]
    stretch = np.append(np.cumsum(breaks), 0)  # words of one stretch follow each other without a gap
    covered = np.zeros(len(words.begins) + len(shares) + 1, bool)
    lengths = np.zeros(len(words.begins), np.int64)
    state = _begin(keys, words, budgets, limits)
    while len(state.row):
        wanted = _wanted(state)
        start = _places(keys[state.row], state, wanted)
        longest = np.searchsorted(tokens, tokens[start] + state.left, "right") - 1 - start
        length = np.minimum(wanted, longest)
        good = (length > 0) & (stretch[start] == stretch[start + length - 1]) & ~_overlap(covered, start, length)
        begins, sizes = start[good], length[good]
        lengths[begins] = sizes
        for k in range(int(sizes.max(initial=0))):  # at most ten words
            covered[begins[sizes > k] + k] = True
        state = _next(keys, state, good, np.where(good, tokens[start + length] - tokens[start], 0), limits)
    begins = np.flatnonzero(lengths)
    return Runs(begins, lengths[begins])


def _begin(keys: U64, words: Words, budgets: I64, limits: U64) -> _State:
    counts = np.diff(words.bounds)
    rows = np.flatnonzero((budgets > 0) & (counts > 0))
    none = np.zeros(len(rows), np.int64)
    length = run_lengths(keys[rows], none, limits)
    return _State(rows, words.bounds[rows], counts[rows], budgets[rows], length, none, none, none)


def _wanted(state: _State) -> I64:
    """Words of the next run: no more than the instance has, or the budget has tokens."""
    return np.asarray(np.minimum(np.minimum(state.length, state.left), state.words))


def _places(keys: U64, state: _State, wanted: I64) -> I64:
    """A word for each instance, uniform among those at which the run would fit into the instance."""
    room = state.words - wanted + 1
    draws = seeds.words(0, "mask-place", keys, state.step.view(np.uint64))
    return state.first + (((draws & _LOW) * room.view(np.uint64)) >> _HALF).view(np.int64)


def _overlap(covered: Bools, start: I64, length: I64) -> Bools:
    """Whether a word of the run is masked already."""
    is_covered = np.zeros(len(start), bool)
    for k in range(int(length.max(initial=0))):
        is_covered |= covered[start + k] & (k < length)
    return is_covered


def _next(keys: U64, state: _State, good: Bools, used: I64, limits: U64) -> _State:
    """The state after a step, without the instances that are finished."""
    tries = np.where(good, 0, state.tries + 1)
    wanted = _wanted(state)
    exhausted = tries >= np.where(wanted == 1, WORD_TRIES, TRIES)
    given_up = exhausted & (wanted == 1)
    placed = state.placed + good
    fresh = run_lengths(keys[state.row], placed, limits)
    halved = np.where(exhausted, np.maximum(wanted // 2, 1), state.length)
    length = np.where(good, fresh, halved)
    moved = _State(
        state.row,
        state.first,
        state.words,
        state.left - used,
        length,
        placed,
        state.step + 1,
        np.where(exhausted, 0, tries),
    )
    unfinished = np.flatnonzero((moved.left > 0) & ~given_up)
    return _State(*(column[unfinished] for column in moved))


def _runs_of(shares: tuple[float, ...]) -> Choose:
    """What chooses runs whose lengths have these shares."""

    def choose(keys: U64, maskable: Bools, word_starts: Bools | None, offsets: I64, budgets: I64) -> Choice:
        assert word_starts is not None
        words = words_of(maskable, word_starts, offsets)
        runs = choose_runs(keys, words, budgets_of(maskable, offsets, budgets), shares)
        ends = offsets_of(words.sizes)
        sizes = ends[runs.begins + runs.lengths] - ends[runs.begins]
        begins = words.begins[runs.begins]
        return Choice(ranges(begins, sizes), Runs(begins, sizes))

    return choose


_AT_ONCE = 1 << 19  # the steps cost the same for few instances as for many

UNITS = {
    "ngram": MaskUnit(_runs_of(NGRAM_SHARES), has_runs=True, tokens_at_once=_AT_ONCE),
    "span": MaskUnit(_runs_of(span_shares()), rounds_up=True, has_runs=True, once_a_run=True, tokens_at_once=_AT_ONCE),
}
