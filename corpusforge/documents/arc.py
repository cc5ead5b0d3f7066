"""ARC, the Internet Archive's format before WARC: a line for each record, then its bytes.

Comes in: an ARC file, plain or gzip. Goes out: raw records, as WARC files yield them. The one
decision: a record line is recognised by its shape, not by what the file's header promises (real files mix versions 1
and 2). After a line of another shape, reading goes on at the next that fits; the stretch between is one reject.
Source: "Arc File Format", Burner and Kahle, Internet Archive 1996.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from corpusforge.documents.files import Damaged, blocks
from corpusforge.documents.pages import Raw

_LINE = re.compile(
    rb"(?P<url>[a-zA-Z][a-zA-Z0-9+.-]*:.*?) (?P<address>[0-9a-fA-F.:]+|-) (?P<date>[0-9a-fA-F]+)"
    rb" (?P<type>[^ ]*(?: [^ ]+)?)"  # some servers' types hold a space
    rb"(?: (?P<status>\d{3}|-) [^ ]+ [^ ]+ \d+ [^ ]+)?"  # version 2: status, checksum, location, offset, file name
    rb" (?P<length>-?\d+)\r?"
)
_LONGEST_LINE = 1 << 16


def is_arc(head: bytes) -> bool:
    """Whether a file's decompressed first bytes are those of an ARC file."""
    line = head.lstrip(b"\r\n").partition(b"\n")[0]
    return line.startswith(b"filedesc:") or _LINE.fullmatch(line) is not None


def records(file: BinaryIO, limit: int) -> Iterator[Raw]:
    """Every record of the file; at most ``limit`` bytes of one are held."""
    content = _Content(file)
    lost = False
    while True:
        line = content.line()
        if line is None:
            break
        found = _LINE.fullmatch(line)
        if found is None:
            if line.strip() and not lost:
                yield Raw("", None, None, "", line, "a line that is no ARC record")
            lost = lost or bool(line.strip())
            continue
        yield _record(content, found, limit)
        lost = int(found["length"]) < 0
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
    """A file's content by lines and by counts of bytes. ``fault``: why it broke off, if it did."""

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
        """Pass over ``count`` bytes without keeping them; how many there were."""
        passed = 0
        while passed < count:
            part = min(count - passed, len(self._data) - self._position)
            self._position += part
            passed += part
            if passed < count and not self._fill():
                break
        return passed
