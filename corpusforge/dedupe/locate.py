"""Find where kept copies are: from places (unit and sentence row) to document ids and byte offsets.

A unit of a large corpus has copies in nearly every other unit, so reading those units' columns whole would be
quadratic in the number of units. On local disks the columns are memory-mapped and only the wanted rows are touched
(`locate_copies`). Files on object stores cannot be mapped; there all units ask each other in one shuffle, each unit's
SPANS are read once to answer all questions, and the answers are written to ``where/`` (`locate_remotely`).

    units -> questions -> group by the unit asked -> answers -> group by the asking unit -> where/
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
from corpusforge.dedupe.job import Job
from corpusforge.dedupe.spans import pack, pack_groups, row_of, unit_of, unpack

_MAPPED = 64
"""Units kept mapped by a process: each holds a file descriptor, of which there may be only 256 (macOS)."""

WHERE = pa.schema(
    [
        pa.field("place", pa.uint64(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),  # in the text as it came to the stage
    ]
)
"""The document and the byte offset of the sentence at a place, ascending by place."""


def span_path(folder: str, unit: int) -> str:
    """The file of a unit's SPANS rows."""
    return shards.join(folder, f"spans/part-{unit:05d}-00000.arrow")


class Part(NamedTuple):
    """A batch of a unit's SPANS, as views."""

    first: int  # sentence row of the unit that it begins with
    offsets: I32  # its document i owns starts[offsets[i]:offsets[i + 1]]
    starts: npt.NDArray[Any]  # in the text as it came to the stage
    documents: pa.StringArray


def locate_copies(places: U64, folder: str) -> tuple[pa.StringArray, I64]:
    """The document id and the byte offset of the sentence at each place.

    ``folder``: of the units' SPANS. Raises `errors.ManifestInvalid` if a shard cannot be read.
    """
    return locate_in(places, lambda unit: _parts(span_path(folder, unit)))


def locate_in(places: U64, parts_of: Callable[[int], list[Part]]) -> tuple[pa.StringArray, I64]:
    """As `locate_copies`. ``parts_of``: the parts of a unit (`split_parts`)."""
    wanted, back = np.unique(places, return_inverse=True)
    units, bounds = np.unique(unit_of(wanted), return_index=True)
    names: list[pa.Array] = [pa.array([], pa.string())]
    starts: list[I64] = [np.zeros(0, np.int64)]
    for unit, rows in zip(units.tolist(), np.split(row_of(wanted), bounds[1:]), strict=False):
        for part in parts_of(unit):
            end = part.first + int(part.offsets[-1] - part.offsets[0])
            a, b = np.searchsorted(rows, [part.first, end]).tolist()
            if a < b:
                here = (rows[a:b] - part.first + part.offsets[0]).astype(np.int32)  # as the offsets: else a copy
                names.append(part.documents.take(pa.array(np.searchsorted(part.offsets, here, "right") - 1)))
                starts.append(part.starts[here].astype(np.int64))
    return pa.concat_arrays(names).take(pa.array(back)), np.concatenate(starts)[back]


def forget() -> None:
    """Close the mapped files, so that removing them frees their space."""
    _mapped.cache_clear()


def _parts(path: str) -> list[Part]:
    return _open(path) if shards.is_remote(path) else _mapped(path, file_version(path))


