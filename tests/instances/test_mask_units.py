"""Whole words, n-grams and spans: against the oracle, budgets, whole units, and the published distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import seeds
from corpusforge.instances.mask_runs import NGRAM_SHARES, run_lengths, span_shares, thresholds
from corpusforge.instances.masking import Masked, Masker, MaskSettings
from tests.instances.test_masking import instances, rows
from tests.instances.token_batches import SPECIALS
from tests.oracles.mask_units import budget_of, mask_one

SPECIAL = set(np.flatnonzero(SPECIALS.is_special()).tolist())
WORDS = SPECIALS.words().tolist()
UNITS = ["whole-word", "ngram", "span"]


def spans_of(masked: Masked, row: int) -> list[list[int]]:
    assert masked.spans is not None and masked.span_offsets is not None
    return masked.spans[masked.span_offsets[row] : masked.span_offsets[row + 1]].tolist()


def starts_for(ids: np.ndarray, share: float, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random(len(ids)) < share


@given(
    lengths=st.lists(st.integers(2, 90), min_size=1, max_size=12),
    unit=st.sampled_from(UNITS),
    rate=st.sampled_from([0.0, 0.1, 0.15, 0.4, 0.9, 1.0]),
    cap=st.sampled_from([0, 1, 5]),
    epoch=st.integers(0, 2**20),
    seed=st.integers(0, 2**63 - 1),
    scatter=st.sampled_from([0.0, 0.05, 0.4, 1.0]),
    share=st.sampled_from([0.0, 0.2, 0.7, 1.0]),
)
def test_equals_the_oracle(lengths, unit, rate, cap, epoch, seed, scatter, share):
    ids, offsets, keys = instances(lengths)
    ids[np.random.default_rng(1).random(len(ids)) < scatter / 2] = SPECIALS.sep
    starts = starts_for(ids, share)
    wanted = MaskSettings(rate=rate, max_predictions=cap, unit=unit)
    masked = Masker(SPECIALS, wanted, seed)(ids, offsets, keys, epoch, starts)
    for i, row in enumerate(rows(masked, offsets)):
        own = slice(offsets[i], offsets[i + 1])
        expected = mask_one(
            ids[own].tolist(),
            starts[own].tolist(),
            int(keys[i]),
            special=SPECIAL,
            words=WORDS,
            mask_id=SPECIALS.mask,
            seed=seed,
            epoch=epoch,
            settings=wanted,
        )
        assert row == expected[:3]
        if unit != "whole-word":
            assert spans_of(masked, i) == expected[3]


@pytest.mark.parametrize("unit", UNITS)
def test_nothing_depends_on_batching_or_order(unit):
    lengths = np.random.default_rng(3).integers(3, 200, 3000).tolist()  # more than one slice
    ids, offsets, keys = instances(lengths)
    starts, masker = starts_for(ids, 0.7), Masker(SPECIALS, MaskSettings(unit=unit), 11)
    drawn = masker(ids, offsets, keys, 4, starts)
    expected = rows(drawn, offsets)
    for chosen in np.array_split(np.random.default_rng(4).permutation(len(lengths)), 5):
        own = np.concatenate([ids[offsets[i] : offsets[i + 1]] for i in chosen])
        own_starts = np.concatenate([starts[offsets[i] : offsets[i + 1]] for i in chosen])
        own_offsets = np.concatenate(([0], np.cumsum(np.diff(offsets)[chosen])))
        part = masker(own, own_offsets, keys[chosen], 4, own_starts)
        assert rows(part, own_offsets) == [expected[i] for i in chosen]
        if unit != "whole-word":
            assert [spans_of(part, k) for k in range(len(chosen))] == [spans_of(drawn, i) for i in chosen]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_budgets_are_nearly_always_used_up(unit, rate):
    ids, offsets, keys = instances([128] * 2000)
    wanted = MaskSettings(unit=unit, rate=rate)
    masked = Masker(SPECIALS, wanted, 0)(ids, offsets, keys, 0, starts_for(ids, 0.7))
    budget, counts = budget_of(ids[:128].tolist(), SPECIAL, wanted), np.diff(masked.position_offsets)
    assert counts.max() == budget
    assert (counts == budget).mean() > 0.98


def test_words_without_a_place_in_the_budget_leave_an_instance_bare():
    ids, offsets, keys = instances([12, 12])
    for unit in UNITS:
        masked = Masker(SPECIALS, MaskSettings(unit=unit), 0)(ids, offsets, keys, 0, np.zeros(24, bool))
        assert len(masked.positions) == 0


def test_nothings_are_fine():
    for unit in UNITS:
        nothing = np.zeros(0, np.uint16), np.zeros(1, np.int64), np.zeros(0, np.uint64)
        masked = Masker(SPECIALS, MaskSettings(unit=unit), 0)(*nothing, 0, np.zeros(0, bool))
        assert len(masked.input_ids) == len(masked.positions) == 0


def chi_square(counts: np.ndarray, shares: tuple[float, ...]) -> float:
    expected = np.array(shares) * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("shares", [NGRAM_SHARES, span_shares()])
def test_drawn_lengths_have_the_published_shares(shares):
    keys = seeds.words(0, "test", np.arange(20_000, dtype=np.uint64))
    lengths = run_lengths(np.repeat(keys, 10), np.tile(np.arange(10), 20_000), thresholds(shares))
    counts = np.bincount(lengths, minlength=len(shares) + 1)[1:]
    free = len(shares) - 1
    assert chi_square(counts, shares) < free + 5 * math.sqrt(2 * free)


def test_albert_and_spanbert_lengths():
    assert NGRAM_SHARES == (6 / 11, 3 / 11, 2 / 11)
    assert round(sum(n * share for n, share in enumerate(span_shares(), 1)), 2) == 3.80
    assert all(math.isclose(b / a, 0.8) for a, b in zip(span_shares(), span_shares()[1:], strict=False))


@pytest.mark.parametrize(("unit", "shares"), [("ngram", NGRAM_SHARES), ("span", span_shares())])
def test_lengths_of_what_is_masked(unit, shares):
    """Of a long instance nearly all runs are as long as drawn: only the last is cut by the budget."""
    length, count = 8192, 250
    ids, offsets, keys = instances([length] * count)
    masked = Masker(SPECIALS, MaskSettings(unit=unit), 5)(ids, offsets, keys, 0)
    sizes = masked.spans[:, 1] - masked.spans[:, 0]
    counts = np.bincount(sizes, minlength=len(shares) + 1)[1:]
    assert len(counts) == len(shares)
    free = len(shares) - 1
    # The last run of each of the 250 instances is cut to what is left, which chi-square sees.
    assert chi_square(counts, shares) < free + 6 * math.sqrt(2 * free) + 15
    mean = sum(n * share for n, share in enumerate(shares, 1))
    assert abs(sizes.mean() - mean) < 0.03


def test_whole_words_are_uniform():
    """Of words of one token each is masked as often as any other."""
    ids, offsets, keys = instances([128] * 10_000)
    masked = Masker(SPECIALS, MaskSettings(unit="whole-word"), 5)(ids, offsets, keys, 0)
    counts = np.bincount(masked.positions, minlength=128)
    assert counts[0] == counts[127] == 0
    assert chi_square(counts[1:127], (1 / 126,) * 126) < 125 + 6 * math.sqrt(2 * 125)


def test_shares_are_drawn_once_a_span():
    ids, offsets, keys = instances([256] * 4000)
    masked = Masker(SPECIALS, MaskSettings(unit="span"), 2)(ids, offsets, keys, 0)
    seen = masked.input_ids[masked.positions + np.repeat(offsets[:-1], np.diff(masked.position_offsets))]
    sizes = masked.spans[:, 1] - masked.spans[:, 0]
    firsts = np.cumsum(sizes) - sizes
    as_mask, kept = (
        np.add.reduceat(flag.astype(int), firsts) for flag in (seen == SPECIALS.mask, seen == masked.labels)
    )
    assert set(np.unique(as_mask / sizes).tolist()) == {0.0, 1.0}
    for share, whole in ((0.8, as_mask == sizes), (0.1, kept == sizes)):
        assert abs(whole.mean() - share) < 5 * math.sqrt(share * (1 - share) / len(sizes))
