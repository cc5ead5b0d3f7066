"""Drop documents that contain text of evaluation files, so that a model is not trained on its test data.

The rule is that of GPT-3 (Brown et al. 2020, appendix C: 13 words in a row, lower case, without punctuation) with a
length of 8 (PaLM, Chowdhery et al. 2022, section 8) to 13. A shorter evaluation text counts as a whole if it has 8
words or more; still shorter ones are only counted, because they occur by chance.

Evaluation files are JSONL, JSON, plain text, TSV, CSV or Parquet, each also compressed with gzip or bzip2, and tar
archives of these. Every string in them counts (questions, answers, both sentences of a pair), because which field a
benchmark shows to a model is unknown. Members of archives are read in place; nothing is unpacked.
"""

from __future__ import annotations

import bz2
import csv
import functools
import gzip
import hashlib
import io
import json
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import errors
from corpusforge.arrays import I64, U8, U64, ranges
from corpusforge.clean.ngrams import NormalWords, normal_words
from corpusforge.clean.step import Verdict, page_verdict

SHORTEST, LONGEST = 8, 13
"""Words of an n-gram: 8 in PaLM (section 8), at most 13 in GPT-3 (appendix C)."""
REASON = "page:contaminated"
_FILTER_BITS = 64  # bits of the filter per n-gram: one in 64 words is looked up in vain


class Table(NamedTuple):
    """The n-grams of all evaluation files.

    ``hashes[m]``: of n-grams of m words, ascending and distinct; ``files[m]``: number in ``names`` of the first
    file that holds each. ``filter``: bits that are set for the first eight words of every n-gram.
    """

    names: tuple[str, ...]
    hashes: dict[int, U64]
    files: dict[int, I64]
    filter: U8
    texts: int
    too_short: int

    def digest(self) -> str:
        """SHA-256 of all that decides."""
        digest = hashlib.sha256("\n".join(self.names).encode())
        for length in sorted(self.hashes):
            digest.update(f"\n{length} ".encode() + self.hashes[length].tobytes() + self.files[length].tobytes())
        return digest.hexdigest()


class Hits(NamedTuple):
    """N-grams of the table in a batch, ascending: number of the first word, length in words, number of the file."""

    words: I64
    lengths: I64
    files: I64


