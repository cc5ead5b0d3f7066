"""Bands, their hashes and the pairs of a bucket."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.dedupe import lsh
from corpusforge.dedupe.lsh import Bands, band_hashes, bands_for, bucket_pairs, count_pairs, similarity
from corpusforge.dedupe.pairs import find_shared
from tests.draws import draws


@pytest.mark.parametrize("permutations", [1, 2, 16, 64, 112, 128])
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9])
def test_bands_are_those_of_datasketch(threshold: float, permutations: int) -> None:
    peer = pytest.importorskip("datasketch.lsh")
    assert tuple(bands_for(threshold, permutations)) == peer._optimal_param(threshold, permutations, *lsh.WEIGHTS)


def test_bands_are_those_of_datatrove() -> None:
    assert bands_for(0.8, 112) == Bands(14, 8)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 300),
    st.sampled_from([Bands(1, 1), Bands(3, 5), Bands(16, 4), Bands(9, 7)]),
)
@draws(60)
def test_band_hashes_are_equal_exactly_where_bands_are(seed: int, count: int, bands: Bands) -> None:
    signatures = np.random.default_rng(seed).integers(0, 3, (count, 64), dtype=np.uint32)
    hashes = band_hashes(signatures, bands)
    assert hashes.shape == (count, bands.bands)
    groups: dict[tuple[int, ...], set[int]] = {}
    for signature, row in zip(signatures.tolist(), hashes.tolist(), strict=True):
        for band, value in enumerate(row):
            key = (band, *signature[band * bands.rows : (band + 1) * bands.rows])
            groups.setdefault(key, set()).add(value)
    assert all(len(values) == 1 for values in groups.values())
    assert len({value for values in groups.values() for value in values}) == len(groups)


def test_band_hashes_do_not_depend_on_batches() -> None:
    signatures = np.random.default_rng(0).integers(0, 2**32, (9000, 64), dtype=np.uint32)
    hashes = band_hashes(signatures, Bands(9, 7))
    assert (
        np.concatenate([band_hashes(signatures[a : a + 777], Bands(9, 7)) for a in range(0, 9000, 777)]) == hashes
    ).all()


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_pairs_meet_as_often_as_in_theory(threshold: float) -> None:
    """Signatures that agree in each position with a probability of s."""
    bands, count = bands_for(threshold, 64), 20_000
    for s in (threshold - 0.2, threshold, threshold + 0.1):
        random = np.random.default_rng(int(s * 100))
        left = random.integers(0, 2**32, (count, 64), dtype=np.uint32)
        right = np.where(random.random((count, 64)) < s, left, left + np.uint32(1))
        met = (band_hashes(left, bands) == band_hashes(right, bands)).any(axis=1).mean()
        assert abs(met - bands.recall(s)) < 4 * np.sqrt(0.25 / count)
        assert abs(similarity(left, right).mean() - s) < 0.005


def oracle_pairs(buckets: list[int], order: list[int]) -> set[tuple[int, int]]:
    pairs = set()
    for bucket in set(buckets):
        rows = sorted((order[i], i) for i, b in enumerate(buckets) if b == bucket)
        members = [i for _, i in rows]
        for k, member in enumerate(members):
            before = members[max(0, k - lsh.NEIGHBORS) : k]
            pairs |= {(other, member) for other in before + members[: min(k, lsh.NEIGHBORS)]}
    return pairs


@given(st.lists(st.integers(0, 5), max_size=60), st.randoms())
def test_pairs_equal_the_oracle_in_any_order(buckets: list[int], random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(buckets)))
    random.shuffle(order)
    rows = bucket_pairs(np.array(buckets, np.uint64), (np.array(order, np.int64),))
    pairs = [tuple(pair) for pair in rows.tolist()]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == oracle_pairs(buckets, order)


def test_small_buckets_are_complete_and_large_ones_linear() -> None:
    whole = 2 * lsh.NEIGHBORS + 1
    pairs = bucket_pairs(np.zeros(whole, np.uint64), (np.arange(whole),))
    assert {tuple(p) for p in pairs.tolist()} == set(itertools.combinations(range(whole), 2))
    assert len(bucket_pairs(np.zeros(100_000, np.uint64), (np.arange(100_000),))) <= 2 * lsh.NEIGHBORS * 100_000


def test_a_pair_of_two_bands_is_listed_once() -> None:
    buckets = np.array([1, 2, 1, 2], np.uint64)
    rows = np.array([0, 0, 1, 1])
    pairs = rows[bucket_pairs(buckets, (rows,))]
    assert pairs.tolist() == [[0, 1], [0, 1]]  # rows of the caller; it is the caller's to fuse them by item


@given(st.lists(st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([5, 2**31, 2**32 - 1])), max_size=4))
def test_shared_marks_equal_counting(blocks: list[list[int]]) -> None:
    width = 10
    shared = find_shared((np.array(block, "<u4").tobytes() for block in blocks), width)
    counts = Counter(mark for block in blocks for mark in block)
    heads = {mark >> 32 - width for mark, count in counts.items() if count > 1}
    bits = np.unpackbits(np.frombuffer(shared.bits, np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == heads
    assert shared.hashes == sum(count for mark, count in counts.items() if mark >> 32 - width in heads)
    assert shared.pairs == count_pairs(np.array(list(counts.values()), np.int64))


@given(st.lists(st.integers(1, 60), max_size=6))
@draws(50)
def test_pairs_are_as_many_as_counted(sizes: list[int]) -> None:
    buckets = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    assert len(bucket_pairs(buckets, (np.arange(len(buckets)),))) == count_pairs(np.array(sizes, np.int64))
    assert lsh.NEIGHBORS * 2 < 60
