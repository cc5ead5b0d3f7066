"""Bytes of WARC and WET records, the same on every run.

Comes in: a URL, a date, headers and a body. Goes out: one gzip member a record, as crawlers write them. Record ids are
UUIDs of the content, gzip carries no time, so rebuilding gives the same archive (ISO 28500, WARC 1.0).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import uuid

_SPACE = uuid.UUID("6f1e7c52-3b7a-5d63-9c55-2f6c6f727075")


def _digest(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def _uri(*parts: object) -> str:
    return f"<urn:uuid:{uuid.uuid5(_SPACE, '|'.join(map(str, parts)))}>"


def record(kind: str, date: str, block: bytes, headers: dict[str, str]) -> bytes:
    """One WARC record as a gzip member. ``date``: ISO 8601 in UTC; ``block``: everything behind the WARC headers."""
    lines = {
        "WARC-Type": kind,
        "WARC-Date": date,
        "WARC-Record-ID": _uri(kind, date, headers.get("WARC-Target-URI", ""), _digest(block)),
        "WARC-Block-Digest": _digest(block),
        **headers,
        "Content-Length": str(len(block)),
    }
    head = "WARC/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 9, mtime=0)


def warcinfo(date: str, name: str, description: str) -> bytes:
    """The record at the head of an archive."""
    fields = {
        "software": "sample_data/build.py",
        "format": "WARC File Format 1.0",
        "description": description,
        "robots": "none: every page was made for this archive",
    }
    block = "".join(f"{key}: {value}\r\n" for key, value in fields.items()).encode()
    return record("warcinfo", date, block, {"WARC-Filename": name, "Content-Type": "application/warc-fields"})


def http_block(status: str, headers: dict[str, str], body: bytes) -> bytes:
    """An HTTP response as it went over the line."""
    head = f"HTTP/1.1 {status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    return head.encode("latin-1") + body


def response(url: str, date: str, body: bytes, *, status: str = "200 OK", **headers: str) -> bytes:
    """A response record. Keyword ``Content_Type`` becomes the HTTP header ``Content-Type``, and so on."""
    http = {name.replace("_", "-"): value for name, value in headers.items()}
    http.setdefault("Content-Type", "text/html; charset=utf-8")
    http.setdefault("Content-Length", str(len(body)))
    fields = {
        "WARC-Target-URI": url,
        "WARC-Payload-Digest": _digest(body),
        "Content-Type": "application/http; msgtype=response",
    }
    return record("response", date, http_block(status, http, body), fields)


def request(url: str, date: str) -> bytes:
    """The request record that stands before a response."""
    host, _, path = url.split("://", 1)[1].partition("/")
    block = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: sample\r\nAccept: text/html\r\n\r\n".encode()
    return record("request", date, block, {"WARC-Target-URI": url, "Content-Type": "application/http; msgtype=request"})


def revisit(url: str, date: str, body: bytes) -> bytes:
    """A revisit record: the page has not changed since it was crawled, so its body is not kept again."""
    block = http_block("200 OK", {"Content-Type": "text/html; charset=utf-8"}, b"")
    fields = {
        "WARC-Target-URI": url,
        "WARC-Payload-Digest": _digest(body),
        "WARC-Profile": "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest",
        "Content-Type": "application/http; msgtype=response",
    }
    return record("revisit", date, block, fields)


def conversion(url: str, date: str, text: str, language: str) -> bytes:
    """A record of a WET archive: the page's text, one line a paragraph."""
    fields = {"WARC-Target-URI": url, "Content-Type": "text/plain"}
    if language:
        fields["WARC-Identified-Content-Language"] = language
    return record("conversion", date, text.encode(), fields)


def chunked(body: bytes, size: int = 1500) -> bytes:
    """A body in HTTP's chunked transfer coding."""
    pieces = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
