"""How large the pages of a Parquet column are, before they are unpacked.

Comes in: an open file and the column chunks that will be read. Goes out: the fewest bytes they can be read in, and how
many rows at once. The one decision: the headers of the pages are read themselves, as Arrow will, and not the sums at
the end of the file, which anyone may write. A page is unpacked whole: 300 bytes of file can ask for 2 GiB.

Source: Apache parquet-format, ``parquet.thrift`` (PageHeader) and the Thrift compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

_HEADER = 1 << 13
"""Bytes read for a header at first: usual ones take 20 to 200; those with long statistics are read again, longer."""

_LONGEST_HEADER = 1 << 24
"""Arrow's own bound (``kDefaultMaxPageHeaderSize``, cpp/src/parquet/column_reader.h: 16 MiB)."""

_DEEPEST = 16
"""Structures inside structures; PageHeader has three."""

DICTIONARY = 2
"""PageType of a dictionary: every row may repeat any of its values."""


class BrokenHeader(Exception):
    """A page header is not what it should be; Arrow will say so too."""


class Page(NamedTuple):
    """``kind``: PageType; ``unpacked``: bytes it takes; ``values``: in a data page, with nulls."""

    kind: int
    unpacked: int
    values: int


class Needs(NamedTuple):
    """``largest``: bytes of the largest page; ``row``: of a row, on average of its page; ``dictionary``: of the largest
    dictionary, which every row may repeat whole."""

    largest: int
    row: int
    dictionary: int


def needs_of(file: BinaryIO, chunks: Sequence[Any]) -> Needs:
    """What reading these column chunks takes. ``chunks``: `pyarrow.parquet.ColumnChunkMetaData`."""
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
    """The same by what the end of the file claims, for files where each look into a page costs a request."""
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
        except IndexError:  # the header goes on
            if len(data) < size:
                break
            size *= 8
    raise BrokenHeader


class _Compact:
    """Reads one structure of the Thrift compact protocol. Raises IndexError where the bytes end before it does."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def structure(self, depth: int) -> dict[int, Any]:
        """Fields by number; text is passed over."""
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
