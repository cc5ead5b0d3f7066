"""NumPy arrays of rows of different lengths, and the array types that the package uses.

A ragged column is one flat array and its offsets: row i owns ``values[offsets[i]:offsets[i + 1]]``, as in Arrow's
lists. Lengths, offsets and positions are int64.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

T = TypeVar("T", bound=np.generic)


def offsets_of(lengths: npt.NDArray[np.integer | np.bool_]) -> I64:
    """The ``n + 1`` offsets of rows from their ``n`` lengths: sums from 0 on, true as 1.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def slices(offsets: I64, size: int) -> list[tuple[int, int]]:
    """Cut rows into runs of at most ``size`` values, or of one row: ``[(first row, one after the last)]``.

    >>> slices(np.array([0, 4, 8, 20, 21]), 8)
    [(0, 2), (2, 3), (3, 4)]
    """
    rows, first = len(offsets) - 1, 0
    cuts: list[tuple[int, int]] = []
    while first < rows:  # one step for each run, not for each row
        stop = int(np.searchsorted(offsets, offsets[first] + size, "right")) - 1
        stop = min(max(stop, first + 1), rows)
        cuts.append((first, stop))
        first = stop
    return cuts


def ranges(starts: I64, lengths: I64) -> I64:
    """All numbers of the ranges ``[starts[i], starts[i] + lengths[i])``, one range after another.

    >>> ranges(np.array([7, 0]), np.array([2, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    offsets = offsets_of(lengths)
    numbers = np.arange(offsets[-1])
    numbers += np.repeat(starts - offsets[:-1], lengths)
    return numbers


def move(values: npt.NDArray[T], lengths: I64, target: npt.NDArray[T], starts: I64) -> None:
    """Copy the rows of ``values``, which are contiguous, to ``starts`` in ``target``.

    Done in runs, because indices take four times the memory of 16-bit ids.
    """
    offsets = offsets_of(lengths)
    for first, stop in slices(offsets, 1 << 20):
        rows = values[offsets[first] : offsets[stop]]
        target[ranges(starts[first:stop], lengths[first:stop])] = rows


def repeated_rows(keys: U64) -> I64:
    """The rows whose key occurs more than once, in the order of their keys.

    >>> repeated_rows(np.array([7, 5, 7, 6, 5], np.uint64)).tolist()
    [1, 4, 0, 2]
    """
    order = np.argsort(keys)
    ascending = keys[order]
    equal = ascending[1:] == ascending[:-1]
    repeated = np.zeros(len(keys), np.bool_)
    repeated[1:] = equal
    repeated[:-1] |= equal
    return order[repeated]


def run_starts(*columns: npt.NDArray[Any]) -> Bools:
    """Which rows begin a run of equal rows of these columns.

    >>> run_starts(np.array([5, 5, 7]), np.array([1, 1, 1])).tolist()
    [True, False, True]
    """
    starts = np.zeros(len(columns[0]), np.bool_)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


pandas_is_spared = False
"""Whether `spare_pandas` was called in this process."""


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas in this process, which would take a quarter of a second and 47 MB.

    The first `pyarrow.array` of a list imports pandas, if it is installed, to test whether the list is a Series.
    `Table.to_pandas` keeps working.
    """
    import pyarrow as pa

    global pandas_is_spared
    pandas_is_spared = True
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas(MetaPathFinder):
    @classmethod
    def find_spec(cls, fullname: str, *_: object) -> None:  # type: ignore[override]
        if fullname == "pandas":
            raise ImportError(fullname)
