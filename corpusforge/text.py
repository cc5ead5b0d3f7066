"""Columns of text: flatten to rows, judge rows, regroup by offsets; and where sentences end.

The unit is an Arrow string column. *Flatten* turns documents into one long column of lines or byte spans, vectorised
kernels *judge* every row, *regroup* goes back by offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


class Rows(NamedTuple):
    """Values of many documents in one column; document i owns ``values[offsets[i]:offsets[i + 1]]``."""

    values: pa.StringArray
    offsets: I64


class Spans(NamedTuple):
    """Byte spans in one buffer; document i owns spans ``offsets[i]`` to ``offsets[i + 1]``.

    ``data``: the UTF-8 bytes of all documents; span j is ``data[starts[j]:stops[j]]``, trimmed of white space, never
    empty; every character that is no white space lies in exactly one span. ``bases[i]``: where document i begins in
    ``data``.
    """

    data: U8
    starts: I64
    stops: I64
    offsets: I64
    bases: I64


def text_bytes(text: pa.StringArray) -> tuple[U8, I64]:
    """The UTF-8 bytes of a column and its ``n + 1`` offsets into them, without copying."""
    offsets = np.frombuffer(text.buffers()[1], np.int32, len(text) + 1, text.offset * 4).astype(np.int64)
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    return data, offsets
