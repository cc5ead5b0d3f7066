"""The texts of evaluation files: every string a benchmark holds, whatever its layout.

Comes in: files or folders: JSONL, JSON, plain text, TSV, CSV, Parquet, each also compressed with gzip or bzip2, and tar
archives of such. Goes out: columns of texts with the name of their file. The one decision: every string counts
(questions, answers, both sentences of a pair), as nobody can know which field a benchmark shows to a model. Members
of archives are read where they lie; nothing is unpacked anywhere.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import errors

BATCH_BYTES = 1 << 20
MOST_TEXT = 1 << 29
"""Bytes of text of all evaluation files: their n-grams take ten times as much memory in every worker (measured)."""
MOST_ROW = 1 << 26
"""Characters of a line, or of a row of CSV."""
MOST_JSON = 1 << 28
"""Bytes of what is read at once, unpacked: a .json file, a Parquet file within an archive, a row group of Parquet."""
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MEND = "give .jsonl, .json, .txt, .tsv, .csv or .parquet, also as .gz, .bz2 or .xz, or a .tar of them"
_MEND_SIZE = "split it, or leave out what no benchmark asks (training files)"


class _TooLarge(Exception):
    """What does not fit: said of the file that holds it."""


def evaluation_texts(paths: Iterable[str]) -> Iterator[tuple[str, pa.StringArray]]:
    """Columns of texts and the name of the file they are from, in the order of the names.

    ``paths``: local, or URLs that fsspec knows (``gs://``). Of a folder all files are read that have a known ending.
    Raises `errors.InputMissing`, `errors.InputUnreadable`, that also for more than `MOST_TEXT` and its like.
    """
    total = 0
    for given in paths:
        try:
            system, root = fsspec.core.url_to_fs(given)
            named = _files(system, root, given)
        except (OSError, ValueError, ImportError) as error:
            line = " ".join(str(error).split())
            raise errors.InputMissing(given, f"cannot be looked into ({line})", "check the path") from None
        for name, path in named:
            typed = given.rstrip("/") + "/".join(["", *name.split("/")[1:]])  # what was typed, and the way below it
            with system.open(path, "rb") as stream:
                for batch_name, batch in _guarded(name, typed, stream):
                    total += batch.nbytes
                    if total > MOST_TEXT:
                        what = f"with it evaluation files hold more than {MOST_TEXT} bytes of text"
                        raise errors.InputUnreadable(typed, what, _MEND_SIZE)
                    yield batch_name, batch


def _files(system: Any, root: str, given: str) -> list[tuple[str, str]]:
    """Files below a path with their names: from the folder's own name on, or the file's."""
    root = root.rstrip("/")
    if system.isdir(root):
        parent = len(root) - len(root.rpartition("/")[2])
        found = [(path[parent:], path) for path in system.find(root)]
        return sorted((name, path) for name, path in found if _kind(name) or name.endswith(_ARCHIVES))
    if not system.exists(root):
        raise errors.InputMissing(given, "no such evaluation file or folder", "check the path")
    return [(root.rpartition("/")[2], root)]


def _guarded(name: str, typed: str, stream: BinaryIO) -> Iterator[tuple[str, pa.StringArray]]:
    try:
        if name.endswith(_ARCHIVES):
            yield from _members(name, stream)
        else:
            yield from ((name, batch) for batch in _batches(_texts(name, stream)))
    except _TooLarge as error:
        raise errors.InputUnreadable(typed, str(error), _MEND_SIZE) from None
    except (
        OSError,
        EOFError,
        ValueError,
        zlib.error,
        lzma.LZMAError,
        tarfile.TarError,
        csv.Error,
        pa.ArrowException,
    ) as error:
        line = " ".join(str(error).split())
        raise errors.InputUnreadable(typed, f"cannot be read as an evaluation file ({line})", _MEND) from None


def _members(name: str, stream: BinaryIO) -> Iterator[tuple[str, pa.StringArray]]:
    with tarfile.open(fileobj=stream, mode="r:*") as archive:
        for member in archive:
            inner = archive.extractfile(member) if member.isfile() and _kind(member.name) else None
            if inner:
                yield from ((f"{name}:{member.name}", batch) for batch in _batches(_texts(member.name, inner)))


def _kind(name: str) -> Callable[[Any], Iterator[str]] | None:
    """How a file of this name is read; None where its ending says nothing."""
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return _READERS.get(Path(name).suffix.lower())


def _texts(name: str, stream: Any) -> Iterator[str]:
    read = _kind(name)
    if read is None:
        raise ValueError("its ending is not known")
    packed = _PACKED.get(Path(name).suffix)
    return read(packed(stream, "rb") if packed else stream)


def _batches(texts: Iterator[str]) -> Iterator[pa.StringArray]:
    rows: list[str] = []
    size = 0
    for text in texts:
        # A surrogate has no UTF-8; JSON can hold one.
        rows.append(text.encode("utf-8", "replace").decode())
        size += len(text)
        if size >= BATCH_BYTES:
            yield pa.array(rows, pa.string())
            rows, size = [], 0
    if rows:
        yield pa.array(rows, pa.string())


def _lines(stream: Any) -> Iterator[str]:
    text, number = io.TextIOWrapper(stream, "utf-8", "replace", newline=None), 0
    while line := text.readline(MOST_ROW + 1):
        number += 1
        if len(line) > MOST_ROW:
            raise _TooLarge(f"line {number} is longer than {MOST_ROW} characters")
        yield line


def _whole(stream: Any) -> bytes:
    data: bytes = stream.read(MOST_JSON + 1)
    if len(data) > MOST_JSON:
        raise _TooLarge(f"is larger than {MOST_JSON} bytes unpacked")
    return data


def _of_jsonl(stream: Any) -> Iterator[str]:
    for number, line in enumerate(_lines(stream), 1):
        if line.strip():
            try:
                yield from _strings(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from None


def _of_json(stream: Any) -> Iterator[str]:
    try:
        yield from _strings(json.loads(_whole(stream)))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _strings(value: Any) -> Iterator[str]:
    """All strings in a JSON value or an Arrow row, depth first; names of fields are none of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in _strings(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _strings(inner))


def _of_text(stream: Any) -> Iterator[str]:
    """Lines; cells where a line has tabs, as GLUE's own .txt files do."""
    for line in _lines(stream):
        yield from line.rstrip("\n").split("\t")


def _of_csv(stream: Any) -> Iterator[str]:
    csv.field_size_limit(MOST_ROW)
    size = 0

    def lines() -> Iterator[str]:
        nonlocal size
        for line in _lines(stream):
            size += len(line)
            if size > MOST_ROW:
                raise _TooLarge(f"a row is longer than {MOST_ROW} characters")
            yield line

    for row in csv.reader(lines()):
        size = 0
        yield from row


def _of_parquet(stream: Any) -> Iterator[str]:
    file = pq.ParquetFile(stream if stream.seekable() else io.BytesIO(_whole(stream)))
    groups = (file.metadata.row_group(k).total_byte_size for k in range(file.num_row_groups))
    if max(groups, default=0) > MOST_JSON:
        raise _TooLarge(f"a row group is larger than {MOST_JSON} bytes unpacked")
    for batch in file.iter_batches(batch_size=1024):
        for row in batch.to_pylist():
            yield from _strings(row)


_READERS: dict[str, Callable[[Any], Iterator[str]]] = {
    ".jsonl": _of_jsonl,
    ".json": _of_json,
    ".txt": _of_text,
    ".tsv": _of_text,  # without quoting, as GLUE's are
    ".csv": _of_csv,
    ".parquet": _of_parquet,
}
