"""Ragged columns: edge cases beyond the examples in the docstrings."""

from __future__ import annotations

import numpy as np

from corpusforge.arrays import ranges


def test_ranges_of_nothing() -> None:
    assert ranges(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []
