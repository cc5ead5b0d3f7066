"""Map byte offsets in a text to the text before earlier methods of a chain cut parts of it.

Audit rows of every method refer to one text, the one that the user has, so that all cuts can be marked in it. The map
is a column of the documents, which travels with them from method to method.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I64, run_starts
from corpusforge.text import text_bytes

OFFSET_MAP = pa.field("offset_map", pa.list_(pa.int64()))
"""Pairs (offset in this text, offset in the text that came to the stage), one for each part that follows a cut,
ascending. Null: nothing was cut."""


def original_offsets(documents: pa.RecordBatch, rows: I64, offsets: I64) -> I64:
    """The offsets, in the texts that came to the stage, of bytes ``offsets[i]`` of the documents ``rows[i]``.

    >>> columns = {"text": ["abcdefg"], "offset_map": pa.array([[4, 9]], OFFSET_MAP.type)}
    >>> batch = pa.record_batch(columns)
    >>> original_offsets(batch, np.zeros(3, np.int64), np.array([0, 3, 5])).tolist()
    [0, 3, 10]
    """
    if OFFSET_MAP.name not in documents.schema.names:
        return offsets
    owners, at, before = _points(documents)
    nearest = np.searchsorted(_key(owners, at), _key(rows, offsets), "right") - 1
    moved: I64 = before[nearest] + offsets - at[nearest]
    return moved


def original_stops(documents: pa.RecordBatch, rows: I64, stops: I64) -> I64:
    """As `original_offsets`, for the ends of ranges: text that was cut right after a range is not part of it."""
    if OFFSET_MAP.name not in documents.schema.names:
        return stops
    return np.where(stops > 0, original_offsets(documents, rows, np.maximum(stops - 1, 0)) + 1, 0)


def with_offset_map(changed: pa.RecordBatch, documents: pa.RecordBatch, starts: I64, stops: I64) -> pa.RecordBatch:
    """``changed`` with the map of ``documents``, from whose text the regions ``starts[j]:stops[j]`` were cut.

    Regions are ranges of the text column's buffer; they ascend, do not overlap, and each lies in one document.
    """
    column = map_after_cut(documents, starts, stops)
    position = changed.schema.get_field_index(OFFSET_MAP.name)
    if position < 0:
        return changed.append_column(OFFSET_MAP, column)
    return changed.set_column(position, OFFSET_MAP, column)


def map_after_cut(documents: pa.RecordBatch, starts: I64, stops: I64) -> pa.ListArray:
    """The column `OFFSET_MAP` once the regions ``starts[j]:stops[j]`` are cut (`with_offset_map`)."""
    _, ends = text_bytes(documents.column("text"))
    starts, stops = starts[starts < stops], stops[starts < stops]
    removed = np.concatenate([[0], np.cumsum(stops - starts)])
    cut_owners = np.searchsorted(ends, starts, "right") - 1
    owners, at = np.arange(0), np.arange(0)
    if OFFSET_MAP.name in documents.schema.names:
        owners, at, _ = _points(documents)
        position = ends[owners] + at
        nearest = np.searchsorted(starts, position, "right") - 1  # a point in a cut region is dropped
        kept = (nearest < 0) | (position >= np.append(stops, 0)[nearest])
        owners, at = owners[kept], at[kept]
    owners, at = np.r_[owners, cut_owners], np.r_[at, stops - ends[cut_owners]]
    inside = ends[owners] + at < ends[owners + 1]
    owners, at = owners[inside], at[inside]
    order = np.lexsort((at, owners))
    owners, at = owners[order], at[order]
    before = original_offsets(documents, owners, at)
    cut = removed[np.searchsorted(starts, ends[owners] + at)] - removed[np.searchsorted(starts, ends[owners])]
    return _column(documents.num_rows, owners, at - cut, before)


def _points(documents: pa.RecordBatch) -> tuple[I64, I64, I64]:
    """Document, offset here and offset before of every part, the first of each document too, ascending."""
    column = documents.column(OFFSET_MAP.name)
    ends = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    pairs = column.values.to_numpy()[ends[0] : ends[-1]].reshape(-1, 2)
    count = documents.num_rows
    owners = np.r_[np.arange(count), np.repeat(np.arange(count), np.diff(ends) // 2)]
    at, before = np.r_[np.zeros(count, np.int64), pairs[:, 0]], np.r_[np.zeros(count, np.int64), pairs[:, 1]]
    order = np.argsort(_key(owners, at), kind="stable")  # a part that begins at 0 comes after the implied one
    return owners[order], at[order], before[order]


def _key(owners: I64, at: I64) -> I64:
    """Orders by document, then offset: the text of a string column has less than 2^31 bytes."""
    return owners << 32 | at


def _column(documents: int, owners: I64, at: I64, before: I64) -> pa.ListArray:
    """The map without redundant parts: of several at one offset the last, and none that continues the one before."""
    last = np.ones(len(owners), np.bool_)
    last[:-1] = (np.diff(owners) != 0) | (np.diff(at) != 0)
    owners, at, before = owners[last], at[last], before[last]
    shift = before - at
    fresh = np.where(run_starts(owners), shift != 0, run_starts(shift))
    owners, at, before = owners[fresh], at[fresh], before[fresh]
    offsets = np.searchsorted(owners, np.arange(documents + 1)) * 2
    values = np.column_stack([at, before]).ravel()
    nothing = pa.array(np.r_[np.diff(offsets) == 0, False])
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32), mask=nothing.to_numpy(False)), pa.array(values))
