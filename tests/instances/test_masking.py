"""Masks: against the oracle, exact counts, shares, and independence of how instances are batched."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import seeds
from corpusforge.arrays import offsets_of
from corpusforge.instances.masking import Masker, MaskSettings, Specials, mask_counts
from tests.draws import draws
from tests.instances.token_batches import SIZE, SPECIALS
from tests.oracles.mask_words import mask_one


def instances(lengths, seed=0):
    """Flat ids ``[CLS] words [SEP]`` of these lengths, offsets and keys."""
    offsets = offsets_of(np.array(lengths, np.int64))
    ids = np.random.default_rng(seed).integers(1000, 30_000, int(offsets[-1])).astype(np.uint16)
    ids[offsets[:-1]], ids[offsets[1:] - 1] = SPECIALS.cls, SPECIALS.sep
    keys = seeds.instance_keys(
        np.arange(len(lengths), dtype=np.uint64) // 3, np.arange(len(lengths), dtype=np.uint32) % 3
    )
    return ids, offsets, keys


def rows(masked, offsets):
    """(seen ids, positions, labels) of each instance as lists."""
    cuts = masked.position_offsets
    return [
        (
            masked.input_ids[offsets[i] : offsets[i + 1]].tolist(),
            masked.positions[cuts[i] : cuts[i + 1]].tolist(),
            masked.labels[cuts[i] : cuts[i + 1]].tolist(),
        )
        for i in range(len(offsets) - 1)
    ]


@draws(60)
@given(
    lengths=st.lists(st.integers(2, 70), min_size=1, max_size=12),
    rate=st.sampled_from([0.0, 0.1, 0.15, 0.4, 0.9, 1.0]),
    cap=st.sampled_from([0, 1, 5]),
    epoch=st.integers(0, 2**20),
    seed=st.integers(0, 2**63 - 1),
    scatter=st.floats(0, 1),
)
def test_equals_the_oracle(lengths, rate, cap, epoch, seed, scatter):
    ids, offsets, keys = instances(lengths)
    ids[np.random.default_rng(1).random(len(ids)) < scatter / 2] = SPECIALS.unk  # also instances with nothing to mask
    wanted = MaskSettings(rate=rate, max_predictions=cap)
    masked = Masker(SPECIALS, wanted, seed)(ids, offsets, keys, epoch)
    special, words = set(np.flatnonzero(SPECIALS.is_special()).tolist()), SPECIALS.words().tolist()
    for i, row in enumerate(rows(masked, offsets)):
        own = ids[offsets[i] : offsets[i + 1]].tolist()
        expected = mask_one(
            own,
            int(keys[i]),
            special=special,
            words=words,
            mask_id=SPECIALS.mask,
            seed=seed,
            epoch=epoch,
            settings=wanted,
        )
        assert row == expected


def test_counts_are_exactly_berts():
    lengths = np.arange(2, 513)
    assert mask_counts(lengths, MaskSettings()).tolist() == [max(1, round(n * 0.15)) for n in lengths.tolist()]
    assert mask_counts(lengths, MaskSettings(max_predictions=20)).max() == 20
    assert mask_counts(lengths, MaskSettings(rate=0.0)).sum() == 0


def test_an_instance_short_of_words_has_all_of_them_masked():
    ids = np.array([101, 100, 100, 5000, 100, 100, 100, 100, 100, 100, 100, 100, 100, 102], np.uint16)
    masked = Masker(SPECIALS, MaskSettings(), 0)(ids, np.array([0, 14]), np.array([3], np.uint64))
    assert masked.positions.tolist() == [3]
    assert masked.labels.tolist() == [5000]


def test_nothings_are_fine():
    empty = np.zeros(0, np.uint16)
    masked = Masker(SPECIALS, MaskSettings(), 0)(empty, np.zeros(1, np.int64), np.zeros(0, np.uint64))
    assert len(masked.input_ids) == len(masked.positions) == len(masked.labels) == 0
    assert masked.position_offsets.tolist() == [0]


def test_input_is_not_changed():
    ids, offsets, keys = instances([128] * 10)
    before = ids.copy()
    masked = Masker(SPECIALS, MaskSettings(), 1)(ids, offsets, keys)
    assert (ids == before).all()
    assert (masked.input_ids != before).any()


def test_nothing_depends_on_batching_or_order():
    lengths = np.random.default_rng(3).integers(3, 200, 4000).tolist()  # more than one slice
    ids, offsets, keys = instances(lengths)
    masker = Masker(SPECIALS, MaskSettings(), 11)
    whole = rows(masker(ids, offsets, keys, 4), offsets)
    order = np.random.default_rng(4).permutation(len(lengths))
    for some in np.array_split(order, 7):
        own = np.concatenate([ids[offsets[i] : offsets[i + 1]] for i in some])
        own_offsets = offsets_of(np.diff(offsets)[some])
        found = rows(masker(own, own_offsets, keys[some], np.full(len(some), 4, np.uint64)), own_offsets)
        assert found == [whole[i] for i in some]


def test_epochs_and_seeds_differ_and_mixed_epochs_agree():
    ids, offsets, keys = instances([128] * 50)
    masker = Masker(SPECIALS, MaskSettings(), 1)
    zero, one = masker(ids, offsets, keys, 0), masker(ids, offsets, keys, 1)
    other = Masker(SPECIALS, MaskSettings(), 2)(ids, offsets, keys, 0)
    assert (zero.positions != one.positions).mean() > 0.9
    assert (zero.positions != other.positions).mean() > 0.9
    mixed = rows(masker(ids, offsets, keys, np.arange(50, dtype=np.uint64) % 2), offsets)
    assert mixed == [(rows(zero, offsets), rows(one, offsets))[i % 2][i] for i in range(50)]


def test_shares_and_positions_are_uniform():
    ids, offsets, keys = instances([128] * 20_000)
    masked = Masker(SPECIALS, MaskSettings(), 5)(ids, offsets, keys)
    n = len(masked.labels)
    assert n == 20_000 * 19
    seen = masked.input_ids[masked.positions + np.repeat(offsets[:-1], 19)]
    for share, found in ((0.8, seen == SPECIALS.mask), (0.1, seen == masked.labels)):
        assert abs(found.sum() - share * n) < 5 * math.sqrt(n * share * (1 - share))
    histogram = np.bincount(masked.positions, minlength=128)
    assert histogram[0] == histogram[127] == 0
    expected = n / 126
    chi_square = ((histogram[1:127] - expected) ** 2 / expected).sum()
    assert chi_square < 125 + 6 * math.sqrt(2 * 125)


def test_random_tokens_are_words_and_all_words():
    small = Specials(60, pad=0, unk=1, cls=2, sep=3, mask=4, unused=(50, 59))
    ids = np.full(64 * 500, 20, np.uint16)
    offsets, keys = np.arange(501) * 64, np.arange(500, dtype=np.uint64)
    masked = Masker(small, MaskSettings(mask_share=0.0, random_share=1.0), 0)(ids, offsets, keys)
    drawn = masked.input_ids[masked.positions + np.repeat(offsets[:-1], 10)]
    assert set(drawn.tolist()) == set(range(5, 60)) - {50, 59}


def test_units_that_are_not_built_are_refused():
    with pytest.raises(ValueError, match="sentence"):
        Masker(SPECIALS, MaskSettings(unit="sentence"), 0)


def test_large_vocabularies_take_32_bits():
    big = Specials(100_000, pad=0, unk=100, cls=101, sep=102, mask=103)
    ids = np.full(4000, 90_000, np.uint32)
    masked = Masker(big, MaskSettings(), 0)(ids, np.array([0, 4000]), np.array([1], np.uint64))
    assert masked.input_ids.dtype == masked.labels.dtype == np.uint32
    assert masked.input_ids.max() > SIZE
    assert len(masked.labels) == 600
