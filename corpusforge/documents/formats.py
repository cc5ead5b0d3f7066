"""The formats of input files, and which one a file is in: by its name, else by its first bytes.

A name with a known ending is believed; only other files are opened.
"""

from __future__ import annotations

from itertools import islice
from pathlib import PurePosixPath

from corpusforge import errors
from corpusforge.documents import warc
from corpusforge.documents.encodings import MARKS
from corpusforge.documents.files import Damaged, blocks, codec_of, open_input

__all__ = ["codec_of", "format_of"]

_PACKED = (".gz", ".zst", ".zstd", ".bz2", ".xz")
_NAMES = {
    ".wet": "wet",
    ".warc": "warc",
    ".wat": "warc",
    ".arc": "warc",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".txt": "text",
}
FORMATS = "warc, wet, jsonl, parquet or text"


def format_by_name(path: str) -> str | None:
    """The format a name tells of.

    >>> format_by_name("a/CC-MAIN-0001.warc.wet.gz"), format_by_name("b.warc.open"), format_by_name("c.dat")
    ('wet', 'warc', None)
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(path.partition("?")[0]).suffixes]
    while suffixes and suffixes[-1] in (*_PACKED, ".open", ".part"):
        suffixes.pop()
    return _NAMES.get(suffixes[-1]) if suffixes else None


def format_of(path: str) -> str:
    """The format of a file, by name or content.

    Raises `errors.InputUnreadable` where neither tells.
    """
    return format_by_name(path) or _format_by_content(path)


def _format_by_content(path: str) -> str:
    with open_input(path) as file:
        if file.read(4) == b"PAR1":
            return "parquet"
        file.seek(0)
        try:
            head = b"".join(islice(blocks(file), 4))[:65536]
        except Damaged:
            head = b""
    found = _content(head)
    if found is None:
        raise errors.InputUnreadable(path, "its format cannot be told", f"name it: {FORMATS}; or leave the file out")
    return found


def _content(head: bytes) -> str | None:
    if head.startswith(b"WARC/"):
        return "warc"
    if warc.is_arc(head):
        return "warc"
    if head.lstrip().startswith(b'{"') and b"\n" in head:
        return "jsonl"
    if not head or (b"\0" not in head and not head.startswith(b"%PDF")) or head.startswith(tuple(m for m, _ in MARKS)):
        return "text"
    return None
