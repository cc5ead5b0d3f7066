"""Pages with the same URL, unit by unit: list where records are from, then leave out the older copies.

Comes in: units of raw input. Goes out:

    ScanWork(unit)                  -> origins/part-UUUUU-00000.arrow, a row a record that has a URL
    blocks(path, unit, ...)         -> (partition, packed block) for the shuffle
    find_older(blocks)              (clean.copies) -> (unit, packed rows)
    write_older(folder, unit, ...)  -> older-N/part-UUUUU-RRRRR.arrow, one a round of N
    leave_out(raw, older)           a batch of the reader without them; they are rejects, ``page:older-copy``

Decision: input is read twice, the first time without taking text out of HTML, and 48 bytes a record are compared. An
older copy is named by its document's id, so nothing depends on where a unit goes on after a crash.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import shards
from corpusforge.arrays import U64
from corpusforge.clean.copies import (
    BLOCK_BYTES,
    OLDER,
    OLDER_BYTES,
    ORIGINS,
    Older,
    origins_of,
    pack_origins,
    unpack_older,
)
from corpusforge.schemas import REJECTS
from corpusforge.units import Advance, UnitOutput, UnitResult

if TYPE_CHECKING:
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.read import RawBatch, ReadOptions

OLDER_COPY = "page:older-copy"

# As work.dedupe has it, measured there: Beam's local runner holds about 3.5 times of what it shuffles. Here every
# record is shuffled once, and at worst every one again as an older copy; sorting one partition takes its block, its
# columns, an order and the ordered columns.
_SHUFFLE_FACTOR = 3.5
_SORT_BYTES = 130


@dataclass(frozen=True)
class ScanWork:
    """Lists the origins of a unit's documents. ``folder``: where ``origins/`` and its entries go."""

    folder: str
    options: ReadOptions

    def __call__(self, unit: Unit, advance: Advance) -> UnitResult:
        """Scan one unit; one that is done is not read again."""
        from corpusforge.documents.read import read_origins

        with UnitOutput(self.folder, unit.number, {"origins": (ORIGINS, "arrow")}, shard_bytes=1 << 62) as output:
            if output.done:
                return output.result(resumed=True)
            position = 0
            for found, consumed in read_origins(unit, self.options):
                rows = origins_of(*(found[name] for name in ("id", "url", "timestamp", "content")))
                position += found.num_rows
                counted = {"origins": rows.num_rows}
                output.write({"origins": rows}, position=position, size=0, tallies={}, statistics=counted)
                advance(consumed)
            return output.finish()


def origins_path(folder: str, unit: int) -> str:
    """Where `ScanWork` writes the origins of a unit."""
    return shards.join(folder, f"origins/part-{unit:05d}-00000.arrow")


def blocks(path: str, unit: int, partitions: int, round: int, rounds: int) -> list[tuple[int, bytes]]:
    """The records of one unit that belong to a round (from 0), as (partition, packed block), ascending."""
    table = pa.Table.from_batches(shards.read_shard(path), ORIGINS).combine_chunks()
    if not table.num_rows:
        return []
    rows = table.to_batches()[0]
    slots = _slots(rows.column("hash").to_numpy(), partitions * rounds)
    chosen = np.flatnonzero(slots // np.uint64(partitions) == round)
    partition = (slots[chosen] % np.uint64(partitions)).astype(np.uint16)
    order = np.argsort(partition, kind="stable")
    rows, partition = rows.take(pa.array(chosen[order])), partition[order]
    bounds = np.searchsorted(partition, np.arange(partitions + 1)).tolist()
    return [
        (number, pack_origins(rows.slice(a, b - a), unit))
        for number, (a, b) in enumerate(itertools.pairwise(bounds))
        if a < b
    ]


def plan_rounds(records: int, memory_bytes: int, partitions: int) -> int:
    """The fewest rounds for which the shuffle and the sorting of one partition fit the memory.

    >>> plan_rounds(1_000_000, 1 << 30, 64), plan_rounds(100_000_000, 1 << 30, 64)
    (1, 27)
    """
    a_record = (BLOCK_BYTES + OLDER_BYTES) * _SHUFFLE_FACTOR + _SORT_BYTES / partitions
    return max(1, -(-int(records * a_record) // max(1, memory_bytes)))


def _slots(hashes: U64, slots: int) -> U64:
    """Which of so many equal ranges of 64-bit numbers each hash lies in (as work.dedupe)."""
    return (hashes >> np.uint64(32)) * np.uint64(slots) >> np.uint64(32)


@dataclass(frozen=True)
class OlderCopies:
    """What a comparison in so many rounds found, in a folder of its own. Picklable: goes with the work of a unit."""

    scratch: str
    rounds: int

    @property
    def folder(self) -> str:
        """Where the rows lie: those of another number of rounds are not mixed with them."""
        return shards.join(self.scratch, f"older-{self.rounds}")

    def mark(self, round: int) -> str:
        """The file that says that a round is through."""
        return shards.join(self.folder, f"round-{round}.json")

    def write(self, unit: int, round: int, packed: Iterable[bytes]) -> None:
        """Write what `find_older` found for one unit in one round."""
        writer = shards.ShardWriter(self.folder, _name(unit, round), OLDER, "arrow")
        columns = [pa.array(column) for column in unpack_older(packed)]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=OLDER))
        writer.finish()

    def of_unit(self, unit: int) -> Older:
        """The older copies of a unit, from all rounds."""
        paths = [shards.join(self.folder, _name(unit, round)) for round in range(self.rounds)]
        batches = [batch for path in paths if shards.exists(path) for batch in shards.read_shard(path)]
        return unpack_older(np.stack([c.to_numpy() for c in b.columns]).astype("<u8").tobytes() for b in batches)


def _name(unit: int, round: int) -> str:
    return f"part-{unit:05d}-{round:05d}.arrow"


def leave_out(raw: RawBatch, older: Older) -> RawBatch:
    """A batch of the reader without older copies, which become rejects behind its own."""
    found, kept = older.among(raw.documents["id"])
    if not found.any():
        return raw
    gone = raw.documents.filter(pa.array(found))
    columns = {
        "document": gone["id"],
        "line": pa.nulls(gone.num_rows, pa.int32()),
        "reason": pa.repeat(OLDER_COPY, gone.num_rows),
        "detail": pc.binary_join_element_wise("the newest copy is", kept, " "),
        "step": pa.repeat("urls", gone.num_rows),
    }
    arrays = [(columns.get(f.name) if f.name in columns else gone[f.name]) for f in REJECTS]
    made = [_cast(column, f.type) for column, f in zip(arrays, REJECTS, strict=True)]
    both = pa.Table.from_batches([raw.rejects, pa.RecordBatch.from_arrays(made, schema=REJECTS)], REJECTS)
    rejects = both.unify_dictionaries().combine_chunks().to_batches()[0]
    return raw._replace(documents=raw.documents.filter(pa.array(~found)), rejects=rejects)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column.cast(kind)