def file_version(path: str) -> tuple[int, int, int]:
    """Distinguishes a local file from another that had its name before. Raises `errors.ManifestInvalid` without one."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise errors.ManifestInvalid(path, f"unreadable shard ({error})", "run the stage again") from None
    return status.st_mtime_ns, status.st_ino, status.st_size


@functools.lru_cache(maxsize=_MAPPED)
def _mapped(path: str, version: tuple[int, int, int]) -> list[Part]:
    return _open(path)


def _open(path: str) -> list[Part]:
    return split_parts(shards.read_shard(path))


def split_parts(batches: Iterable[pa.RecordBatch]) -> list[Part]:
    """The parts of a unit, from its SPANS batches, of which only document, starts and origins are read."""
    parts, first = [], 0
    for batch in batches:
        column = batch.column("starts")
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
        origins = batch.column("origins")
        starts = column if origins.null_count else origins
        parts.append(Part(first, offsets, starts.values.to_numpy(), batch.column("document")))
        first += int(offsets[-1] - offsets[0])
    return parts


def locate_remotely(job: Job, wanted: Callable[[int], U64]) -> None:
    """Write ``where/`` of a method whose scratch is on an object store; on a local disk there is nothing to do.

    ``wanted``: the places that a unit needs to locate.
    """
    if not shards.is_remote(job.scratch):
        return
    mark = shards.join(_where_folder(job.scratch), "all.json")
    if not shards.exists(mark):
        job.engine.shuffle(
            [unit.number for unit in job.units],
            functools.partial(ask, wanted),
            functools.partial(answer, functools.partial(locate_copies, folder=job.scratch)),
            functools.partial(write_answers, job.scratch),
            folder=job.scratch,
        )
        shards.write_json(mark, {"units": len(job.units)})


def ask(wanted: Callable[[int], U64], unit: int) -> Iterator[tuple[int, bytes]]:
    """The questions of a unit to others: (the other, the asking unit and the places that it wants)."""
    return questions(unit, wanted(unit))


def questions(unit: int, places: U64) -> Iterator[tuple[int, bytes]]:
    """The questions of a unit about these places: (the unit that is asked, the asking unit and the places)."""
    places = np.unique(places)
    for other, block in pack_groups(unit_of(places), places):
        yield other, pack(np.array([unit], np.uint64)) + block


def read_questions(packed: Iterable[bytes]) -> list[tuple[int, U64]]:
    """The asking unit of each question, and its places."""
    words = [unpack([question], 1)[0] for question in packed]
    return [(int(question[0]), question[1:]) for question in words]


def answer(
    locate: Callable[[U64], tuple[pa.StringArray, I64]], asked: int, packed: Iterable[bytes]
) -> Iterator[tuple[int, bytes]]:
    """The answers of one unit to all others: (the asking unit, a WHERE batch as an Arrow stream)."""
    asking = read_questions(packed)
    documents, starts = locate(np.concatenate([places for _, places in asking]))
    first = 0
    for asker, places in asking:
        part = slice(first, first + len(places))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, WHERE) as writer:
            columns = [pa.array(places), documents[part], pa.array(starts[part])]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=WHERE))
        yield asker, sink.getvalue().to_pybytes()
        first += len(places)


def write_answers(folder: str, unit: int, packed: Iterable[bytes]) -> None:
    """Write the answers that a unit got from all others."""
    table = merge_answers(packed)
    writer = shards.ShardWriter(_where_folder(folder), _where_name(unit), WHERE, "arrow")
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()


def merge_answers(packed: Iterable[bytes]) -> pa.Table:
    """The answers that a unit got from all others: WHERE, ascending by place."""
    batches = [batch for block in packed for batch in pa.ipc.open_stream(block)]
    return pa.Table.from_batches(batches, WHERE).sort_by("place").combine_chunks()


def look_up(places: U64, answers: pa.Table) -> tuple[pa.StringArray, I64]:
    """The document id and the byte offset of the sentence at each place, from `merge_answers`."""
    rows = pa.array(np.searchsorted(answers["place"].to_numpy(), places))
    copies = answers.select(["document", "start"]).take(rows).combine_chunks()
    return pa.concat_arrays([pa.array([], pa.string()), *copies["document"].chunks]), copies["start"].to_numpy()


def locate_for(unit: int, places: U64, folder: str) -> tuple[pa.StringArray, I64]:
    """The document id and the byte offset of the sentence at each place that ``unit`` needs."""
    path = shards.join(_where_folder(folder), _where_name(unit))
    if not shards.is_remote(folder) or not shards.exists(path):
        return locate_copies(places, folder)
    return look_up(places, pa.Table.from_batches(shards.read_shard(path), WHERE).combine_chunks())


def _where_folder(folder: str) -> str:
    return shards.join(folder, "where")


def _where_name(unit: int) -> str:
    return f"part-{unit:05d}-00000.arrow"
