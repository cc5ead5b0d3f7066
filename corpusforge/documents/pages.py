"""One archived response to one record: the text of a page, or the reason why it is none.

Comes in: an HTTP response and where it is from. Goes out: a row in `corpusforge.documents.records.Rows`. The one
decision: text is taken out of HTML (`corpusforge.documents.html_text`); `text/plain` is taken as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import xxhash

from corpusforge.documents import encodings
from corpusforge.documents.html_text import PageRefused, page_text
from corpusforge.documents.records import Rows
from corpusforge.documents.responses import (
    BodyBroken,
    BodyTooLarge,
    Response,
    decoded_body,
    looks_binary,
    parse_response,
)

UNREAD = "unread"
"""In place of "main" or "all": pages are looked at as far as their text; in its place stands a hash of their body."""

HTML = ("text/html", "application/xhtml+xml")
PLAIN = ("text/plain",)


@dataclass(frozen=True)
class Origin:
    """Where a record is from. ``media_type``: what the archive knows, for responses that do not say it themselves."""

    position: int
    url: str | None = None
    timestamp: int | None = None
    media_type: str = ""


class Raw(NamedTuple):
    """One record as it stands in an archive.

    ``kind``: WARC-Type, or what an ARC or non-HTTP record is instead; ``media_type``: of the page, as the archive
    knows it. ``fault``: why it cannot be read in full; ``block`` is then the part that can.
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
    """The same for a response (or a resource) whose status is fine."""
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
