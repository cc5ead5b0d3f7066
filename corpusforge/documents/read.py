"""Reading a unit: raw bytes to DOCUMENTS and REJECTS, in batches of a fixed size of text.

Comes in: a `corpusforge.documents.plan.Unit` and how to read it. Goes out: batches; every record is one row in one of
the two tables. The one decision: a batch ends with the record that brings its text to ``batch_bytes``, counted from the
batch before, whatever blocks the format was read in. So a unit that is resumed behind any batch yields the same rest.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors
from corpusforge.documents.files import open_input, unreadable
from corpusforge.documents.html import check_html
from corpusforge.documents.jsonl import Columns, fit_columns
from corpusforge.documents.pages import UNREAD
from corpusforge.documents.plan import Piece, Unit
from corpusforge.documents.records import RECORDS, ReaderOutput, Skip, Span, document_id
from corpusforge.schemas import DOCUMENTS, REJECTS
from corpusforge.text import text_bytes

_ROW_BYTES = 256
"""What a record weighs besides its text, so that batches of rejects without text end as well."""


@dataclass(frozen=True)
class ReadOptions:
    """How raw records become documents; the fields are the recipe's ``[input]``."""

    text_column: str = "text"
    url_column: str = "url"
    timestamp_column: str = "timestamp"
    text_split: str = "file"
    html: str = "main"
    hub_config: str = ""
    hub_split: str = "train"
    max_record_bytes: int = 256 << 20

    @property
    def columns(self) -> Columns:
        """The columns of JSONL, Parquet and hub rows."""
        return Columns(self.text_column, self.url_column, self.timestamp_column)


class RawBatch(NamedTuple):
    """``records``: rows of both tables; ``raw_bytes``: input consumed since the batch before."""

    documents: pa.RecordBatch
    rejects: pa.RecordBatch
    records: int
    raw_bytes: int


def read_unit(unit: Unit, options: ReadOptions, skip: int = 0, batch_bytes: int = 4 << 20) -> Iterator[RawBatch]:
    """The records of a unit behind its first ``skip`` ones, in order.

    Skipped records are passed over without parsing. Raises `errors.InputMissing`, `errors.InputUnreadable` or
    `errors.ExtraMissing` for inputs that cannot be read at all; a malformed record is a reject.
    """
    left = Skip(skip)
    batcher = _Batcher(batch_bytes)
    for piece in unit.pieces:
        passed = 0
        for records, consumed in _read_piece(piece, options, left):
            consumed = min(consumed, piece.size - passed) if piece.size else consumed
            passed += consumed
            yield from batcher.add(records, piece.source, consumed)
        batcher.raw_bytes += max(0, piece.size - passed)
    yield from batcher.rest()


def read_origins(unit: Unit, options: ReadOptions) -> Iterator[tuple[pa.RecordBatch, int]]:
    """``id``, ``url``, ``timestamp`` of the records of a unit that are documents, and the bytes consumed.

    ``content`` is a hash of what they say: of the text, of a page the body. It is the same wherever a record stands.
    No text is taken out of HTML, so a page in which no text will be found is among them. Plain text has no URLs and is
    not read. Raises as `read_unit`.
    """
    options = dataclasses.replace(options, html=UNREAD)
    for piece in unit.pieces:
        if piece.format == "text":
            yield _origins(pa.RecordBatch.from_pylist([], RECORDS), piece.source), piece.size
            continue
        for records, consumed in _read_piece(piece, options, Skip(0)):
            yield _origins(records.filter(records.column("reason").is_null()), piece.source), consumed


def _origins(documents: pa.RecordBatch, source: str) -> pa.RecordBatch:
    columns = {"id": _ids(documents, source), "url": documents.column("url")}
    texts, offsets = text_bytes(documents.column("text"))
    view, bounds = memoryview(texts.data), itertools.pairwise(offsets.tolist())
    # A loop with a reason: one C call a record (0.2 us and 0.1 ns a byte) against reading it.
    hashes = np.fromiter((xxhash.xxh3_64_intdigest(view[a:b]) for a, b in bounds), np.uint64, documents.num_rows)
    return pa.record_batch({**columns, "timestamp": documents.column("timestamp"), "content": pa.array(hashes)})


