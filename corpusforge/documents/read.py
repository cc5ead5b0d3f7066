"""Read a unit: raw bytes to DOCUMENTS and REJECTS, in batches of a fixed size of text.

Every record is one row in one of the two tables. A batch ends with the record that brings its text to ``batch_bytes``,
whatever blocks the format was read in, so a unit that is resumed after any batch yields the same batches as before.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors
from corpusforge.documents import encodings
from corpusforge.documents.files import open_input, reader_of, unreadable
from corpusforge.documents.html import check_html
from corpusforge.documents.pages import UNREAD
from corpusforge.documents.plan import Unit
from corpusforge.documents.records import (
    RECORDS,
    FilePart,
    ReaderOutput,
    ReadOptions,
    Skip,
    content_id,
    document_id,
    parse_timestamp,
    sound,
)
from corpusforge.schemas import DOCUMENTS, REJECTS
from corpusforge.sections import INPUT_FORMATS
from corpusforge.text import text_bytes

_ROW_BYTES = 256
"""Bytes counted for a record besides its text, so that batches of rejects without text end as well."""


class RawBatch(NamedTuple):
    """``records``: rows of both tables; ``raw_bytes``: input consumed since the previous batch."""

    documents: pa.RecordBatch
    rejects: pa.RecordBatch
    records: int
    raw_bytes: int


def read_unit(unit: Unit, options: ReadOptions, skip: int = 0, batch_bytes: int = 4 << 20) -> Iterator[RawBatch]:
    """The records of a unit after its first ``skip`` ones, in order.

    Skipped records are not parsed. Raises `errors.InputMissing`, `errors.InputUnreadable` or
    `errors.ExtraMissing` for inputs that cannot be read at all; a malformed record is a reject.
    """
    left = Skip(skip)
    batcher = _Batcher(batch_bytes)
    for part in unit.parts:
        passed = 0
        for records, consumed in _read_part(part, options, left):
            consumed = min(consumed, part.size - passed) if part.size else consumed
            passed += consumed
            yield from batcher.add(records, part.source, consumed)
        batcher.raw_bytes += max(0, part.size - passed)
    yield from batcher.rest()


def read_rows(rows: Sequence[Mapping[str, Any]], options: ReadOptions, source: str) -> RawBatch:
    """Rows of a database as documents; columns other than text, URL and time are dropped.

    A row without a string as its text is a reject ``record:no-text``. Rows have no order, so a document's position is
    0, and its id follows from its URL and text.

    >>> raw = read_rows([{"text": "A", "likes": 3}, {"text": None}], ReadOptions(), "rows")
    >>> raw.documents["text"].to_pylist(), raw.rejects["reason"].to_pylist()
    (['A'], ['record:no-text'])
    """
    from corpusforge.documents.parquet import text_records

    columns, when = options.columns, RECORDS.field("timestamp").type
    # Python loops with a reason: the values of a column are in as many dicts.
    named = {
        columns.text: pa.array([_string(row.get(columns.text)) for row in rows], pa.string()),
        columns.url: pa.array([_string(row.get(columns.url)) for row in rows], pa.string()),
        columns.timestamp: pa.array([parse_timestamp(row.get(columns.timestamp)) for row in rows], when),
    }
    records = text_records(pa.record_batch(named), 0, columns, options.max_record_bytes)
    pairs = zip(records.column("url").to_pylist(), records.column("text").to_pylist(), strict=True)
    ids = pa.array([content_id(url, text) for url, text in pairs], pa.string())
    nowhere = records.set_column(1, RECORDS.field("position"), pa.array(np.zeros(len(rows), np.int64)))
    return RawBatch(*_tables(nowhere, source, ids), len(rows), 0)


def _string(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = encodings.decode(value)
    return sound(value) if isinstance(value, str) else None


def read_origins(unit: Unit, options: ReadOptions) -> Iterator[tuple[pa.RecordBatch, int]]:
    """``id``, ``url``, ``timestamp`` of the records of a unit that are documents, and the bytes consumed.

    ``content``: a hash of the text, or of the body of a page; it does not depend on where a record is stored. No text
    is extracted from HTML, so pages without text are included. Plain text has no URLs and is not read. Raises what
    `read_unit` raises.
    """
    options = dataclasses.replace(options, html=UNREAD)
    for part in unit.parts:
        if not INPUT_FORMATS[part.format].has_urls:
            yield _origins(pa.RecordBatch.from_pylist([], RECORDS), part.source), part.size
            continue
        for records, consumed in _read_part(part, options, Skip(0)):
            yield _origins(records.filter(records.column("reason").is_null()), part.source), consumed


def _origins(documents: pa.RecordBatch, source: str) -> pa.RecordBatch:
    columns = {"id": _ids(documents, source), "url": documents.column("url")}
    texts, offsets = text_bytes(documents.column("text"))
    view, bounds = memoryview(texts.data), itertools.pairwise(offsets.tolist())
    # A Python loop with a reason: one C call a record (0.2 us and 0.1 ns a byte), far less than reading it.
    hashes = np.fromiter((xxhash.xxh3_64_intdigest(view[a:b]) for a, b in bounds), np.uint64, documents.num_rows)
    return pa.record_batch({**columns, "timestamp": documents.column("timestamp"), "content": pa.array(hashes)})


def check_columns(units: Sequence[Unit], options: ReadOptions, files: int = 64) -> None:
    """Open the first files that have columns, so that a wrong name raises `InputUnreadable` before hours of work.

    Raises `ExtraMissing` if the library that extracts text from HTML is not installed.
    """
    check_html(options.html)
    parts = [p for unit in units for p in unit.parts if INPUT_FORMATS[p.format].has_columns and p.start == 0]
    for part in parts[:files]:
        next(_read_part(part, options, Skip(0)), None)


def _read_part(part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    if part.format == "hub":
        from corpusforge.documents import hub

        yield from hub.read(part, options, skip)
        return
    if part.format not in INPUT_FORMATS:
        known = f"formats: {', '.join(INPUT_FORMATS)}"
        raise errors.InputUnreadable(part.path, f"unknown format '{part.format}'", known)
    with open_input(part.path) as file:
        try:
            yield from reader_of(part.format).read(file, part, options, skip)
        except OSError as error:
            raise unreadable(part.path, error) from None


class _Batcher:
    """Cuts the output of readers into batches of a fixed size of text."""

    def __init__(self, batch_bytes: int) -> None:
        self.batch_bytes, self.raw_bytes = batch_bytes, 0
        self._parts: list[tuple[pa.RecordBatch, str]] = []
        self._size = 0

    def add(self, records: pa.RecordBatch, source: str, raw_bytes: int) -> Iterator[RawBatch]:
        """Add rows; yields the batches that are full."""
        self.raw_bytes += raw_bytes
        if records.num_rows == 0:
            return
        sizes = pc.binary_length(records.column("text")).to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.cumsum(sizes + _ROW_BYTES)
        start, before = 0, 0
        while start < records.num_rows:
            # The record that brings the batch to its size is its last one.
            stop = int(np.searchsorted(ends, before + self.batch_bytes - self._size)) + 1
            stop = min(stop, records.num_rows)
            self._parts.append((records.slice(start, stop - start), source))
            self._size += int(ends[stop - 1]) - before
            start, before = stop, int(ends[stop - 1])
            if self._size >= self.batch_bytes:
                yield self._take()

    def rest(self) -> Iterator[RawBatch]:
        """The last batch, if there are rows left (or bytes to report, with no rows)."""
        if self._parts or self.raw_bytes:
            yield self._take()

    def _take(self) -> RawBatch:
        tables = [_tables(records, source, _ids(records, source)) for records, source in self._parts]
        documents = _joined([d for d, _ in tables], DOCUMENTS)
        rejects = _joined([r for _, r in tables], REJECTS)
        batch = RawBatch(documents, rejects, documents.num_rows + rejects.num_rows, self.raw_bytes)
        self._parts, self._size, self.raw_bytes = [], 0, 0
        return batch


def _joined(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    table = pa.Table.from_batches(parts, schema).unify_dictionaries().combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)


def _tables(records: pa.RecordBatch, source: str, ids: pa.Array) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """DOCUMENTS and REJECTS rows of some records of one source."""
    good = records.column("reason").is_null()
    bad = pc.invert(good)
    documents, rejects = records.filter(good), records.filter(bad)
    kept = {
        "id": ids.filter(good),
        "url": documents.column("url"),
        "source": pa.repeat(source, documents.num_rows),
        "position": documents.column("position"),
        "timestamp": documents.column("timestamp"),
        "language": pa.nulls(documents.num_rows, pa.string()),
        "text": documents.column("text"),
    }
    dropped = {
        "document": ids.filter(bad),
        "url": rejects.column("url"),
        "source": pa.repeat(source, rejects.num_rows),
        "position": rejects.column("position"),
        "line": pa.nulls(rejects.num_rows, pa.int32()),
        "reason": rejects.column("reason").dictionary_encode().cast(REJECTS.field("reason").type),
        "step": pa.nulls(rejects.num_rows, REJECTS.field("step").type),
        "detail": rejects.column("detail"),
        "text": rejects.column("text"),
    }
    return (
        pa.RecordBatch.from_arrays(list(kept.values()), schema=DOCUMENTS),
        pa.RecordBatch.from_arrays(list(dropped.values()), schema=REJECTS),
    )


def _ids(records: pa.RecordBatch, source: str) -> pa.Array:
    # A Python loop with a reason: Arrow has no such hash; about 1 us per document.
    return pa.array([document_id(source, position) for position in records.column("position").to_pylist()], pa.string())
