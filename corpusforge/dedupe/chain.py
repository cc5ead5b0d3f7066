"""Documents of a unit of deduplication, in slices that fit the cache; and the schema they are written with.

Comes in: a document shard, of an earlier stage or of the method before in the chain. Goes out: DOCUMENTS batches, with
the column of `dedupe.pieces` where the shard has it. The one decision: inside a chain that column travels with the
documents; the last method of a chain leaves it out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import schemas, shards
from corpusforge.arrays import I64
from corpusforge.text import text_bytes
from corpusforge.units import ShardUnit

PIECES = pa.field("pieces", pa.list_(pa.int64()))
"""Pairs (offset in this text, offset in the text that came to the stage), one for each piece that follows a cut,
ascending. Null: nothing was cut."""

SLICE_BYTES = 4 << 20
"""Text that goes through the kernels at once: small enough for the cache, large enough for the vectors."""

_WITH_PIECES = schemas.DOCUMENTS.append(PIECES)


@dataclasses.dataclass(frozen=True)
class ChainUnit(ShardUnit):
    """A unit of a method that another one follows: what it leaves keeps track of what was cut."""


def documents_schema(unit: ShardUnit) -> pa.Schema:
    """The schema a method writes the documents of a unit with."""
    return _WITH_PIECES if isinstance(unit, ChainUnit) else schemas.DOCUMENTS


def as_schema(documents: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Documents with or without their pieces, as ``schema`` (of `documents_schema`) asks."""
    if PIECES.name in schema.names and PIECES.name not in documents.schema.names:
        documents = documents.append_column(PIECES, pa.nulls(documents.num_rows, PIECES.type))
    return documents.select(schema.names)


