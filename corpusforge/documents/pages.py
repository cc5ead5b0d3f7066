"""Turn an archived HTTP response into a row: the text of a page, or the reason why there is none.

Text is extracted from HTML (`html`); ``text/plain`` is used as it is. Headers may be wrong about bodies: a body that
does not look like what they claim (already decoded by the crawler, as by warcio's and Common Crawl's writers) is used
as it is; one that begins correctly and then breaks off raises `BodyBroken`. Header lines may end in a bare LF (old ARC
files).
"""

from __future__ import annotations

import importlib.util
import io
import re
import zlib
from dataclasses import dataclass
from typing import NamedTuple

import xxhash

from corpusforge.documents import encodings
from corpusforge.documents.files import MAGIC, Damaged, blocks
from corpusforge.documents.html import PageRefused, page_text
from corpusforge.documents.records import Rows

UNREAD = "unread"
"""In place of "main" or "all": extract no text from pages; a hash of the body takes its place."""

HTML = ("text/html", "application/xhtml+xml")
PLAIN = ("text/plain",)


@dataclass(frozen=True)
class Origin:
    """Where a record is from. ``media_type``: that of the archive, for responses without one of their own."""

    position: int
    url: str | None = None
    timestamp: int | None = None
    media_type: str = ""


class Raw(NamedTuple):
    """A record of an archive.

    ``kind``: WARC-Type, or what an ARC or non-HTTP record is instead; ``media_type``: that of the page according to the
    archive. ``fault``: why the record cannot be read in full; ``block`` is then the readable part.
    """

    kind: str
    url: str | None
    date: str | None
    media_type: str
    block: bytes
    fault: str | None = None
    too_large: bool = False


def add_block(rows: Rows, block: bytes, origin: Origin, *, html: str, limit: int) -> None:
    """Add the record of an archived HTTP response: a document, or a reject with its reason."""
    response = parse_response(block)
    if response.status != 200:
        reject(rows, origin, "record:http-status", response.status_line or "no status line")
        return
    add_response(rows, response, origin, html=html, limit=limit)


def add_response(rows: Rows, response: Response, origin: Origin, *, html: str, limit: int) -> None:
    """The same for a response (or a resource) with status 200."""
    kind = response.content_type or origin.media_type
    if kind and kind not in HTML + PLAIN:
        reject(rows, origin, "record:content-type", kind)
        return
    try:
        body = decoded_body(response, limit)
    except BodyTooLarge:
        reject(rows, origin, "record:too-large", f"the body is larger than {limit} bytes")
        return
    except BodyBroken as error:
        reject(rows, origin, "record:unreadable", str(error))
        return
    if not body.strip():
        reject(rows, origin, "record:empty-body", None)
    elif looks_binary(body) or (not kind and not _looks_like_html(body)):
        reject(rows, origin, "record:content-type", f"{kind or 'no type'}, but the body is something else")
    elif html == UNREAD:
        rows.add(origin.position, xxhash.xxh3_128_hexdigest(body), url=origin.url, timestamp=origin.timestamp)
    else:
        page = encodings.decode(body, response.charset, is_html=kind not in PLAIN)
        try:
            add_text(rows, page if kind in PLAIN else page_text(page, html), origin)
        except PageRefused as refused:
            reject(rows, origin, refused.reason, refused.detail)


def add_text(rows: Rows, text: str, origin: Origin) -> None:
    """Add extracted text as a document, or reject the record where there is none."""
    if text.strip():
        rows.add(origin.position, text, url=origin.url, timestamp=origin.timestamp)
    else:
        reject(rows, origin, "record:no-text", None)


def reject(rows: Rows, origin: Origin, reason: str, detail: str | None, text: str = "") -> None:
    """Add a reject."""
    rows.add(origin.position, text, url=origin.url, timestamp=origin.timestamp, reason=reason, detail=detail)


def _looks_like_html(body: bytes) -> bool:
    head = body[:512].lstrip().lower()
    return head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<title"))


_END = re.compile(rb"\r?\n\r?\n")
_CHUNK = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(;[^\r\n]*)?\r?\n")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.I)


_LONGEST_HEAD = 1 << 18
"""Bytes of headers that are read: Chrome refuses longer ones (net/http/http_stream_parser.h, 256 KiB)."""

_MOST_CODINGS = 5
"""Nested content codings (curl, lib/content_encoding.c, MAX_ENCODE_STACK)."""

