"""Rows of different lengths in one flat array: positions of many ranges at once.

Row i of a flat array owns ``values[offsets[i]:offsets[i + 1]]``. Everything here is int64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


def offsets_of(lengths: npt.NDArray[np.integer]) -> I64:
    """The ``n + 1`` offsets of rows from their ``n`` lengths.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: I64, lengths: I64) -> I64:
    """All numbers of the ranges ``[starts[i], starts[i] + lengths[i])``, one range after another.

    >>> ranges(np.array([7, 0]), np.array([2, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    offsets = offsets_of(lengths)
    numbers = np.arange(offsets[-1])
    numbers += np.repeat(starts - offsets[:-1], lengths)
    return numbers
