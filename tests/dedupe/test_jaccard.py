"""Jaccard similarities against Python sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.dedupe import minhash as room
from corpusforge.dedupe.minhash import Sets, jaccard


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 30), st.sampled_from([1, 50, room._CELLS]))
def test_equals_sets(seed: int, pairs: int, longest: int, cells: int) -> None:
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        hashes = random.integers(0, 40, 200, dtype=np.uint32) | np.uint32(1)
        starts = random.integers(0, 200 - longest, pairs)
        sides += [hashes, starts, starts + random.integers(1, longest + 1, pairs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_CELLS", cells)
        found = jaccard(Sets(*sides[:3]), Sets(*sides[3:]))
    for row in range(pairs):
        left, right = (set(sides[k][sides[k + 1][row] : sides[k + 2][row]].tolist()) for k in (0, 3))
        assert found[row] == np.float32(len(left & right) / len(left | right))


def test_large_hashes_stay_apart() -> None:
    hashes = np.array([2**32 - 1, 2**32 - 3, 1, 3], np.uint32)
    zero, two, four = np.array([0]), np.array([2]), np.array([4])
    assert jaccard(Sets(hashes, zero, two), Sets(hashes, two, four)).tolist() == [0]
    assert jaccard(Sets(hashes, zero, four), Sets(hashes, zero, two)).tolist() == [0.5]