@dataclass(frozen=True)
class ContaminationStep:
    """``paths``: evaluation files and folders. ``length``: words of an n-gram. Picklable: files are read where used."""

    paths: tuple[str, ...]
    length: int = LONGEST

    @property
    def name(self) -> str:
        """What rejects say dropped a page."""
        return "contamination"

    def check(self) -> None:
        """Raises an error of `errors` where the length is out of range or the files hold no usable text."""
        if not SHORTEST <= self.length <= LONGEST:
            what, mend = f"{self.length} words", f"from {SHORTEST} to {LONGEST}"
            raise errors.RecipeInvalid("clean.contamination_ngram", what, mend)
        if not any(map(len, self._table.hashes.values())):
            what = f"no text of {SHORTEST} words or more"
            raise errors.InputMissing(", ".join(self.paths), what, "name the files that hold the texts")

    def resources(self) -> dict[str, Any]:
        """The digest of the n-grams, and counts of what was read."""
        table = self._table
        counts = {"files": len(table.names), "texts": table.texts, "too_short": table.too_short}
        return {**counts, "ngrams": sum(map(len, table.hashes.values())), "digest": table.digest()}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Drop the documents that contain an n-gram."""
        words = normal_words(documents["text"])
        hits = look_up(words, self._table)
        owners = np.searchsorted(words.offsets, hits.words, "right") - 1
        dropped = np.zeros(documents.num_rows, bool)
        dropped[owners] = True
        # A Python loop over dropped documents only, each by its first hit.
        firsts = np.flatnonzero(np.diff(owners, prepend=-1)).tolist()
        details = {int(owners[k]): self._detail(words, hits, k) for k in firsts}
        return page_verdict(documents, REASON, dropped, details)

    def _detail(self, words: NormalWords, hits: Hits, k: int) -> str:
        return f"{self._table.names[hits.files[k]]}: {words.text(int(hits.words[k]), int(hits.lengths[k]))}"

    @property
    def _table(self) -> Table:
        return build_table(self.paths, self.length)


@functools.lru_cache(maxsize=2)
def build_table(paths: tuple[str, ...], length: int) -> Table:
    """Read evaluation files, once per process: workers get paths, not tables."""
    names: dict[str, int] = {}
    parts: dict[int, list[tuple[U64, U64, int]]] = {}
    texts = too_short = 0
    for name, column in evaluation_texts(paths):
        number = names.setdefault(name, len(names))
        words = normal_words(column)
        counts = np.diff(words.offsets)
        texts += int((counts > 0).sum())
        too_short += int(((counts > 0) & (counts < SHORTEST)).sum())
        for size in range(SHORTEST, length + 1):
            places = _places(words.offsets, counts, size, whole=size < length)
            if len(places):
                part = words.ngrams_at(places, size), words.ngrams_at(places, SHORTEST), number
                parts.setdefault(size, []).append(part)
    hashes, files = {}, {}
    for size, of_size in sorted(parts.items()):
        # The first of equal hashes is that of the first file.
        hashes[size], first = np.unique(np.concatenate([part[0] for part in of_size]), return_index=True)
        files[size] = np.repeat([part[2] for part in of_size], [len(part[0]) for part in of_size])[first]
    heads = [part[1] for of_size in parts.values() for part in of_size]
    return Table(tuple(names), hashes, files, _filter_of(heads), texts, too_short)


def _places(offsets: I64, counts: I64, size: int, *, whole: bool) -> I64:
    """First words of the n-grams of ``size`` words: of texts of that length (``whole``), or of all that are long
    enough."""
    if whole:
        return np.asarray(offsets[:-1][counts == size])
    return ranges(offsets[:-1], np.maximum(counts - size + 1, 0))


def _filter_of(heads: list[U64]) -> U8:
    """A bit array with a bit set for each head; its size is a power of two."""
    power = max(16, (_FILTER_BITS * sum(map(len, heads))).bit_length())
    bits = np.zeros(1 << (power - 3), np.uint8)
    for head in heads:
        bit = head >> np.uint64(64 - power)
        np.bitwise_or.at(bits, bit >> np.uint64(3), np.uint8(1) << (bit & np.uint64(7)).astype(np.uint8))
    return bits


def look_up(words: NormalWords, table: Table) -> Hits:
    """Every n-gram of the table in a batch; of those that begin at the same word the shortest."""
    heads = words.ngrams(SHORTEST)
    bit = heads >> np.uint64(65 - (8 * len(table.filter)).bit_length())
    likely = np.flatnonzero(table.filter[bit >> np.uint64(3)] >> (bit & np.uint64(7)).astype(np.uint8) & 1)
    left = words.offsets[np.searchsorted(words.offsets, likely, "right")] - likely
    lengths, files = np.zeros(len(likely), np.int64), np.zeros(len(likely), np.int64)
    for size, known in table.hashes.items():
        rest = np.flatnonzero((left >= size) & (lengths == 0))
        hashes = words.ngrams_at(likely[rest], size)
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        same = known[at] == hashes
        lengths[rest[same]], files[rest[same]] = size, table.files[size][at[same]]
    hit = lengths > 0
    return Hits(likely[hit], lengths[hit], files[hit])


BATCH_BYTES = 1 << 20
MOST_TEXT = 1 << 29
"""Bytes of text of all evaluation files: their n-grams take ten times as much memory in every worker (measured)."""
MOST_ROW = 1 << 26
"""Characters of a line, or of a row of CSV."""
MOST_JSON = 1 << 28
"""Bytes read at once, unpacked: a .json file, a Parquet file within an archive, a row group of Parquet."""
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MEND = "give .jsonl, .json, .txt, .tsv, .csv or .parquet, also as .gz, .bz2 or .xz, or a .tar of them"
_MEND_SIZE = "split it, or leave out what no benchmark asks (training files)"


class _TooLarge(Exception):
    """Too much text or too long a row; reported with the file that holds it."""


def evaluation_texts(paths: Iterable[str]) -> Iterator[tuple[str, pa.StringArray]]:
    """Columns of texts with the name of their file, in the order of the names.

    ``paths``: local, or URLs that fsspec knows (``gs://``). In a folder all files with a known ending are read. Raises
    `errors.InputMissing`, `errors.InputUnreadable`, the latter also above `MOST_TEXT` and the other limits.
    """
    total = 0
    for given in paths:
        try:
            system, root = fsspec.core.url_to_fs(given)
            files = _files(system, root, given)
        except (OSError, ValueError, ImportError) as error:
            line = " ".join(str(error).split())
            raise errors.InputMissing(given, f"cannot be looked into ({line})", "check the path") from None
        for name, path in files:
            typed = given.rstrip("/") + "/".join(["", *name.split("/")[1:]])  # the path as the user wrote it
            with system.open(path, "rb") as stream:
                for batch_name, batch in _guarded(name, typed, stream):
                    total += batch.nbytes
                    if total > MOST_TEXT:
                        what = f"with it evaluation files hold more than {MOST_TEXT} bytes of text"
                        raise errors.InputUnreadable(typed, what, _MEND_SIZE)
                    yield batch_name, batch


def _files(system: Any, root: str, given: str) -> list[tuple[str, str]]:
    """Files below a path with their names, which begin with the folder's own name or are the file's."""
    root = root.rstrip("/")
    if system.isdir(root):
        parent = len(root) - len(root.rpartition("/")[2])
        files = [(path[parent:], path) for path in system.find(root)]
        return sorted((name, path) for name, path in files if _kind(name) or name.endswith(_ARCHIVES))
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
    """How a file of this name is read; None for an unknown ending."""
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
        # JSON can hold a surrogate, which has no UTF-8.
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
    """All strings in a JSON value or an Arrow row, depth first, without names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in _strings(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _strings(inner))


def _of_text(stream: Any) -> Iterator[str]:
    """Lines, or cells where a line has tabs, as in GLUE's own .txt files."""
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
