"""Open inputs, local paths and fsspec URLs, decompress them, and tell their formats.

The codec is recognized by the first bytes, never by the name. A stream that breaks off or fails its checksum raises
`Damaged` only after all its good content has been returned. No step holds more than a few megabytes, however hard the
data was compressed.

Formats are the rows of `sections.INPUT_FORMATS`. A known file ending decides; other files are opened, and the first
format that recognizes their content is taken.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol, cast

from corpusforge import errors
from corpusforge.documents.records import FilePart, ReaderOutput, ReadOptions, Skip
from corpusforge.sections import INPUT_FORMATS

READ = 1 << 20
"""Bytes of a plain file in one read, and the most that one step of decompression yields."""

_PACKED = 1 << 18
"""Bytes of a compressed file in one read: small, because the bytes after a member are copied."""

_FEED = 512
"""Compressed bytes fed at once to zstd, whose API has no bound on output; 4 bytes can stand for 128 KiB (RFC 8878,
section 3.1.1.2), so a step yields at most 16 MiB. Larger feeds are no faster (measured: 512, 4096 and 16384)."""

_ZSTD_WINDOW = 1 << 31
"""Bytes a frame may look back, and so need: the window of ``zstd --long=31`` (zstd(1)), as in some dumps."""

_LZMA_MEMORY = 1 << 28
"""Bytes a dictionary of xz may take; files by ``xz -9`` need 64 MiB (xz(1)), the format allows 4 GiB."""

MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
}
"""First bytes of each codec (RFC 1952, RFC 8878, bzip2 and xz file formats)."""


class Damaged(Exception):
    """A compressed stream ends early or is not what it claims to be. The message says which."""


def is_remote(path: str) -> bool:
    """Whether a path is a URL for fsspec."""
    return "://" in path


def open_input(path: str) -> BinaryIO:
    """Open a file or URL for reading.

    Raises `errors.InputMissing` if it has gone, `errors.InputUnreadable` if it may not be read.
    """
    try:
        if is_remote(path):
            import fsspec  # 50 ms, for URLs only

            return fsspec.open(path, "rb").open()  # type: ignore[no-any-return]
        return Path(path).open("rb")
    except FileNotFoundError:
        raise errors.InputMissing(path, "the file has gone", "put it back, or start the stage anew") from None
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: OSError) -> errors.InputUnreadable:
    """The error for an operating system's refusal."""
    return errors.InputUnreadable(path, f"cannot be read ({error.strerror or error})", "check its permissions")


def codec_of(head: bytes) -> str:
    """The codec that a file's first bytes indicate, or "" for none.

    >>> codec_of(b"\\x1f\\x8b\\x08")
    'gzip'
    """
    return next((codec for magic, codec in MAGIC.items() if head.startswith(magic)), "")


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """The content of a file from its position on, decompressed if its first bytes say so.

    Raises `Damaged` after the last good block.
    """
    first = file.read(_PACKED)
    codec = codec_of(first)
    if codec == "":
        while first:
            yield first
            first = file.read(READ)
    elif codec == "zstd":
        yield from _zstd(first, file)
    else:
        yield from _members(first, file, codec)


def _start(codec: str) -> Any:
    if codec == "gzip":
        return zlib.decompressobj(31)  # 31: a window of 32 KiB, gzip header and checksum (zlib manual, inflateInit2)
    return bz2.BZ2Decompressor() if codec == "bzip2" else lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)


def _members(data: bytes, file: BinaryIO, codec: str) -> Iterator[bytes]:
    """gzip, bzip2 or xz: one member after another; zero bytes between or after them are padding."""
    reader = _start(codec)
    ended = False  # whether the last member is complete
    while data or (data := file.read(_PACKED)):
        if ended:
            data = data.lstrip(b"\0")
            if not data:
                continue
            reader, ended = _start(codec), False
        try:
            yield from _drain(reader, data)
        except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
            raise Damaged(f"{codec}: {error}") from None
        ended, data = reader.eof, reader.unused_data if reader.eof else b""
    if not ended:
        raise Damaged(f"{codec}: the file breaks off inside a compressed member")


def _drain(reader: Any, data: bytes) -> Iterator[bytes]:
    """All output for some input, at most READ bytes at once. zlib leaves unread input to the caller, others keep it."""
    is_zlib = hasattr(reader, "unconsumed_tail")
    while True:
        out = reader.decompress(data, READ)
        if out:
            yield out
        data = reader.unconsumed_tail if is_zlib else b""
        more = data or len(out) == READ if is_zlib else not reader.needs_input
        if reader.eof or not more:
            return


def _zstd(data: bytes, file: BinaryIO) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    reader, ended = decompressor.decompressobj(), False
    while data or (data := file.read(_PACKED)):
        view = memoryview(data)
        data, place = b"", 0
        while place < len(view):
            chunk = view[place : place + _FEED]
            if ended:
                reader, ended = decompressor.decompressobj(), False
            try:
                out = reader.decompress(chunk)
            except zstandard.ZstdError as error:
                raise Damaged(f"zstd: {error}") from None
            if out:
                yield out
            place += len(chunk)
            if reader.eof:
                ended, place = True, place - len(reader.unused_data)
    if not ended:
        raise Damaged("zstd: the file breaks off inside a compressed frame")


_PACKED_ENDINGS = (".gz", ".zst", ".zstd", ".bz2", ".xz", ".open", ".part")


class Reader(Protocol):
    """A module that reads a format."""

    def read(self, file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
        """The records of a part."""

    def recognizes(self, head: bytes) -> bool:
        """Whether a file is in this format, judged by up to 64 KiB of its decompressed content."""


def reader_of(name: str) -> Reader:
    """The module that reads a format, imported on demand."""
    return cast(Reader, importlib.import_module(f"corpusforge.documents.{INPUT_FORMATS[name].module}"))


def format_of(path: str) -> str:
    """The format of a file, by name or content. Raises `errors.InputUnreadable` if neither determines it."""
    return format_by_name(path) or _format_by_content(path)


def format_by_name(path: str) -> str | None:
    """The format that a name implies, or None.

    >>> format_by_name("a/CC-MAIN-0001.warc.wet.gz"), format_by_name("b.warc.open"), format_by_name("c.dat")
    ('wet', 'warc', None)
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(path.partition("?")[0]).suffixes]
    while suffixes and suffixes[-1] in _PACKED_ENDINGS:
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
