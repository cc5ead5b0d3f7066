"""Where sentences stand: from places (unit and sentence row) to document ids and byte offsets.

Comes in: places of any units, and where the units' span hashes lie. Goes out: an id and an offset for each place. The
one decision: columns are memory-mapped and only the rows asked for are touched. A unit of a large corpus has copies in
nearly every other one, so reading those units' columns whole would take the square of the number of units. (URLs cannot
be mapped: there each unit that is asked for is read as a stream.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import errors, shards
from corpusforge.arrays import I32, I64, U64
from corpusforge.dedupe.spans import row_of, unit_of

_MAPPED = 64
"""Units kept mapped by a process: each holds a file descriptor, of which there may be 256 (macOS)."""


class _Part(NamedTuple):
    """A batch of a unit's SPANS, as views."""

    first: int  # sentence row of the unit it begins with
    offsets: I32  # its document i owns starts[offsets[i]:offsets[i + 1]]
    starts: npt.NDArray[Any]  # in the text as it came to the stage
    documents: pa.StringArray


def locate_copies(places: U64, path_of: Callable[[int], str]) -> tuple[pa.StringArray, I64]:
    """The document id and the byte offset of the sentence at each place.

    ``path_of``: gives the path of a unit's SPANS shard. Raises `errors.ManifestInvalid` where one cannot be read.
    """
    wanted, back = np.unique(places, return_inverse=True)
    units, bounds = np.unique(unit_of(wanted), return_index=True)
    names: list[pa.Array] = [pa.array([], pa.string())]
    starts: list[I64] = [np.zeros(0, np.int64)]
    for unit, asked in zip(units.tolist(), np.split(row_of(wanted), bounds[1:]), strict=False):
        for part in _parts(path_of(unit)):
            behind = part.first + int(part.offsets[-1] - part.offsets[0])
            a, b = np.searchsorted(asked, [part.first, behind]).tolist()
            if a < b:
                rows = (asked[a:b] - part.first + part.offsets[0]).astype(np.int32)  # as the offsets: else a copy
                names.append(part.documents.take(pa.array(np.searchsorted(part.offsets, rows, "right") - 1)))
                starts.append(part.starts[rows].astype(np.int64))
    return pa.concat_arrays(names).take(pa.array(back)), np.concatenate(starts)[back]


def forget() -> None:
    """Let go of the mapped files, so that removing them frees their space."""
    _mapped.cache_clear()


def _parts(path: str) -> list[_Part]:
    if shards.is_remote(path):
        return _open(path)
    try:
        found = Path(path).stat()
    except OSError as error:
        raise errors.ManifestInvalid(path, f"unreadable shard ({error})", "run the stage again") from None
    return _mapped(path, (found.st_mtime_ns, found.st_ino, found.st_size))


@functools.lru_cache(maxsize=_MAPPED)
def _mapped(path: str, written: tuple[int, int, int]) -> list[_Part]:
    """``written``: tells a file from another that had its name before."""
    return _open(path)


def _open(path: str) -> list[_Part]:
    parts, first = [], 0
    for batch in shards.read_shard(path):
        column = batch.column("starts")
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
        origins = batch.column("origins")
        starts = column if origins.null_count else origins
        parts.append(_Part(first, offsets, starts.values.to_numpy(), batch.column("document")))
        first += int(offsets[-1] - offsets[0])
    return parts


# MERGED DOCSTRING of corpusforge.work.where:
# Where copies stand, asked and answered by units: for folders on object stores, whose files cannot be mapped.
#
# Comes in: places that a unit asks for, and the units they lie in. Goes out: ``where/``, a file a unit with
# the document
# and the offset of each. The one decision: a unit's span hashes are read once and answer all who ask, so that what is
# read grows with the corpus and not with the square of its units. On local disks `places.locate` reads what it needs.

PathOf = Callable[[int], str]
"""Gives the path of a unit's SPANS shard."""

WHERE = pa.schema(
    [
        pa.field("place", pa.uint64(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),  # in the text as it came to the stage
    ]
)
"""The document and the byte offset of the sentence at a place, ascending by place."""


def where_folder(folder: str) -> str:
    """Where answers go, below the folder of a method's span hashes."""
    return shards.join(folder, "where")


def questions(unit: int, places: U64) -> Iterator[tuple[int, bytes]]:
    """What a unit asks of others: (the other, packed: the unit and the places)."""
    wanted = np.unique(places)
    units, first = np.unique(unit_of(wanted), return_index=True)
    for other, asked in zip(units.tolist(), np.split(wanted, first[1:]), strict=False):
        yield other, np.r_[np.uint64(unit), asked].astype("<u8").tobytes()


def answers(path_of: PathOf, asked: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The answers of one unit to all who ask it: (who asked, a WHERE batch as an Arrow stream)."""
    blocks = [np.frombuffer(block, "<u8").astype(np.uint64, copy=False) for block in asked]
    askers, many = [int(block[0]) for block in blocks], [block[1:] for block in blocks]
    documents, starts = locate_copies(np.concatenate(many), path_of)
    first = 0
    for asker, places in zip(askers, many, strict=True):
        part = slice(first, first + len(places))
        columns = [pa.array(places), documents[part], pa.array(starts[part])]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, WHERE) as writer:
            writer.write(pa.RecordBatch.from_arrays(columns, schema=WHERE))
        yield asker, sink.getvalue().to_pybytes()
        first += len(places)


def write_answers(folder: str, unit: int, packed: Iterable[bytes]) -> None:
    """Write what a unit asked for, from all that answered."""
    batches = [batch for block in packed for batch in pa.ipc.open_stream(block)]
    table = pa.Table.from_batches(batches, WHERE).sort_by("place").combine_chunks()
    writer = shards.ShardWriter(where_folder(folder), _name(unit), WHERE, "arrow")
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()


def locate_for(unit: int, places: U64, folder: str, path_of: PathOf) -> tuple[pa.StringArray, I64]:
    """The document id and the byte offset of the sentence at each place that ``unit`` asks for."""
    path = shards.join(where_folder(folder), _name(unit))
    if not shards.is_remote(folder) or not shards.exists(path):
        return locate_copies(places, path_of)
    table = pa.Table.from_batches(shards.read_shard(path), WHERE).combine_chunks()
    found = pa.array(np.searchsorted(table["place"].to_numpy(), places))
    kept = table.select(["document", "start"]).take(found).combine_chunks()
    names = pa.concat_arrays([pa.array([], pa.string()), *kept["document"].chunks])
    return names, kept["start"].to_numpy()


def _name(unit: int) -> str:
    return f"part-{unit:05d}-00000.arrow"
