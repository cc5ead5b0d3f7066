"""Small files that unpack to hundreds of megabytes, each with what reading it should give.

`BOMBS` maps a file's name to (its bytes, the number of its documents, reasons of its rejects). Run as a program with a
folder, it reads each file there and prints by how many megabytes the process grew at most: so a test can measure that
in a process of its own.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import resource
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from corpusforge.documents.plan import plan_units
from corpusforge.documents.read import read_unit
from corpusforge.documents.records import ReadOptions
from tests.documents.raw_inputs import page, warc_record

LIMIT = 4 << 20
UNPACKED = 300
"""Megabytes that each unpacks to."""

HTML = b"Content-Type: text/html\r\n"
AFTER = warc_record(page("The page after it."))
MEGABYTE = b"a" * (1 << 20)
Pack = Callable[[bytes, bytes, bytes], bytes]
"""Packs a beginning, `UNPACKED` times a megabyte, and an end."""


def _zlib(bits: int) -> Pack:
    def pack(first: bytes, middle: bytes, last: bytes) -> bytes:
        packer = zlib.compressobj(1, zlib.DEFLATED, bits)
        parts = [packer.compress(first), *(packer.compress(middle) for _ in range(UNPACKED)), packer.compress(last)]
        return b"".join([*parts, packer.flush()])

    return pack


def _zstd(first: bytes, middle: bytes, last: bytes) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    parts = [packer.compress(first), *(packer.compress(middle) for _ in range(UNPACKED)), packer.compress(last)]
    return b"".join([*parts, packer.flush()])


def _brotli(first: bytes, middle: bytes, last: bytes) -> bytes:
    packer = brotli.Compressor(quality=1)
    parts = [packer.process(first), *(packer.process(middle) for _ in range(UNPACKED)), packer.process(last)]
    return b"".join([*parts, packer.finish()])


def _by(module: type[bz2.BZ2Compressor] | type[lzma.LZMACompressor]) -> Pack:
    def pack(first: bytes, middle: bytes, last: bytes) -> bytes:
        packer = module()
        parts = [packer.compress(first), *(packer.compress(middle) for _ in range(UNPACKED)), packer.compress(last)]
        return b"".join([*parts, packer.flush()])

    return pack


def _gzip(first: bytes, middle: bytes, last: bytes) -> bytes:
    return _zlib(31)(first, middle, last)


def _body(coding: str, pack: Pack, again: int = 0) -> bytes:
    packed = pack(b"", MEGABYTE, b"")
    for _ in range(again):
        packed = gzip.compress(packed)
    return warc_record(packed, HTML + f"Content-Encoding: {coding}\r\n".encode()) + AFTER


def _parquet(column: pa.Array, **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"text": column}), file, compression="zstd", **options)
    return file.getvalue()


def _record(length: int) -> bytes:
    """The beginning of a record that claims this length."""
    whole = warc_record(b"", HTML)
    length += len(whole.partition(b"\r\n\r\n")[2]) - 4
    return whole.replace(b"Content-Length: ", b"Content-Length: %d\r\nX: " % length, 1)[:-4]


LARGE, BROKEN = "record:too-large", "record:unreadable"
LINES = b'{"text": "a"}\n{"text": "', b'"}\n{"text": "b"}\n'
Bomb = tuple[Callable[[], bytes], int, list[str]]

BOMBS: dict[str, Bomb] = {
    "gzip.warc": (lambda: _body("gzip", _gzip), 1, [LARGE]),
    "deflate.warc": (lambda: _body("deflate", _zlib(15)), 1, [LARGE]),
    "bare-deflate.warc": (lambda: _body("deflate", _zlib(-15)), 1, [LARGE]),
    "br.warc": (lambda: _body("br", _brotli), 1, [LARGE]),
    "zstd.warc": (lambda: _body("zstd", _zstd), 1, [LARGE]),
    "gzip-in-gzip.warc": (lambda: _body("gzip, gzip, gzip", _gzip, 2), 1, [LARGE]),
    "many-codings.warc": (lambda: _body("gzip," * 1000, _gzip, 2), 1, [BROKEN]),
    "huge-record.warc.gz": (
        lambda: _gzip(_record(UNPACKED << 20), MEGABYTE, b"\r\n\r\n") + gzip.compress(AFTER),
        1,
        [LARGE],
    ),
    "endless-member.warc.gz": (lambda: _gzip(AFTER, MEGABYTE, b"") + gzip.compress(AFTER), 2, [BROKEN]),
    "endless-frame.warc.zst": (lambda: _zstd(AFTER, MEGABYTE, b"") + zstandard.compress(AFTER), 2, [BROKEN]),
    "endless-header.warc.gz": (
        lambda: _gzip(b"WARC/1.0\r\nX: ", MEGABYTE, b"") + gzip.compress(AFTER),
        1,
        [BROKEN],
    ),
    "many-headers.warc.gz": (
        lambda: _gzip(b"WARC/1.0\r\n", b"X: y\r\n" * (1 << 17), b"") + gzip.compress(AFTER),
        1,
        [BROKEN],
    ),
    "http-headers.warc": (lambda: warc_record(b"", b"X: y\r\n" * 600_000) + AFTER, 1, ["record:empty-body"]),
    "chunks.warc": (
        lambda: warc_record(b"1\r\na\r\n" * 600_000, HTML + b"Transfer-Encoding: chunked\r\n") + AFTER,
        2,
        [],
    ),
    "arc.arc.gz": (
        lambda: _gzip(b"http://a.org/ 1.1.1.1 20240501000000 text/html 99999999999\n", MEGABYTE, b""),
        0,
        [BROKEN],
    ),
    "line.jsonl.gz": (lambda: _gzip(LINES[0], MEGABYTE, LINES[1]), 2, [LARGE]),
    "line.jsonl.zst": (lambda: _zstd(LINES[0], MEGABYTE, LINES[1]), 2, [LARGE]),
    "line.jsonl.bz2": (lambda: _by(bz2.BZ2Compressor)(LINES[0], MEGABYTE, LINES[1]), 2, [LARGE]),
    "line.jsonl.xz": (lambda: _by(lzma.LZMACompressor)(LINES[0], MEGABYTE, LINES[1]), 2, [LARGE]),
    "gzip-in-gzip.jsonl.gz": (lambda: gzip.compress(_gzip(b"", MEGABYTE, b"")), 0, ["record:bad-json"]),
    "deep.jsonl": (lambda: b'{"text": "a", "x": ' + b"[" * 900_000 + b"]" * 900_000 + b"}\n", 1, []),
    "text.txt.gz": (lambda: _gzip(b"", MEGABYTE, b""), 0, [LARGE]),
    "dictionary.parquet": (
        lambda: _parquet(pa.DictionaryArray.from_arrays(pa.array([0] * 99, pa.int32()), pa.array(["a" * (5 << 20)]))),
        0,
        [LARGE],
    ),
    "repeated.parquet": (
        lambda: _parquet(pa.DictionaryArray.from_arrays(pa.array([0] * 999, pa.int32()), pa.array(["a" * (3 << 20)]))),
        999,
        [],
    ),
    "rows.parquet": (
        lambda: _parquet(pa.array(["a" * (3 << 20)] * 99), use_dictionary=False, write_batch_size=1),
        99,
        [],
    ),
    "page.parquet": (lambda: _parquet(pa.array(["a" * (3 << 20)] * 99), use_dictionary=False), 0, [LARGE]),
    "tags.warc": (lambda: warc_record(b"<p>" * 1_200_000, HTML) + AFTER, 1, [LARGE]),
    "nested.warc": (lambda: warc_record(b"<DIV>a" * 50_000, HTML) + AFTER, 1, [LARGE]),
}


def _read(path: Path) -> tuple[int, set[str]]:
    """How many documents there are, and the reasons of rejects; nothing is kept."""
    documents, reasons = 0, set()
    for unit in plan_units([str(path)]):
        for batch in read_unit(unit, ReadOptions(max_record_bytes=LIMIT)):
            documents += batch.documents.num_rows
            reasons |= set(batch.rejects["reason"].to_pylist())
    return documents, reasons


def main(folder: str) -> None:
    """Print ``name documents reasons megabytes seconds`` of each bomb."""
    _read(Path(folder) / "first.warc")  # loads what reading needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in BOMBS:
        began = time.monotonic()
        documents, reasons = _read(Path(folder) / name)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10
        seconds = round(time.monotonic() - began, 1)
        print(name, documents, ",".join(sorted(reasons)) or "-", grown, seconds, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
