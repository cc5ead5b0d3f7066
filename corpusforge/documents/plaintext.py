"""Plain text: a file is a document, or blank lines separate documents.

A position counts the documents of the file from 0. A file has one encoding, taken from its byte order mark or its first
128 KB (from the whole file if it is one document); bytes that do not fit it become U+FFFD.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

from corpusforge.documents import encodings
from corpusforge.documents.files import READ, Damaged, blocks
from corpusforge.documents.pages import looks_binary
from corpusforge.documents.records import FilePart, ReaderOutput, ReadOptions, Rows, Skip

_BLANK = re.compile(r"\n[ \t\r\f\v]*\n\s*")


def recognizes(head: bytes) -> bool:
    """Whether content is text rather than binary data."""
    marks = tuple(mark for mark, _ in encodings.MARKS)
    return not head or (b"\0" not in head and not head.startswith(b"%PDF")) or head.startswith(marks)


def read(file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    """The documents of a text file (see `files.Reader`); a file without text has none."""
    split = _as_one if options.text_split == "file" else _by_blank_line
    rows, consumed = Rows(), 0
    for position, (text, reason, detail) in enumerate(split(file, options.max_record_bytes)):
        if skip.take(1):
            continue
        rows.add(position, text, reason=reason, detail=detail)
        if rows.bytes >= READ:
            yield rows.take(), file.tell() - consumed
            consumed = file.tell()
    yield rows.take(), file.tell() - consumed


Document = tuple[str, str | None, str | None]
"""Text, reason, detail."""


def _as_one(file: BinaryIO, limit: int) -> Iterator[Document]:
    parts, size, damage = [], 0, None
    try:
        for data in blocks(file):
            parts.append(data)
            size += len(data)
            if size > limit:
                yield encodings.decode(parts[0][:1000]), "record:too-large", f"larger than {limit} bytes"
                return
    except Damaged as error:
        damage = str(error)
    content = b"".join(parts)
    if looks_binary(content) and not damage:
        yield "", "record:content-type", "binary data, not text"
        return
    text = encodings.decode(content)
    if text.strip() or damage:
        yield text, "record:unreadable" if damage else None, damage


def _by_blank_line(file: BinaryIO, limit: int) -> Iterator[Document]:
    damage: list[str] = []
    chunks = _decoded(_until_damage(blocks(file), damage))
    pending, dropping = "", False
    for chunk in chunks:
        *paragraphs, pending = _BLANK.split(pending + chunk)
        for text in paragraphs:
            if dropping:
                dropping = False
            elif text.strip():
                yield _checked(text, limit)
        if len(pending) > limit:
            if not dropping:
                yield pending[:1000], "record:too-large", f"larger than {limit} bytes"
            pending, dropping = pending[-1:], True
    if pending.strip() and not dropping and not damage:
        yield _checked(pending, limit)
    if damage:
        yield pending, "record:unreadable", damage[0]


def _checked(text: str, limit: int) -> Document:
    if len(text) > limit // 4 and len(text.encode("utf-8", "replace")) > limit:
        return text[:1000], "record:too-large", f"larger than {limit} bytes"
    return text.strip(), None, None


def _until_damage(source: Iterator[bytes], damage: list[str]) -> Iterator[bytes]:
    try:
        yield from source
    except Damaged as error:
        damage.append(str(error))


def _decoded(source: Iterator[bytes]) -> Iterator[str]:
    first = next(source, b"")
    encoding = encodings.of_stream(first)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).removeprefix("\ufeff")
    for data in source:
        yield decoder.decode(data)
    yield decoder.decode(b"", True)
