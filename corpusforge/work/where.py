"""Where copies stand, asked and answered by units: for folders on object stores, whose files cannot be mapped.

Comes in: places that a unit asks for, and the units they lie in. Goes out: ``where/``, a file a unit with the document
and the offset of each. The one decision: a unit's span hashes are read once and answer all who ask, so that what is
read grows with the corpus and not with the square of its units. On local disks `places.locate` reads what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from corpusforge import shards
from corpusforge.arrays import I64, U64
from corpusforge.dedupe.spans import unit_of
from corpusforge.work.places import locate

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


def questions(unit: int, places: U64) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """What a unit asks of others: (the other, (the unit, packed places))."""
    wanted = np.unique(places)
    units, first = np.unique(unit_of(wanted), return_index=True)
    for other, asked in zip(units.tolist(), np.split(wanted, first[1:]), strict=False):
        yield other, (unit, asked.astype("<u8").tobytes())


def answers(path_of: PathOf, asked: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The answers of one unit to all who ask it: (who asked, a WHERE batch as an Arrow stream)."""
    askers, packed = zip(*asked, strict=True)
    many = [np.frombuffer(block, "<u8").astype(np.uint64, copy=False) for block in packed]
    documents, starts = locate(np.concatenate(many), path_of)
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
        return locate(places, path_of)
    table = pa.Table.from_batches(shards.read_shard(path), WHERE).combine_chunks()
    found = pa.array(np.searchsorted(table["place"].to_numpy(), places))
    kept = table.select(["document", "start"]).take(found).combine_chunks()
    names = pa.concat_arrays([pa.array([], pa.string()), *kept["document"].chunks])
    return names, kept["start"].to_numpy()


def _name(unit: int) -> str:
    return f"part-{unit:05d}-00000.arrow"
