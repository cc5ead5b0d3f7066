"""Which band hashes are shared, against counting, and the memory that is planned by it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.dedupe import lsh, pairs
from corpusforge.dedupe.lsh import bucket_pairs, count_pairs
from corpusforge.dedupe.pairs import Shared, SharedSlots, Slots, find_shared, shared_width, write_shared
from tests.draws import draws

LOW = np.uint64(0xFFFFFFFF)


@given(st.lists(st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([5, 2**31, 2**32 - 1])), max_size=4))
def test_shared_marks_equal_counting(blocks: list[list[int]]) -> None:
    width = 10
    found = find_shared((np.array(block, "<u4").tobytes() for block in blocks), width)
    counts = Counter(mark for block in blocks for mark in block)
    heads = {mark >> 32 - width for mark, count in counts.items() if count > 1}
    bits = np.unpackbits(np.frombuffer(found.bits, np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == heads
    assert found.hashes == sum(count for mark, count in counts.items() if mark >> 32 - width in heads)
    assert found.pairs == count_pairs(np.array(list(counts.values()), np.int64))


@given(st.lists(st.integers(1, 60), max_size=6))
@draws(50)
def test_pairs_are_as_many_as_counted(sizes: list[int]) -> None:
    buckets = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    assert len(bucket_pairs(buckets, (np.arange(len(buckets)),))) == count_pairs(np.array(sizes, np.int64))
    assert lsh.NEIGHBORS * 2 < 60


def test_every_shared_hash_passes_and_few_others_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    hashes = random.integers(0, 2**64, 40_000, dtype=np.uint64)
    shared = np.concatenate([hashes[:2000], hashes])
    slots = Slots(5, 3)
    width = shared_width(len(shared), slots)
    known = SharedSlots(str(tmp_path), slots, width)
    slot = slots.of(shared)
    counted = [0, 0]
    for number in np.unique(slot).tolist():
        found = find_shared([(shared[slot == number] & LOW).astype("<u4").tobytes()], width)
        write_shared(str(tmp_path), number, found)
        counted = [counted[0] + found.hashes, counted[1] + found.pairs]
    ascending = shared[np.argsort(slot, kind="stable")]
    passing = ascending[known.contain(ascending)]
    assert set(hashes[:2000].tolist()) <= set(passing.tolist())
    assert len(passing) < 4000 + 0.06 * len(shared)
    assert known.counts() == (len(passing), 2000)
    assert sorted(set(slot.tolist())) == list(range(15))
    read, reads = pairs.read_shared, list[int]()

    def reading(folder: str, slot: int) -> Shared:
        reads.append(slot)
        return read(folder, slot)

    monkeypatch.setattr(pairs, "read_shared", reading)
    assert shared[known.contain(shared)].tolist() == shared[np.isin(shared, passing)].tolist()
    assert reads == list(range(15)), "in any order of hashes every slot is read once"


def test_slots_are_ranges_of_the_hash() -> None:
    hashes = np.sort(np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64))
    found = Slots(7, 4).of(hashes)
    assert (np.diff(found) >= 0).all()
    assert found.min() == 0
    assert found.max() == 27
