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
from corpusforge.dedupe.pieces import PIECES
from corpusforge.text import text_bytes
from corpusforge.units import ShardUnit

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
