"""Web archives: WARC by FastWARC, ARC by `corpusforge.documents.arc`; one row for every record of any kind.

Comes in: a WARC or ARC file, gzip by record or whole, zstd, or plain. Goes out: RECORDS. The one decision: FastWARC
says nothing about a record that is cut short, and stops at the first damage; here a short record is
``record:unreadable`` (with what can be read of it), a damaged stretch is one such reject, and reading goes on at the
next record behind it that can be found. FastWARC 2.0 does not read ARC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from corpusforge.documents import arc, pages, wet
from corpusforge.documents.files import READ, Damaged, blocks, codec_of
from corpusforge.documents.pages import Origin, Raw
from corpusforge.documents.records import ReaderOutput, Rows, Skip, parse_timestamp
from corpusforge.documents.responses import Response

_ROWS = 512
"""Records a batch at most: most records of a crawl (requests, images) carry no text and would pile up."""

_STARTS = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd", "": b"\nWARC/"}
"""What a record begins with in a file of each codec."""


_BARE_LF = re.compile(rb"WARC/\d\.\d\n")
"""The first line of files whose headers do not end in CRLF, which FastWARC reads only when told to be lenient. It then
passes over rubbish in silence, so others are read strictly."""


def read_archive(file: BinaryIO, *, html: str, max_record_bytes: int, skip: Skip) -> Iterator[ReaderOutput]:
    """The records of a WARC, WET, WAT or ARC file. ``html``: "main" or "all".

    Positions count records from 0. Nothing raises but an operating system's refusal.
    """
    rows, consumed = Rows(), 0
    source = arc.records if arc.is_arc(_head(file)) else _warc_records
    for position, raw in enumerate(source(file, max_record_bytes)):
        if skip.take(1):
            continue
        origin = Origin(position, raw.url, parse_timestamp(raw.date) if raw.date else None, raw.media_type)
        _add(rows, raw, origin, html, max_record_bytes)
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
        wet.add_conversion(rows, raw.block, origin)
    elif raw.kind == "resource" and (raw.url or "").startswith("http"):
        pages.add_response(rows, Response(200, "", {}, raw.block), origin, html=html, limit=limit)
    elif raw.kind == "revisit":
        pages.reject(rows, origin, "record:revisit", None)
    else:
        pages.reject(rows, origin, "record:not-response", raw.kind)


def _readable(block: bytes) -> str:
    """What can be shown of a broken record: its beginning, as far as it is text."""
    return "" if b"\0" in block[:4096] else block[:READ].decode("utf-8", "replace")


def _warc_records(file: BinaryIO, limit: int) -> Iterator[Raw]:
    """Every record; a damaged stretch is one record with a fault."""
    start_mark = _STARTS.get(codec_of(file.read(4)), b"")
    lenient = _BARE_LF.match(_head(file)) is not None
    start: int | None = 0
    reported = False
    while start is not None:
        after = start
        try:
            for record in _iterate(file, start, lenient):
                after = max(start, record.stream_pos)
                raw = _raw(record, limit)
                yield raw
                reported = False
                if raw.fault and not raw.fault.startswith(_SHORT):
                    reported = True
                    break
                if start_mark == b"\nWARC/":
                    after += record.content_length
            else:
                return
        except OSError as error:
            if error.errno is not None:
                raise
            if not reported:
                yield Raw("", None, None, "", b"", str(error))
                reported = True
        start = _next_start(file, after + 1, start_mark)


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
    """Where the next record behind ``position`` may begin; None: nowhere."""
    if not mark:
        return None
    offset = 1 if mark.startswith(b"\n") else 0
    file.seek(position)
    window, base = b"", position
    while data := file.read(READ):
        window += data
        found = window.find(mark)
        if found >= 0:
            return base + found + offset
        keep = len(mark) - 1
        base, window = base + len(window) - keep, window[-keep:]
    return None
