"""Parquet: rows of any file with a text column.

Comes in: a byte range of a file. Goes out: RECORDS; a record's position is its row in the whole file. The one decision:
a row group belongs to the range that holds its first byte, so files can be cut without being opened (as Hadoop's input
splits are), and only the columns that are needed are read, a few hundred rows at a time; fewer, and none of a page
that unpacks to too much, where the file says so (`corpusforge.documents.parquet_pages`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import errors
from corpusforge.documents import encodings
from corpusforge.documents.files import is_remote
from corpusforge.documents.jsonl import Columns
from corpusforge.documents.parquet_pages import Needs, claimed_needs, needs_of
from corpusforge.documents.records import (
    RECORDS,
    ReaderOutput,
    Rows,
    Skip,
    Span,
    no_text,
    sound_column,
    timestamp_column,
)

_ROWS = 512
"""Rows decoded at once at most: usual pages make 1 to 5 MB."""

_BATCH = 16 << 20
"""Bytes decoded at once, where a row is no larger; of a dictionary that rows repeat, at worst the longest record."""

_TOGETHER = 4 << 20
"""Bytes up to which small batches are put together."""

_PAGE = 4
"""A page may unpack to so many times the longest record: Arrow unpacks a page whole. Writers' default is 1 MiB a page
(parquet-format, and Arrow's ``data_page_size``); some make one of a whole row group."""


def read_parquet(
    file: BinaryIO, path: str, span: Span, columns: Columns, *, max_record_bytes: int, skip: Skip
) -> Iterator[ReaderOutput]:
    """The rows of the row groups that begin inside ``span``.

    Raises `errors.InputUnreadable` for a file that is no Parquet or has no such text column. A row group that is
    damaged inside is one reject from the first row that cannot be read.
    """
    if not file.read(1):
        return  # an empty file has no rows
    table = _open(file, path, columns)
    first_row = 0
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        if span.start <= _first_byte(group) and (span.stop < 0 or _first_byte(group) < span.stop):
            needs = _needs(file, path, group, columns)
            yield from _group(table, number, first_row, columns, needs, max_record_bytes, skip)
        first_row += group.num_rows


def _open(file: BinaryIO, path: str, columns: Columns) -> pq.ParquetFile:
    try:
        file.seek(0)
        table = pq.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        what = f"not a Parquet file, or cut short ({str(error).splitlines()[0][:200]})"
        raise errors.InputUnreadable(path, what, "check the file, or name its format") from None
    names = table.schema_arrow.names
    if columns.text not in names:
        mend = f"name the text column; there are: {', '.join(names[:20])}"
        raise errors.InputUnreadable(path, f"no column '{columns.text}'", mend)
    kind = table.schema_arrow.field(columns.text).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_binary(kind)):
        raise errors.InputUnreadable(path, f"column '{columns.text}' is {kind}, not text", "name the text column")
    return table


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _first_byte(group: Any) -> int:
    if group.num_columns == 0:
        return 0
    column = group.column(0)
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    return int(min(offset for offset in offsets if offset is not None))


def _needs(file: BinaryIO, path: str, group: Any, columns: Columns) -> Needs:
    chunks = [chunk for chunk in map(group.column, range(group.num_columns)) if _top(chunk) in columns]
    return claimed_needs(chunks) if is_remote(path) else needs_of(file, chunks)


def _top(chunk: Any) -> str:
    """The name of the column a chunk belongs to."""
    return str(chunk.path_in_schema).partition(".")[0]


def _group(
    table: pq.ParquetFile, number: int, position: int, columns: Columns, needs: Needs, limit: int, skip: Skip
) -> Iterator[ReaderOutput]:
    names = [name for name in columns if name in table.schema_arrow.names]
    group = table.metadata.row_group(number)
    size = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
    if needs.largest > max(_PAGE * limit, _BATCH):
        detail = f"row group {number}: a page unpacks to {needs.largest} bytes"
        yield _one_reject(skip, position, "record:too-large", detail), size
        return
    rows = max(1, min(_ROWS, _BATCH // max(1, needs.row), limit // max(1, needs.dictionary)))
    try:  # skipped rows are decoded too: only that tells how many records a damaged group gave
        for batch in _gathered(table.iter_batches(rows, row_groups=[number], columns=names)):
            passed = skip.take(batch.num_rows)
            if passed < batch.num_rows:
                yield text_records(batch.slice(passed), position + passed, columns, limit), 0
            position += batch.num_rows
        yield Rows().take(), size
    except (pa.ArrowException, OSError) as error:
        yield _one_reject(skip, position, "record:unreadable", f"row group {number}: {error}"), size


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches worth the work on each: small ones are put together while they are small."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for batch in batches:
            pending.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= _ROWS or size >= _TOGETHER:
                yield from _together(pending)
                pending, rows, size = [], 0, 0
    except (pa.ArrowException, OSError):
        yield from _together(pending)  # what came before the damage
        raise
    yield from _together(pending)


def _together(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()  # type: ignore[no-any-return]


def _one_reject(skip: Skip, position: int, reason: str, detail: str) -> pa.RecordBatch:
    """The reject that stands for the rest of a row group."""
    rows = Rows()
    if not skip.take(1):
        rows.add(position, "", reason=reason, detail=detail)
    return rows.take()


def text_records(batch: pa.RecordBatch, position: int, columns: Columns, limit: int) -> pa.RecordBatch:
    """RECORDS of rows with a text column; ``position``: the number of the first."""
    count = batch.num_rows
    text, reason, detail = no_text(_strings(batch.column(columns.text)), columns.text)
    url = pa.nulls(count, pa.string())
    if columns.url in batch.schema.names and _is_text(batch.column(columns.url).type):
        url = _strings(batch.column(columns.url))
    when = pa.nulls(count, RECORDS.field("timestamp").type)
    if columns.timestamp in batch.schema.names:
        when = timestamp_column(batch.column(columns.timestamp))
    positions = pa.array(range(position, position + count), pa.int64())
    found = pa.RecordBatch.from_arrays([url, positions, when, reason, detail, text], schema=RECORDS)
    return _bounded(found, limit)


def _bounded(records: pa.RecordBatch, limit: int) -> pa.RecordBatch:
    """Reject the texts that are too long."""
    import pyarrow.compute as pc

    sizes = pc.binary_length(records.column("text"))
    if not len(sizes) or pc.max(sizes).as_py() <= limit:
        return records
    large = pc.greater(sizes, limit)
    columns = dict(zip(RECORDS.names, records.columns, strict=True))
    columns["text"] = pc.if_else(large, "", columns["text"])
    columns["reason"] = pc.if_else(large, "record:too-large", columns["reason"])
    columns["detail"] = pc.if_else(large, f"larger than {limit} bytes", columns["detail"])
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=RECORDS)


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_binary(kind))


def _strings(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    strings = None if _is_binary(column.type) else sound_column(column.cast(pa.string()))
    if strings is None:  # bytes of unknown encoding, or broken UTF-8: value by value
        values = column.cast(pa.binary()).to_pylist()
        strings = pa.array([None if v is None else encodings.decode(v).replace("\0", "") for v in values], pa.string())
    return strings
