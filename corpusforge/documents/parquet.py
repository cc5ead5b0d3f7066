"""Parquet: rows of any file with a text column.

A record's position is its row in the whole file. A row group belongs to the range that holds its first byte, so files
can be cut without being opened (like Hadoop's input splits). Only the needed columns are read, a few hundred rows at a
time; fewer where rows are large, and none of a page that unpacks to too much. Arrow unpacks a page whole, and 300 bytes
of file can ask for 2 GiB, so sizes are read from the headers of the pages, as Arrow will read them, and not from the
sums at the end of the file, which may say anything. Source: Apache parquet-format, ``parquet.thrift`` (PageHeader), and
the Thrift compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge import errors
from corpusforge.documents import encodings
from corpusforge.documents.files import is_remote
from corpusforge.documents.jsonl import fit_columns
from corpusforge.documents.records import (
    RECORDS,
    Columns,
    FilePart,
    ReaderOutput,
    ReadOptions,
    Rows,
    Skip,
    no_text,
    sound_column,
    timestamp_column,
)

_ROWS = 512
"""Rows decoded at once at most: 1 to 5 MB of usual web pages."""

_BATCH = 16 << 20
"""Bytes decoded at once, unless a single row is larger; rows that repeat a dictionary entry may take a record each."""

_JOINED_BYTES = 4 << 20
"""Bytes up to which small batches are joined."""

_PAGE = 4
"""Limit of an unpacked page, in longest records: Arrow unpacks a page whole. Writers' default is 1 MiB per page
(parquet-format, and Arrow's ``data_page_size``); some make one of a whole row group."""


def recognizes(head: bytes) -> bool:
    """Whether content begins like a Parquet file."""
    return head.startswith(b"PAR1")


def read(file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    """The rows of the row groups that begin inside a part (see `files.Reader`).

    Raises `errors.InputUnreadable` for a file that is not Parquet or has no such text column. A row group that is
    damaged inside is one reject from the first row that cannot be read.
    """
    columns = fit_columns(file, part.path, options.columns, _names)
    if not file.read(1):
        return  # an empty file has no rows
    table = _open(file, part.path, columns)
    first_row = 0
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        if part.start <= _first_byte(group) and (part.stop < 0 or _first_byte(group) < part.stop):
            needs = _needs(file, part.path, group, columns)
            yield from _group(table, number, first_row, columns, needs, options.max_record_bytes, skip)
        first_row += group.num_rows


def _names(file: BinaryIO) -> list[str]:
    try:
        return list(pq.ParquetFile(file).schema_arrow.names)
    except (pa.ArrowInvalid, OSError):
        return []  # the reader reports what is wrong


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
    try:  # skipped rows are decoded too: a damaged group shows how many rows it has only then
        for batch in _gathered(table.iter_batches(rows, row_groups=[number], columns=names)):
            passed = skip.take(batch.num_rows)
            if passed < batch.num_rows:
                yield text_records(batch.slice(passed), position + passed, columns, limit), 0
            position += batch.num_rows
        yield Rows().take(), size
    except (pa.ArrowException, OSError) as error:
        yield _one_reject(skip, position, "record:unreadable", f"row group {number}: {error}"), size


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, with small batches joined."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for batch in batches:
            pending.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= _ROWS or size >= _JOINED_BYTES:
                yield from _joined(pending)
                pending, rows, size = [], 0, 0
    except (pa.ArrowException, OSError):
        yield from _joined(pending)  # what came before the damage
        raise
    yield from _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()  # type: ignore[no-any-return]


def _one_reject(skip: Skip, position: int, reason: str, detail: str) -> pa.RecordBatch:
    """The one reject for the rest of a row group."""
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
    records = pa.RecordBatch.from_arrays([url, positions, when, reason, detail, text], schema=RECORDS)
    return _bounded(records, limit)


def _bounded(records: pa.RecordBatch, limit: int) -> pa.RecordBatch:
    """Reject the texts that are too long."""
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


_HEADER = 1 << 13
"""Bytes read for a header at first: most have 20 to 200; for long statistics more is read."""

_LONGEST_HEADER = 1 << 24
"""Arrow's own bound (``kDefaultMaxPageHeaderSize``, cpp/src/parquet/column_reader.h: 16 MiB)."""

_DEEPEST = 16
"""Levels of nested structures; PageHeader has three."""

DICTIONARY = 2
"""PageType of a dictionary: every row may repeat any of its values."""


class BrokenHeader(Exception):
    """A page header is malformed; Arrow will report it too."""


class Page(NamedTuple):
    """``kind``: PageType; ``unpacked``: bytes when unpacked; ``values``: of a data page, nulls included."""

    kind: int
    unpacked: int
    values: int


class Needs(NamedTuple):
    """Bytes unpacked. ``largest``: of the largest page; ``row``: of a row, the mean of its page; ``dictionary``: of the
    largest dictionary, which every row may repeat."""

    largest: int
    row: int
    dictionary: int


def needs_of(file: BinaryIO, chunks: Sequence[Any]) -> Needs:
    """The memory that reading column chunks needs. ``chunks``: `pyarrow.parquet.ColumnChunkMetaData`."""
    largest = row = dictionary = 0
    for chunk in chunks:
        for page in pages_of(file, chunk):
            largest = max(largest, page.unpacked)
            if page.kind == DICTIONARY:
                dictionary = max(dictionary, page.unpacked)
            else:
                row = max(row, page.unpacked // max(1, page.values))
    return Needs(largest, row, dictionary)


def claimed_needs(chunks: Sequence[Any]) -> Needs:
    """The same by the metadata at the end of the file, for remote files, where reading a header costs a request."""
    return Needs(0, max((chunk.total_uncompressed_size // max(1, chunk.num_values) for chunk in chunks), default=0), 0)


def pages_of(file: BinaryIO, chunk: Any) -> Iterator[Page]:
    """The pages of a column chunk, up to the first whose header is broken."""
    offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
    position = min(offset for offset in offsets if offset is not None)
    end = position + chunk.total_compressed_size
    while position < end:
        try:
            fields, length = _read_header(file, position)
            kind, unpacked, packed = (_number(fields, n) for n in (1, 2, 3))
        except BrokenHeader:
            return
        inner = fields.get(5) or fields.get(8)  # data page, version 1 or 2
        values = inner.get(1) if isinstance(inner, dict) else 0
        yield Page(kind, unpacked, values if isinstance(values, int) else 0)
        position += length + packed


def _number(fields: dict[int, Any], key: int) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or value < 0:
        raise BrokenHeader
    return value


def _read_header(file: BinaryIO, position: int) -> tuple[dict[int, Any], int]:
    size = _HEADER
    while size <= _LONGEST_HEADER:
        file.seek(position)
        data = file.read(size)
        try:
            reader = _Compact(data)
            return reader.structure(0), reader.position
        except IndexError:  # the header continues
            if len(data) < size:
                break
            size *= 8
    raise BrokenHeader


class _Compact:
    """Reads one structure of the Thrift compact protocol. Raises IndexError if the bytes end before it does."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def structure(self, depth: int) -> dict[int, Any]:
        """Fields by number; text is skipped."""
        if depth > _DEEPEST:
            raise BrokenHeader
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind == 12:
            return self.structure(depth + 1)
        raise BrokenHeader  # lists and maps: PageHeader has none

    def _byte(self) -> int:
        value = self.data[self.position]
        self.position += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise BrokenHeader

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise IndexError