_BINARY = (b"%PDF-", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x7fELF")
"""First bytes of formats that servers often declare as HTML (PDF, PNG, GIF, JPEG, ZIP, ELF)."""


class BodyBroken(Exception):
    """A body cannot be decoded. The message says why."""


class BodyTooLarge(Exception):
    """A body decodes to more than the limit."""


@dataclass(frozen=True)
class Response:
    """``status``: 0 where the block has no status line. ``headers``: lower-case names; the last of each counts."""

    status: int
    status_line: str
    headers: dict[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        """Media type without parameters, lower case; "" where none is given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset the header declares."""
        match = _CHARSET.search(self.headers.get("content-type", ""))
        return match[1] if match else None


def parse_response(block: bytes) -> Response:
    r"""Split a response into its status, headers and body.

    >>> r = parse_response(b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=big5\r\n\r\n<p>")
    >>> r.status, r.content_type, r.charset, r.body
    (200, 'text/html', 'big5', b'<p>')
    """
    if not block.startswith(b"HTTP"):
        return Response(0, "", {}, block)
    end = _END.search(block, 0, _LONGEST_HEAD)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block[:_LONGEST_HEAD], b"")
    lines = head.decode("latin-1").split("\n")
    words = lines[0].split(None, 2)
    status = int(words[1]) if len(words) > 1 and words[1].isascii() and words[1].isdigit() else 0
    headers = {}
    for line in lines[1:]:  # about a dozen lines per record
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return Response(status, " ".join(words[1:])[:200].strip(), headers, body)


def decoded_body(response: Response, limit: int) -> bytes:
    """The body without chunks and compression, at most ``limit`` bytes.

    Raises `BodyBroken`, `BodyTooLarge`.
    """
    body = response.body
    if "chunked" in response.headers.get("transfer-encoding", "").lower():
        body = _joined_chunks(body)
    named = response.headers.get("content-encoding", "").lower().replace(" ", "").split(",")
    encodings = [name for name in named if name not in ("", "identity")]
    if len(encodings) > _MOST_CODINGS:
        raise BodyBroken(f"{len(encodings)} content codings on top of each other")
    for encoding in reversed(encodings):  # the last one was applied last (RFC 9110, 8.4)
        body = _decompressed(body, encoding, limit)
    if len(body) > limit:
        raise BodyTooLarge
    return body


def _joined_chunks(body: bytes) -> bytes:
    """RFC 9112, 7.1. Where the framing breaks off the rest is kept: crawlers truncate long bodies."""
    parts: list[bytes] = []
    position = 0
    while chunk := _CHUNK.match(body, position):
        size = int(chunk[1], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(body[chunk.end() : chunk.end() + size])
        position = chunk.end() + size
        position += 2 if body[position : position + 2] == b"\r\n" else body[position : position + 1] == b"\n"
    return b"".join(parts) + body[position:]


def _decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding in ("gzip", "x-gzip"):
        return _bounded(body, limit) if body.startswith(b"\x1f\x8b") else body
    if encoding == "zstd":
        return _bounded(body, limit) if body.startswith(b"\x28\xb5\x2f\xfd") else body
    if encoding == "deflate":
        return _inflated(body, limit)
    if encoding == "br":
        return _unbrotlied(body, limit)
    return body  # identity, or not a coding ("utf-8" is common)


def _bounded(body: bytes, limit: int) -> bytes:
    """gzip or zstd, up to the limit. Garbage after a complete member is ignored, as in browsers."""
    parts, size = [], 0
    try:
        for part in blocks(io.BytesIO(body)):
            size += len(part)
            if size > limit:
                raise BodyTooLarge
            parts.append(part)
    except Damaged as error:
        raise BodyBroken(str(error)) from None
    return b"".join(parts)


def _inflated(body: bytes, limit: int) -> bytes:
    """deflate: zlib (RFC 1950) by the standard, raw (RFC 1951) from many servers, or not compressed at all."""
    for wbits in (15, -15):
        reader = zlib.decompressobj(wbits)
        try:
            out = reader.decompress(body, limit + 1)
        except zlib.error:
            continue
        if len(out) > limit:
            raise BodyTooLarge
        if reader.eof:
            return out
    if looks_like_text(body):
        return body
    raise BodyBroken("deflate: neither zlib nor bare, or broken off")


def _unbrotlied(body: bytes, limit: int) -> bytes:
    if importlib.util.find_spec("brotli") is None:
        if looks_like_text(body):
            return body
        raise BodyBroken("br: the package 'brotli' is not installed")
    import brotli  # type: ignore[import-untyped,unused-ignore]

    reader, parts, size, feed = brotli.Decompressor(), [], 0, body
    try:
        while not reader.is_finished():
            part = reader.process(feed, output_buffer_limit=1 << 20)
            if not part and (feed == b"" or reader.can_accept_more_data()):
                break
            feed, size = b"", size + len(part)
            if size > limit:
                raise BodyTooLarge
            parts.append(part)
        if reader.is_finished():
            return b"".join(parts)
    except brotli.error:
        pass
    if looks_like_text(body):
        return body
    raise BodyBroken("br: broken, or broken off")


def looks_like_text(body: bytes) -> bool:
    """Whether a body declared as compressed is not: it begins with printable ASCII (tags, words, white space)."""
    head = body[:64]
    return bool(head) and all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head)


def looks_binary(body: bytes) -> bool:
    """Whether a body declared as HTML or text is something else: an archive, an image.

    Where about half of the bytes are NUL it is UTF-16; a few come from sloppy servers; in between are binary formats.
    """
    head = body[:1024]
    if head.startswith((*_BINARY, *MAGIC)):
        return True
    nuls = head.count(0)
    return nuls > len(head) // 50 and not head.startswith((b"\xff\xfe", b"\xfe\xff")) and nuls < 0.3 * len(head)
