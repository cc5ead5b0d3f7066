"""Which format a file is in, and the module that reads it.

Formats are the rows of `sections.INPUT_FORMATS`. A name with a known ending is believed; other files are opened, and
the first format that recognizes their content is taken.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol, cast

from corpusforge import errors
from corpusforge.documents.files import Damaged, blocks, open_input
from corpusforge.documents.records import FilePart, ReaderOutput, ReadOptions, Skip
from corpusforge.sections import INPUT_FORMATS

_PACKED = (".gz", ".zst", ".zstd", ".bz2", ".xz", ".open", ".part")


class Reader(Protocol):
    """A module that reads a format."""

    def read(self, file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
        """The records of a part."""

    def recognizes(self, head: bytes) -> bool:
        """Whether a file is in this format, by up to 64 KiB of its content, decompressed."""


def reader_of(name: str) -> Reader:
    """The module that reads a format, imported when it is needed."""
    return cast(Reader, importlib.import_module(f"corpusforge.documents.{INPUT_FORMATS[name].module}"))


def format_of(path: str) -> str:
    """The format of a file, by name or content. Raises `errors.InputUnreadable` if neither tells."""
    return format_by_name(path) or _format_by_content(path)


def format_by_name(path: str) -> str | None:
    """The format that a name tells, or None.

    >>> format_by_name("a/CC-MAIN-0001.warc.wet.gz"), format_by_name("b.warc.open"), format_by_name("c.dat")
    ('wet', 'warc', None)
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(path.partition("?")[0]).suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return next((name for name, row in INPUT_FORMATS.items() if suffixes and suffixes[-1] in row.endings), None)


def _format_by_content(path: str) -> str:
    with open_input(path) as file:
        try:
            head = b"".join(islice(blocks(file), 4))[:65536]
        except Damaged:
            head = b""
    for name in INPUT_FORMATS:
        if name != "hub" and reader_of(name).recognizes(head):
            return name
    known = ", ".join(name for name in INPUT_FORMATS if name != "hub")
    raise errors.InputUnreadable(path, "its format cannot be detected", f"name it: {known}; or leave the file out")
