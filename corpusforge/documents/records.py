"""What all readers share: the settings, and the rows they yield, each a document or a reject.

Readers yield RECORDS batches in the order of their source; `read` cuts them into batches and splits them into DOCUMENTS
and REJECTS. In every format text becomes valid UTF-8 without NUL: invalid bytes become U+FFFD, as in the
decoders of the WHATWG Encoding Standard, and NULs are deleted, as in PostgreSQL's and C4's text.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge.sections import Input

RECORDS = pa.schema(
    [
        pa.field("url", pa.string()),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("s", tz="UTC")),
        pa.field("reason", pa.string()),  # null: a document
        pa.field("detail", pa.string()),
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""A row for each raw record. ``position``, ``url``, ``timestamp``, ``text``: as in `corpusforge.schemas.DOCUMENTS`."""

ReaderOutput = tuple[pa.RecordBatch, int]
"""RECORDS rows, and the bytes of input that were consumed for them."""


class Columns(NamedTuple):
    """Names of the columns to read."""

    text: str
    url: str
    timestamp: str


@dataclass(frozen=True)
class ReadOptions(Input):
    """How raw records become documents: the recipe's ``[input]``, with the limit of a record in bytes."""

    max_record_bytes: int = 256 << 20

    @property
    def columns(self) -> Columns:
        """The columns of JSONL, Parquet and hub rows."""
        return Columns(self.text_column, self.url_column, self.timestamp_column)


@dataclass(frozen=True)
class FilePart:
    """A file, or a part of one, that a unit reads.

    ``start``, ``stop``: its byte range, ``stop`` -1 for a whole file; ``size``: bytes in it.
    """

    path: str
    source: str
    start: int
    stop: int
    format: str
    size: int = 0


@dataclass
class Skip:
    """The number of records to skip because an earlier run has finished them, over all files of a unit."""

    left: int = 0

    def take(self, available: int) -> int:
        """How many of the next ``available`` records to skip.

        >>> skip = Skip(3)
        >>> skip.take(2), skip.take(2), skip.take(2)
        (2, 1, 0)
        """
        taken = min(self.left, available)
        self.left -= taken
        return taken


class Rows:
    """Collects records one by one, for formats where each needs its own work (HTML, bad lines)."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in RECORDS.names}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._columns["text"])

    def add(
        self,
        position: int,
        text: str,
        *,
        url: str | None = None,
        timestamp: int | None = None,
        reason: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Add a document, or with a ``reason`` a reject. ``timestamp``: seconds since 1970, UTC."""
        text = sound(text)
        row = (url and sound(url), position, timestamp, reason, detail and sound(detail)[:500], text)
        for values, value in zip(self._columns.values(), row, strict=True):
            values.append(value)
        self.bytes += len(text)

    def take(self) -> pa.RecordBatch:
        """The rows so far as a RECORDS batch; the collection is empty afterwards."""
        batch = pa.RecordBatch.from_pydict(self._columns, schema=RECORDS)
        self.__init__()  # type: ignore[misc]
        return batch


def sound(text: str) -> str:
    r"""Delete NULs and replace lone surrogates, so that the text is valid UTF-8.

    >>> sound("a\0b \ud800")
    'ab \ufffd'
    """
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def sound_column(text: pa.Array) -> pa.Array | None:
    """The same for a string column; None where it is not valid UTF-8 and needs repair row by row."""
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return None
    data = text.buffers()[2]
    if data is not None and not np.frombuffer(data, np.uint8).all():
        text = pc.replace_substring(text, "\0", "")
    return text


def no_text(text: pa.Array, column: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Columns text, reason, detail: a null text becomes a reject ``record:no-text``."""
    null = pa.scalar(None, pa.string())
    if not text.null_count:
        nothing = pa.nulls(len(text), pa.string())
        return text, nothing, nothing
    missing = text.is_null()
    reason = pc.if_else(missing, pa.scalar("record:no-text"), null)
    detail = pc.if_else(missing, pa.scalar(f"no string in '{column}'"), null)
    return pc.fill_null(text, ""), reason, detail


def document_id(source: str, position: int) -> str:
    """DOCUMENTS.id: xxh3-128 of source, NUL and position, as 32 hex digits.

    >>> document_id("crawl/a.warc.gz", 17)
    '...'
    """
    return xxhash.xxh3_128_hexdigest(f"{source}\0{position}".encode("utf-8", "surrogateescape"))


def content_id(url: str | None, text: str) -> str:
    """DOCUMENTS.id of a row without a place: xxh3-128 of its URL, NUL and text, as 32 hex digits; of text alone
    without a URL.

    >>> content_id("http://a.org/", "A") != content_id(None, "A")
    True
    """
    return xxhash.xxh3_128_hexdigest((text if url is None else f"{url}\0{text}").encode())


_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The first and last second of the years 1 to 9999; other numbers are not times."""


def parse_timestamp(value: Any) -> int | None:
    """Seconds since 1970, UTC, of an ISO 8601 string, a 14-digit crawl date, a number of seconds or milliseconds, or a
    `datetime`.

    None if it is not recognized. A time without a zone is taken as UTC, a date as its midnight.

    >>> parse_timestamp("2024-05-18T01:58:10Z"), parse_timestamp("20080430204825"), parse_timestamp("soon")
    (1715997490, 1209588505, None)
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > 1e11 else value  # beyond the year 5138: milliseconds
            return int(seconds // 1) if _FIRST <= seconds <= _LAST else None
        if isinstance(value, datetime.datetime):
            moment = value
        elif isinstance(value, datetime.date):
            moment = datetime.datetime.combine(value, datetime.time())
        elif len(value) == 14 and value.isdigit():
            moment = datetime.datetime.strptime(value, "%Y%m%d%H%M%S")
        else:
            moment = datetime.datetime.fromisoformat(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return int(moment.timestamp() // 1)
    except (ValueError, TypeError, OverflowError, AttributeError):
        return None


def timestamp_column(values: pa.Array) -> pa.Array:
    """The same for a column of strings, numbers, dates or times."""
    kind = RECORDS.field("timestamp").type
    if values.null_count == len(values):
        return pa.nulls(len(values), kind)
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        return values.cast(pa.timestamp("s"), safe=False).cast(kind) if values.type != kind else values
    try:
        if pa.types.is_string(values.type):
            return values.cast(pa.timestamp("ns", tz="UTC")).cast(kind, safe=False)
    except pa.ArrowInvalid:
        pass  # mixed or unusual spellings
    # A Python loop with a reason: only columns in a spelling that Arrow's parser does not know.
    return pa.array([parse_timestamp(value) for value in values.to_pylist()], kind)