def slices(path: str, skip: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows of a document shard from ``skip`` on, in batches of about `SLICE_BYTES` of text.

    The cuts depend on the rows alone, and going on at one of them gives the same cuts behind it.
    """
    for stored in shards.read_shard(path):
        has_pieces = PIECES.name in stored.schema.names
        # Parquet has no timestamps in whole seconds and returns milliseconds
        batch = stored.cast(_WITH_PIECES if has_pieces else schemas.DOCUMENTS)
        first, skip = min(skip, batch.num_rows), max(0, skip - batch.num_rows)
        _, ends = text_bytes(batch.column("text"))
        while first < batch.num_rows:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + SLICE_BYTES, "right")) - 1)
            yield batch.slice(first, last - first)
            first = last


def largest_document(units: Sequence[ShardUnit]) -> int:
    """Bytes of text of the largest document of these shards, 0 where none is larger than `SLICE_BYTES`.

    Read off the footers of local files: tables are written in batches of about a slice, so a larger one holds a
    document that is nearly as large.
    """
    largest = 0
    for unit in units:
        if not shards.is_remote(unit.path) and unit.path.endswith(".parquet"):
            found = pq.read_metadata(unit.path)
            at = found.schema.to_arrow_schema().names.index("text")
            sizes = (_text_column(found.row_group(n), at) for n in range(found.num_row_groups))
            largest = max(largest, *sizes, 0)
    return largest if largest > 2 * SLICE_BYTES else 0


def _text_column(group: Any, at: int) -> int:
    """Bytes of a row group's text column."""
    return int(group.column(at).total_uncompressed_size)


def text_size(documents: pa.RecordBatch) -> int:
    """Bytes of text in a batch."""
    _, ends = text_bytes(documents.column("text"))
    return int(ends[-1] - ends[0])


def share(unit: ShardUnit, rows: int) -> int:
    """So many rows of a unit in bytes on disk, for the progress bar."""
    return unit.bytes * rows // max(1, unit.rows)


# MERGED DOCSTRING of corpusforge.dedupe.pieces:
# Where the text of a document stood before earlier methods of a chain cut some of it out.
#
# Comes in: DOCUMENTS batches that may have the column `PIECES`, and byte offsets in their texts or regions to be cut.
# Goes out: offsets in the texts as they came to the stage, and the column as it is after the cut. The one
# decision: audit
# rows of every method speak of one text, the one that the user has, so a reader can mark all cuts in it.


def original(documents: pa.RecordBatch, rows: I64, offsets: I64) -> I64:
    """The offsets, in the texts that came to the stage, of bytes ``offsets[i]`` of the documents ``rows[i]``.

    >>> pieces = pa.array([[4, 9]], PIECES.type)
    >>> batch = pa.record_batch([pa.array(["abcdefg"]), pieces], names=["text", "pieces"])
    >>> original(batch, np.zeros(3, np.int64), np.array([0, 3, 5])).tolist()
    [0, 3, 10]
    """
    if "pieces" not in documents.schema.names:
        return offsets
    owners, at, before = _points(documents)
    found = np.searchsorted(_key(owners, at), _key(rows, offsets), "right") - 1
    moved: I64 = before[found] + offsets - at[found]
    return moved


def original_stops(documents: pa.RecordBatch, rows: I64, stops: I64) -> I64:
    """The same of offsets behind a byte: text that was cut right behind it does not count."""
    if "pieces" not in documents.schema.names:
        return stops
    some = stops > 0
    return np.where(some, original(documents, rows, np.maximum(stops - 1, 0)) + 1, 0)


def after_cut(documents: pa.RecordBatch, starts: I64, stops: I64) -> pa.ListArray:
    """The column `PIECES` once the regions ``starts[j]:stops[j]`` of the text column's buffer are cut out.

    Regions ascend, do not overlap, and each lies in one document.
    """
    _, ends = text_bytes(documents.column("text"))
    starts, stops = starts[starts < stops], stops[starts < stops]
    removed = np.concatenate([[0], np.cumsum(stops - starts)])
    cut_owners = np.searchsorted(ends, starts, "right") - 1
    owners, at = np.arange(0), np.arange(0)
    if "pieces" in documents.schema.names:
        owners, at, _ = _points(documents)
        where = ends[owners] + at
        nearest = np.searchsorted(starts, where, "right") - 1  # a point in a cut region is no piece any more
        kept = (nearest < 0) | (where >= np.append(stops, 0)[nearest])
        owners, at = owners[kept], at[kept]
    owners, at = np.r_[owners, cut_owners], np.r_[at, stops - ends[cut_owners]]
    inside = ends[owners] + at < ends[owners + 1]
    owners, at = owners[inside], at[inside]
    order = np.lexsort((at, owners))
    owners, at = owners[order], at[order]
    before = original(documents, owners, at)
    gone = removed[np.searchsorted(starts, ends[owners] + at)] - removed[np.searchsorted(starts, ends[owners])]
    return _column(documents.num_rows, owners, at - gone, before)


def _points(documents: pa.RecordBatch) -> tuple[I64, I64, I64]:
    """Document, offset here and offset before of every piece, the first of each document too, ascending."""
    column = documents.column("pieces")
    ends = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    pairs = column.values.to_numpy()[ends[0] : ends[-1]].reshape(-1, 2)
    count = documents.num_rows
    owners = np.r_[np.arange(count), np.repeat(np.arange(count), np.diff(ends) // 2)]
    at, before = np.r_[np.zeros(count, np.int64), pairs[:, 0]], np.r_[np.zeros(count, np.int64), pairs[:, 1]]
    order = np.argsort(_key(owners, at), kind="stable")  # a piece at 0 comes behind the implied one
    return owners[order], at[order], before[order]


def _key(owners: I64, at: I64) -> I64:
    """Orders by document, then offset: texts of a column of strings are below 2^31 bytes."""
    return owners << 32 | at


def _column(documents: int, owners: I64, at: I64, before: I64) -> pa.ListArray:
    """The pieces that say something: of several at one offset the last, and none that goes on as the one before."""
    last = np.ones(len(owners), np.bool_)
    last[:-1] = (np.diff(owners) != 0) | (np.diff(at) != 0)
    owners, at, before = owners[last], at[last], before[last]
    shift = before - at
    first = np.ones(len(owners), np.bool_)
    first[1:] = np.diff(owners) != 0
    fresh = np.where(first, shift != 0, np.r_[True, np.diff(shift) != 0][: len(shift)])
    owners, at, before = owners[fresh], at[fresh], before[fresh]
    offsets = np.searchsorted(owners, np.arange(documents + 1)) * 2
    values = np.column_stack([at, before]).ravel()
    nothing = pa.array(np.r_[np.diff(offsets) == 0, False])
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32), mask=nothing.to_numpy(False)), pa.array(values))
