"""Web archives: a row for each record of WARC, WET, WAT and ARC files, gzip by record or whole, zstd, or plain.

WARC is read by FastWARC, which does not report a truncated record and stops at the first damage. Here a truncated
record becomes ``record:unreadable`` (with its readable part), a damaged stretch becomes one such reject, and reading
resumes at the next record that can be found after it. WET files hold text that a crawler has already extracted, as
`conversion` records; records end by their Content-Length, as the WARC standard has it (ISO 28500). (The C4 code of
tensorflow-datasets splits at lines ``WARC/1.0``, strips lines and drops those that begin with WARC or Content-; the
reader does not.)

ARC is the Internet Archive's format before WARC, a line for each record, then its bytes; FastWARC 2.0 does not read it.
A record line is recognized by its shape, not by what the file's header promises, as real files mix versions 1 and 2;
after a line of another shape, reading resumes at the next that fits, and the stretch between is one reject. Source:
"Arc File Format", Burner and Kahle, Internet Archive 1996.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from corpusforge.documents import encodings, pages
from corpusforge.documents.files import READ, Damaged, blocks, codec_of
from corpusforge.documents.pages import Origin, Raw, Response
from corpusforge.documents.records import FilePart, ReaderOutput, ReadOptions, Rows, Skip, parse_timestamp

_ROWS = 512
"""Records per batch at most: most records of a crawl (requests, images) carry no text and would accumulate."""

_STARTS = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd", "": b"\nWARC/"}
"""The first bytes of a record, by the codec of the file."""


_BARE_LF = re.compile(rb"WARC/\d\.\d\n")
"""The first line of files whose headers do not end in CRLF, which FastWARC reads only in lenient mode. It then
skips garbage silently, so others are read strictly."""


def recognizes(head: bytes) -> bool:
    """Whether content begins like a WARC or ARC file."""
    return head.startswith(b"WARC/") or is_arc(head)


def read(file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    """The records of a WARC, WET, WAT or ARC file (see `files.Reader`); positions count them from 0.

    Raises nothing but errors of the operating system.
    """
    rows, consumed, limit = Rows(), 0, options.max_record_bytes
    source = _arc_records if is_arc(_head(file)) else _warc_records
    for position, raw in enumerate(source(file, limit)):
        if skip.take(1):
            continue
        origin = Origin(position, raw.url, parse_timestamp(raw.date) if raw.date else None, raw.media_type)
        _add(rows, raw, origin, options.html, limit)
        if rows.bytes >= READ or len(rows) >= _ROWS:
            yield rows.take(), file.tell() - consumed
            consumed = file.tell()
    yield rows.take(), file.tell() - consumed


def _head(file: BinaryIO) -> bytes:
    """The first bytes of the content, decompressed."""
    file.seek(0)
    try:
        return next(blocks(file), b"")[:4096]
    except Damaged:
        return b""
    finally:
        file.seek(0)


def _add(rows: Rows, raw: Raw, origin: Origin, html: str, limit: int) -> None:
    if raw.fault:
        pages.reject(rows, origin, "record:unreadable", raw.fault, _readable(raw.block))
    elif raw.too_large:
        pages.reject(rows, origin, "record:too-large", f"larger than {limit} bytes")
    elif raw.kind == "response":
        pages.add_block(rows, raw.block, origin, html=html, limit=limit)
    elif raw.kind == "conversion":
        _add_conversion(rows, raw.block, origin)
    elif raw.kind == "resource" and (raw.url or "").startswith("http"):
        pages.add_response(rows, Response(200, "", {}, raw.block), origin, html=html, limit=limit)
    elif raw.kind == "revisit":
        pages.reject(rows, origin, "record:revisit", None)
    else:
        pages.reject(rows, origin, "record:not-response", raw.kind)


def _readable(block: bytes) -> str:
    """The part of a broken record that can be shown: its beginning, unless it is binary."""
    return "" if b"\0" in block[:4096] else block[:READ].decode("utf-8", "replace")


def _warc_records(file: BinaryIO, limit: int) -> Iterator[Raw]:
    """Every record; a damaged stretch is one record with a fault."""
    start_mark = _STARTS.get(codec_of(file.read(4)), b"")
    lenient = _BARE_LF.match(_head(file)) is not None
    start: int | None = 0
    reported = False
    while start is not None:
        last = start  # where the last record that could be read begins
        try:
            for record in _iterate(file, start, lenient):
                last = max(start, record.stream_pos)
                raw = _raw(record, limit)
                yield raw
                reported = False
                if raw.fault and not raw.fault.startswith(_SHORT):
                    reported = True
                    break
                if start_mark == b"\nWARC/":
                    last += record.content_length
            else:
                return
        except OSError as error:
            if error.errno is not None:
                raise
            if not reported:
                yield Raw("", None, None, "", b"", str(error))
                reported = True
        start = _next_start(file, last + 1, start_mark)


def _iterate(file: BinaryIO, start: int, lenient: bool) -> Any:
    from fastwarc.warc import ArchiveIterator

    file.seek(start)
    return ArchiveIterator(file, parse_http=False, quirks_mode=lenient, fsspec_args=False)


_SHORT = "cut short"


def _raw(record: Any, limit: int) -> Raw:
    headers = record.headers
    kind = (headers.get("WARC-Type") or "").strip().lower()
    url = headers.get("WARC-Target-URI")
    media_type = (headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    if kind == "response":
        if media_type != "application/http":  # DNS answers are responses too
            kind = f"{media_type or 'untyped'} response"
        media_type = (headers.get("WARC-Identified-Payload-Type") or "").lower()
    known = (kind, url.strip("<> ") if url else None, headers.get("WARC-Date"), media_type)
    length = record.content_length
    if not kind:
        return Raw(*known, b"", f"{_SHORT} or no WARC-Type in the record's headers")
    if length > limit:
        return Raw(*known, b"", too_large=True)
    try:
        block = record.reader.read(length)
    except OSError as error:
        if error.errno is not None:
            raise
        return Raw(*known, b"", str(error))
    fault = f"{_SHORT}: {len(block)} of {length} bytes" if len(block) < length else None
    return Raw(*known, block, fault)


def _next_start(file: BinaryIO, position: int, mark: bytes) -> int | None:
    """Where the next record after ``position`` may begin; None if there is none."""
    if not mark:
        return None
    offset = 1 if mark.startswith(b"\n") else 0
    file.seek(position)
    window, base = b"", position
    while data := file.read(READ):
        window += data
        at = window.find(mark)
        if at >= 0:
            return base + at + offset
        keep = len(mark) - 1
        base, window = base + len(window) - keep, window[-keep:]
    return None


_LINE = re.compile(
    rb"(?P<url>[a-zA-Z][a-zA-Z0-9+.-]*:.*?) (?P<address>[0-9a-fA-F.:]+|-) (?P<date>[0-9a-fA-F]+)"
    rb" (?P<type>[^ ]*(?: [^ ]+)?)"  # some servers' types hold a space
    rb"(?: (?P<status>\d{3}|-) [^ ]+ [^ ]+ \d+ [^ ]+)?"  # version 2: status, checksum, location, offset, file name
    rb" (?P<length>-?\d+)\r?"
)
_LONGEST_LINE = 1 << 16


def is_arc(head: bytes) -> bool:
    """Whether decompressed first bytes are those of an ARC file."""
    line = head.lstrip(b"\r\n").partition(b"\n")[0]
    return line.startswith(b"filedesc:") or _LINE.fullmatch(line) is not None


def _arc_records(file: BinaryIO, limit: int) -> Iterator[Raw]:
    """Every record of the file; at most ``limit`` bytes of one are in memory."""
    content = _Content(file)
    lost = False  # whether the last line was not a record
    while True:
        line = content.line()
        if line is None:
            break
        match = _LINE.fullmatch(line)
        if match is None:
            if line.strip() and not lost:
                yield Raw("", None, None, "", line, "a line that is not an ARC record")
            lost = lost or bool(line.strip())
            continue
        yield _record(content, match, limit)
        lost = int(match["length"]) < 0
    if content.fault:
        yield Raw("", None, None, "", b"", content.fault)


def _record(content: _Content, line: re.Match[bytes], limit: int) -> Raw:
    url, length = line["url"].decode("utf-8", "replace"), int(line["length"])
    kind = "response" if url.startswith("http") else url.partition(":")[0]
    known = (kind, url, line["date"].decode(), line["type"].decode("latin-1").lower())
    if length < 0:
        return Raw(*known, b"", f"length {length}")
    if length > limit:
        missing = length - content.skip(length)
        return Raw(*known, b"", f"cut short by {missing} bytes") if missing else Raw(*known, b"", too_large=True)
    block = content.take(length)
    fault = f"cut short: {len(block)} of {length} bytes" if len(block) < length else None
    return Raw(*known, block, fault)


class _Content:
    """Reads a file's content by lines and by bytes. ``fault``: why it broke off, if it did."""

    def __init__(self, file: BinaryIO) -> None:
        self._blocks = blocks(file)
        self._data, self._position = b"", 0
        self.fault: str | None = None

    def _fill(self) -> bool:
        try:
            more = next(self._blocks, b"")
        except Damaged as error:
            self.fault, more = str(error), b""
            self._blocks = iter(())
        self._data, self._position = self._data[self._position :] + more, 0
        return bool(more)

    def line(self) -> bytes | None:
        """The next line without its end (the first 64 KiB of a longer one); None at the end."""
        while True:
            end = self._data.find(b"\n", self._position, self._position + _LONGEST_LINE)
            if end < 0 and len(self._data) - self._position < _LONGEST_LINE and self._fill():
                continue
            if self._position == len(self._data):
                return None
            stop = end if end >= 0 else min(len(self._data), self._position + _LONGEST_LINE)
            line, self._position = self._data[self._position : stop], stop + (end >= 0)
            return line

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end."""
        parts = []
        while count:
            part = self._data[self._position : self._position + count]
            self._position += len(part)
            count -= len(part)
            parts.append(part)
            if count and not self._fill():
                break
        return b"".join(parts)

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes without keeping them; returns how many there were."""
        passed = 0
        while passed < count:
            part = min(count - passed, len(self._data) - self._position)
            self._position += part
            passed += part
            if passed < count and not self._fill():
                break
        return passed


def _add_conversion(rows: Rows, block: bytes, origin: Origin) -> None:
    """Add a conversion record: a document if it is plain text, else a reject."""
    if origin.media_type not in ("", "text/plain"):
        pages.reject(rows, origin, "record:content-type", origin.media_type)
    elif not block.strip():
        pages.reject(rows, origin, "record:empty-body", None)
    else:
        pages.add_text(rows, encodings.decode(block, "utf-8"), origin)
