"""Plain text: a file is a document, or blank lines separate documents.

A position counts the documents of the file from 0. A file has one encoding, taken from its mark or its first 128 KB (of
the whole file if it is one document); what does not fit it later becomes U+FFFD.
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
    """The records of a part (see `formats.Reader`)."""
    return read_text(file, split=options.text_split, max_record_bytes=options.max_record_bytes, skip=skip)


def read_text(file: BinaryIO, *, split: str, max_record_bytes: int, skip: Skip) -> Iterator[ReaderOutput]:
    """The documents of a text file. ``split``: "file" or "blank-line". A file without text has none."""
    reader = _whole if split == "file" else _by_blank_line
    rows, consumed = Rows(), 0
    for position, (text, reason, detail) in enumerate(reader(file, max_record_bytes)):
        if skip.take(1):
            continue
        rows.add(position, text, reason=reason, detail=detail)
        if rows.bytes >= READ:
            yield rows.take(), file.tell() - consumed
            consumed = file.tell()
    yield rows.take(), file.tell() - consumed


Document = tuple[str, str | None, str | None]
"""Text, reason, detail."""


def _whole(file: BinaryIO, limit: int) -> Iterator[Document]:
    parts, size, damage = [], 0, None
    try:
        for data in blocks(file):
            parts.append(data)
            size += len(data)
            if size > limit:
                yield _excerpt(parts[0]), "record:too-large", f"larger than {limit} bytes"
                return
    except Damaged as error:
        damage = str(error)
    whole = b"".join(parts)
    if looks_binary(whole) and not damage:
        yield "", "record:content-type", "binary data, not text"
        return
    text = encodings.decode(whole)
    if text.strip() or damage:
        yield text, "record:unreadable" if damage else None, damage


def _excerpt(data: bytes) -> str:
    return encodings.decode(data[:1000])


def _by_blank_line(file: BinaryIO, limit: int) -> Iterator[Document]:
    damage: list[str] = []
    chunks = _decoded(_until_damage(blocks(file), damage))
    pending, dropping = "", False
    for chunk in chunks:
        *whole, pending = _BLANK.split(pending + chunk)
        for text in whole:
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
