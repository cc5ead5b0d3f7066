"""Chosen pieces of one buffer, copied out in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.text import I64


def gather(data: npt.NDArray[np.uint8], starts: I64, stops: I64) -> pa.BinaryArray:
    """The bytes ``data[starts[i]:stops[i]]`` as a column; pieces ascend and do not overlap, and may be empty.

    >>> data = np.frombuffer(b"one two three", np.uint8)
    >>> gather(data, np.array([0, 8]), np.array([3, 13])).to_pylist()
    [b'one', b'three']
    """
    if not len(starts):
        return pa.array([], pa.binary())
    # The buffer is seen as pieces and what lies between them, in turn; Arrow's filter copies the pieces.
    bounds = np.column_stack([starts, stops]).astype(np.int32).ravel()
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    column = pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, buffers)
    is_piece = np.zeros(len(column), np.bool_)
    is_piece[::2] = True
    return column.filter(pa.array(is_piece))


def without(data: npt.NDArray[np.uint8], offsets: I64, starts: I64, stops: I64) -> pa.StringArray:
    """The texts ``data[offsets[i]:offsets[i + 1]]`` without the bytes of the regions ``starts[j]:stops[j]``.

    Regions ascend, do not overlap, and do not reach from one text into the next.

    >>> data = np.frombuffer(b"one two three", np.uint8)
    >>> without(data, np.array([0, 7, 13]), np.array([2, 7]), np.array([5, 8])).to_pylist()
    ['onwo', 'three']
    """
    outside = gather(data, np.concatenate([offsets[:1], stops]), np.concatenate([starts, offsets[-1:]]))
    removed = np.concatenate([[0], np.cumsum(stops - starts)])
    left = offsets - offsets[0] - removed[np.searchsorted(starts, offsets)]
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(left.astype(np.int32)), outside.buffers()[2])