def check_columns(units: Sequence[Unit], options: ReadOptions, files: int = 64) -> None:
    """Look into the first files that have columns, before hours of work: a wrong name raises `InputUnreadable` now.

    So does `ExtraMissing` where the way to take text out of HTML is not installed.
    """
    check_html(options.html)
    pieces = [p for unit in units for p in unit.pieces if p.format in ("jsonl", "parquet") and p.start == 0]
    for piece in pieces[:files]:
        next(_read_piece(piece, options, Skip(0)), None)


def _read_piece(piece: Piece, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    if piece.format == "hub":
        from corpusforge.documents.hub import read_hub

        limit, columns = options.max_record_bytes, options.columns
        where = (piece.path, options.hub_config, options.hub_split)
        yield from read_hub(*where, columns, max_record_bytes=limit, skip=skip)
        return
    with open_input(piece.path) as file:
        try:
            yield from _read_file(file, piece, options, skip)
        except OSError as error:
            raise unreadable(piece.path, error) from None


def _read_file(file: BinaryIO, piece: Piece, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    limit, span = options.max_record_bytes, Span(piece.start, piece.stop)
    columns = options.columns
    if piece.format in ("jsonl", "parquet"):
        columns = fit_columns(file, piece.path, piece.format, columns)
    if piece.format in ("warc", "wet"):
        from corpusforge.documents.warc import read_archive

        return read_archive(file, html=options.html, max_record_bytes=limit, skip=skip)
    if piece.format == "jsonl":
        from corpusforge.documents.jsonl import read_jsonl

        return read_jsonl(file, piece.path, span, columns, max_record_bytes=limit, skip=skip)
    if piece.format == "parquet":
        from corpusforge.documents.parquet import read_parquet

        return read_parquet(file, piece.path, span, columns, max_record_bytes=limit, skip=skip)
    if piece.format == "text":
        from corpusforge.documents.plaintext import read_text

        return read_text(file, split=options.text_split, max_record_bytes=limit, skip=skip)
    raise errors.InputUnreadable(piece.path, f"unknown format '{piece.format}'", "name a format that exists")


class _Batcher:
    """Cuts what readers yield into batches of a fixed size of text."""

    def __init__(self, batch_bytes: int) -> None:
        self.batch_bytes, self.raw_bytes = batch_bytes, 0
        self._parts: list[tuple[pa.RecordBatch, str]] = []
        self._size = 0

    def add(self, records: pa.RecordBatch, source: str, raw_bytes: int) -> Iterator[RawBatch]:
        """Take rows in; give the batches that are full."""
        self.raw_bytes += raw_bytes
        if records.num_rows == 0:
            return
        sizes = pc.binary_length(records.column("text")).to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.cumsum(sizes + _ROW_BYTES)
        start, before = 0, 0
        while start < records.num_rows:
            # The record that brings the batch to its size is the last one in it.
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
        tables = [_tables(records, source) for records, source in self._parts]
        documents = _joined([d for d, _ in tables], DOCUMENTS)
        rejects = _joined([r for _, r in tables], REJECTS)
        batch = RawBatch(documents, rejects, documents.num_rows + rejects.num_rows, self.raw_bytes)
        self._parts, self._size, self.raw_bytes = [], 0, 0
        return batch


def _joined(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    table = pa.Table.from_batches(parts, schema).unify_dictionaries().combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)


def _tables(records: pa.RecordBatch, source: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """DOCUMENTS and REJECTS rows of some records of one source."""
    good = records.column("reason").is_null()
    documents, rejects = records.filter(good), records.filter(pc.invert(good))
    kept = {
        "id": _ids(documents, source),
        "url": documents.column("url"),
        "source": pa.repeat(source, documents.num_rows),
        "position": documents.column("position"),
        "timestamp": documents.column("timestamp"),
        "language": pa.nulls(documents.num_rows, pa.string()),
        "text": documents.column("text"),
    }
    dropped = {
        "document": _ids(rejects, source),
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
    # A loop with a reason: Arrow has no such hash; about 1 us a document.
    return pa.array([document_id(source, position) for position in records.column("position").to_pylist()], pa.string())
