"""Packed rows: every instance once, none cut, rows as full as best fit makes them."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.loader.packing import BatchSettings, Packs, best_fit, cut_by_length, deal, pack
from tests.oracles import packing as oracle


def row_lengths(packs: Packs, lengths: np.ndarray) -> list[list[int]]:
    bounds = packs.offsets.tolist()
    return [lengths[packs.ranks[a:b]].tolist() for a, b in itertools.pairwise(bounds)]


def descending(lengths: list[int]) -> np.ndarray:
    return np.sort(np.array(lengths, np.int32))[::-1]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(40, 120))
def test_best_fit_is_best_fit(lengths: list[int], room: int) -> None:
    sizes = descending(lengths)
    packs = best_fit(sizes, room)
    assert sorted(packs.ranks.tolist()) == list(range(len(lengths)))
    expected = oracle.best_fit(lengths, room)
    assert sorted(map(sum, row_lengths(packs, sizes))) == sorted(map(sum, expected))  # ties: rows equally full


@given(st.lists(st.integers(1, 64), min_size=1, max_size=400), st.integers(64, 2000))
def test_every_instance_is_in_one_row_and_no_row_is_too_full(lengths: list[int], room: int) -> None:
    sizes = descending(lengths)
    packs = pack(sizes, room)
    assert sorted(packs.ranks.tolist()) == list(range(len(lengths)))
    rows = row_lengths(packs, sizes)
    assert all(0 < sum(row) <= room for row in rows)
    # Two neighbors that fit into one row would be one: best fit leaves at most one row half empty.
    assert len(rows) <= max(1, -(-2 * sum(lengths) // room))


@pytest.mark.parametrize("room", [2048, 16_384])
def test_long_rows_are_full_and_similar(room: int) -> None:
    rng = np.random.default_rng(0)
    lengths = descending(np.minimum(np.maximum(rng.lognormal(5, 1, 30_000).astype(int), 5), 512).tolist())
    rows = row_lengths(pack(lengths, room), lengths)
    assert lengths.sum() / (len(rows) * room) > 0.98
    if room == 16_384:  # no row holds long instances only, or short ones only
        means = [np.mean(row) for row in rows]
        assert max(means) < 1.3 * min(means)


@pytest.mark.slow
@pytest.mark.parametrize(("longest", "room"), [(128, 4096), (128, 16_384), (512, 8192), (512, 16_384)])
def test_real_lengths_fill_rows(shared_data: Path, longest: int, room: int) -> None:
    """Words of the paragraphs of Wikipedia articles, long ones cut, as instances have them."""
    sizes = []
    with gzip.open(shared_data / "text_en/enwiki2018-dev.jsonl.gz") as file:
        for line in itertools.islice(file, 10_000):
            words = [len(paragraph.split()) for paragraph in json.loads(line)["text"].split("\n")]
            words = [n for n in words if n]
            sizes += [size for n in words for size in [longest] * (n // (longest - 2)) + [n % (longest - 2) + 2]]
    lengths = descending(sizes)
    rows = row_lengths(pack(lengths, room), lengths)
    assert len(rows) > 60  # else the last, unfinished row would count for too much
    assert lengths.sum() / (len(rows) * room) > 0.98


def test_packing_takes_no_step_for_each_instance() -> None:
    lengths = descending(np.random.default_rng(0).integers(3, 129, 1_000_000).tolist())
    rows = pack(lengths, 128)
    assert lengths.sum() / (len(rows) * 128) > 0.98


@given(st.lists(st.integers(3, 128), min_size=1, max_size=200), st.integers(128, 4096))
@example([3, 3, 3, 17, 25, 49], 336)  # one cut leaves another to be made
def test_cuts_keep_the_budget_and_bound_padding(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, np.int64)
    groups = cut_by_length(sizes, -(-sizes // 8) * 8, budget)
    assert sorted(np.concatenate(groups)) == list(range(len(lengths)))
    for group in groups:
        longest = -(-int(sizes[group].max()) // 8) * 8
        assert longest * len(group) <= budget
        for cut in range(1, len(group)):  # no cut would have saved an eighth of the budget
            rest = -(-int(sizes[group[cut:]].max()) // 8) * 8
            assert (longest - rest) * (len(group) - cut) * 8 < budget


@given(st.lists(st.integers(3, 128), min_size=1, max_size=300), st.integers(16, 4096))
def test_rows_are_dealt_out_evenly(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, np.int64)
    groups = deal(sizes, budget)
    assert sorted(np.concatenate(groups)) == list(range(len(lengths)))
    loads, counts = [int(sizes[group].sum()) for group in groups], [len(group) for group in groups]
    assert max(counts) - min(counts) <= 1
    assert max(loads) - min(loads) <= 128
    assert max(loads) <= budget + 128
    for group in groups:
        assert (np.diff(sizes[group]) <= 0).all()


@given(st.lists(st.integers(3, 64), min_size=1, max_size=80), st.integers(64, 400), st.sampled_from([0, 64, 80]))
def test_groups_hold_every_instance_once(lengths: list[int], budget: int, row_length: int) -> None:
    sizes, budget = np.array(lengths, np.int64), max(budget, row_length)
    for packing in (False, True):
        settings = BatchSettings(400, budget, packing=packing, row_length=row_length)
        groups = settings.groups(sizes)
        assert sorted(np.concatenate([group.rows for group in groups])) == list(range(len(lengths)))
        for group in groups:
            members = np.ones(len(group.rows), int) if group.members is None else group.members
            rows = [int(some.sum()) for some in np.split(sizes[group.rows], np.cumsum(members)[:-1])]
            assert 0 < min(rows) <= max(rows) <= group.width
            assert group.size == len(rows) * group.width
            assert group.size <= budget or (packing and not row_length and group.size <= budget + 64)
