"""Keep the newest page of each URL: scan the input for URLs, compare them, drop older copies.

    units -> ScanWork -> origins/, a row of 48 bytes for each record with a URL, in a folder of its own
    -> (partition, packed block) -> shuffle -> find_older -> (unit, packed rows) -> older-N/
    leave_out(raw, older): a batch of the reader without them; they are rejects, ``page:older-copy``

As in C4 the newest page stays (tensorflow-datasets, ``text/c4_utils.py``, ``select_newest_page``). Where times do not
decide (C4 takes whichever comes first), the record with the smallest hash of its content stays, and of records with the
same content the one with the smallest id; a record of unknown time is older than any other. So the result depends
neither on order nor on how the input is cut into files. A record without a URL, or whose URL is only a scheme, is never
a copy.

Input is read twice, the first time without extracting text from HTML. An older copy is named by its document's id, so
nothing depends on where a unit resumes after a crash.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import shards
from corpusforge.arrays import U64, Bools, repeated_rows, run_starts
from corpusforge.clean.urls import normalize_urls
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.schemas import REJECTS
from corpusforge.text import text_bytes
from corpusforge.units import ONE_SHARD, Advance, UnitOutput, UnitResult

if TYPE_CHECKING:
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.read import RawBatch
    from corpusforge.documents.records import ReadOptions


ORIGINS = pa.schema(
    [
        pa.field("hash", pa.uint64(), nullable=False),  # xxh3-64 of the normalized URL
        pa.field("time", pa.uint64(), nullable=False),  # `order_of_times`
        pa.field("content", pa.uint64(), nullable=False),  # a hash of it
        pa.field("high", pa.uint64(), nullable=False),  # the first 16 digits of DOCUMENTS.id
        pa.field("low", pa.uint64(), nullable=False),  # the last 16
    ]
)
"""A row for each record that has a URL."""

OLDER = pa.schema([pa.field(name, pa.uint64(), nullable=False) for name in ("high", "low", "kept_high", "kept_low")])
"""A row for each older copy: its id and that of the newest."""

BLOCK_BYTES = 48
"""Bytes per record in a block: the columns of ORIGINS and the unit, one after another, little-endian uint64."""

OLDER_BYTES = 32
"""Bytes per older copy in the result of `find_older`: the columns of OLDER."""


PARTITIONS = 64
"""Ranges of the hash that are sorted separately: bounds the memory of a sort and the workers of a round."""


OLDER_COPY = "page:older-copy"

# As measured for deduplication, Beam's local runner needs about 3.5 times the memory of what it shuffles. Here every
# record is shuffled once, and at worst again as an older copy; sorting a partition takes its block, its columns, an
# order and the ordered columns.
_SHUFFLE_FACTOR = 3.5
_SORT_BYTES = 130


def older_copies(
    engine: Engine,
    options: ReadOptions,
    units: Sequence[Unit],
    sizes: Sequence[int],
    scratch: str,
    memory_bytes: int,
    progress: Progress,
) -> OlderCopies:
    """Find the older copies among all records of these units. ``scratch``: a folder to keep until they are used."""
    work = ScanWork(scratch, options)
    scanned = engine.map(work, units, sizes, label="scan URLs", folder=scratch, progress=progress)
    rounds = 1  # other runners manage the memory of a shuffle themselves
    if engine.is_local:
        records = sum(result.statistics.get("origins", 0) for result in scanned)
        rounds = plan_rounds(records, memory_bytes, PARTITIONS)
    older = OlderCopies(scratch, rounds)
    numbers = [unit.number for unit in units]
    progress.start("compare URLs", rounds, "rounds")
    try:
        for number in range(rounds):
            if not shards.exists(older.mark(number)):
                _compare(engine, numbers, older, number)
                shards.write_json(older.mark(number), {"round": number, "rounds": rounds})
            progress.advance(1)
    finally:
        progress.finish()
    return older


def _compare(engine: Engine, units: Sequence[int], older: OlderCopies, round: int) -> None:
    """One round: shuffle the origins of all units by range of the hash, and write the older copies of each unit."""
    produce = functools.partial(blocks, older.scratch, PARTITIONS, round, older.rounds)
    write = functools.partial(OlderCopies.write, older, round)
    engine.shuffle(units, produce, find_older, write, folder=older.scratch)


def forget(older: OlderCopies) -> None:
    """Remove the files of a comparison, markers first, so that a partly removed one never counts as complete."""
    for number in range(older.rounds):
        shards.remove(older.mark(number))
    shards.remove(older.scratch)


def plan_rounds(records: int, memory_bytes: int, partitions: int) -> int:
    """The fewest rounds for which the shuffle and the sorting of one partition fit the memory.

    >>> plan_rounds(1_000_000, 1 << 30, 64), plan_rounds(100_000_000, 1 << 30, 64)
    (1, 27)
    """
    a_record = (BLOCK_BYTES + OLDER_BYTES) * _SHUFFLE_FACTOR + _SORT_BYTES / partitions
    return max(1, -(-int(records * a_record) // max(1, memory_bytes)))


@dataclass(frozen=True)
class OlderCopies:
    """The result of a comparison, in a folder of its own. Picklable: it is part of the work of each unit."""

    scratch: str
    rounds: int

    @property
    def folder(self) -> str:
        """The folder of the rows; another number of rounds has another folder."""
        return shards.join(self.scratch, f"older-{self.rounds}")

    def mark(self, round: int) -> str:
        """The marker file of a finished round."""
        return shards.join(self.folder, f"round-{round}.json")

    def write(self, round: int, unit: int, packed: Iterable[bytes]) -> None:
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


@dataclass(frozen=True)
class ScanWork:
    """Lists the origins of a unit's documents. ``folder``: where ``origins/`` and its entries go."""

    folder: str
    options: ReadOptions

    def __call__(self, unit: Unit, advance: Advance) -> UnitResult:
        """Scan a unit; one that is finished is not read again."""
        from corpusforge.documents.read import read_origins

        with UnitOutput(self.folder, unit.number, {"origins": (ORIGINS, "arrow")}, ONE_SHARD) as output:
            if output.done:
                return output.result(resumed=True)
            position = 0
            for records, consumed in read_origins(unit, self.options):
                rows = origins_of(*(records[name] for name in ("id", "url", "timestamp", "content")))
                position += records.num_rows
                counts = {"origins": rows.num_rows}
                output.write({"origins": rows}, position=position, size=0, tallies={}, statistics=counts)
                advance(consumed)
            return output.finish()


def _origins_path(folder: str, unit: int) -> str:
    """Where `ScanWork` writes the origins of a unit."""
    return shards.join(folder, f"origins/part-{unit:05d}-00000.arrow")


def blocks(folder: str, partitions: int, round: int, rounds: int, unit: int) -> list[tuple[int, bytes]]:
    """The records of one unit that belong to a round (from 0), as (partition, packed block), ascending."""
    table = pa.Table.from_batches(shards.read_shard(_origins_path(folder, unit)), ORIGINS).combine_chunks()
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


def _slots(hashes: U64, slots: int) -> U64:
    """Which of ``slots`` equal ranges of 64-bit numbers each hash lies in."""
    return (hashes >> np.uint64(32)) * np.uint64(slots) >> np.uint64(32)


_EPOCH = np.int64(1) << np.int64(62)
"""Added to seconds since 1970, so that earlier times are positive too; 0 stands for unknown times."""


def origins_of(ids: pa.Array, urls: pa.Array, times: pa.Array, content: pa.Array) -> pa.RecordBatch:
    """The ORIGINS rows of records; ``times``: timestamps in seconds."""
    normalized = normalize_urls(urls)
    chosen = pc.fill_null(pc.not_equal(normalized, ""), False)
    high, low = id_words(ids.filter(chosen))
    hashes, times = _hashes(normalized.filter(chosen)), order_of_times(times.filter(chosen))
    columns = [*map(pa.array, (hashes, times)), content.filter(chosen), pa.array(high), pa.array(low)]
    return pa.RecordBatch.from_arrays(columns, schema=ORIGINS)


def order_of_times(times: pa.Array) -> U64:
    """Numbers in the order of the times; 0 for null.

    >>> order_of_times(pa.array([None, 0, 1], pa.timestamp("s", tz="UTC"))).argsort().tolist()
    [0, 1, 2]
    """
    seconds = np.asarray(pc.fill_null(times.cast(pa.int64()), -_EPOCH), np.int64)
    return (seconds + _EPOCH).astype(np.uint64)


def id_words(ids: pa.Array) -> tuple[U64, U64]:
    """DOCUMENTS.id as two numbers.

    >>> [w.tolist() for w in id_words(pa.array(["00000000000000ff0000000000000001"]))]
    [[255], [1]]
    """
    data, offsets = text_bytes(ids)
    digits = data[offsets[0] : offsets[-1]].tobytes().decode()
    words = np.frombuffer(bytes.fromhex(digits), ">u8").reshape(-1, 2).astype(np.uint64)
    return words[:, 0], words[:, 1]


def ids_of(high: U64, low: U64) -> pa.StringArray:
    """The ids of these pairs of numbers."""
    digits = np.stack([high, low], 1).astype(">u8").tobytes().hex()
    offsets = np.arange(len(high) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(digits.encode()))


def pack_origins(rows: pa.RecordBatch, unit: int) -> bytes:
    """ORIGINS rows of a unit as bytes, `BLOCK_BYTES` each."""
    columns = [column.to_numpy() for column in rows.columns]
    return np.stack([*columns, np.full(rows.num_rows, unit, np.uint64)]).astype("<u8").tobytes()


def find_older(partition: int, blocks: Iterable[bytes]) -> list[tuple[int, bytes]]:
    """All older copies among the records of these blocks, as packed OLDER rows for each unit (ascending).

    ``blocks``: from `pack_origins`, of any units in any order, with all records of each hash.
    """
    hashes, times, contents, highs, lows, units = _unpack(blocks, 6)
    chosen = repeated_rows(hashes)
    columns = (hashes, times, contents, highs, lows, units)
    hashes, times, contents, highs, lows, units = (column[chosen] for column in columns)
    order = np.lexsort((lows, highs, contents, ~times, hashes))  # ~: the newest first
    hashes, highs, lows, units = hashes[order], highs[order], lows[order], units[order]
    is_newest = run_starts(hashes)
    newest = np.flatnonzero(is_newest)[np.cumsum(is_newest) - 1]
    older = np.flatnonzero(~is_newest)
    older = older[np.argsort(units[older], kind="stable")]
    rows = np.stack([highs[older], lows[older], highs[newest[older]], lows[newest[older]]])
    names, first = np.unique(units[older], return_index=True)
    bounds = [*first.tolist(), len(older)]
    return [
        (int(name), rows[:, a:b].astype("<u8").tobytes())
        for name, a, b in zip(names.tolist(), bounds[:-1], bounds[1:], strict=True)
    ]


class Older(NamedTuple):
    """The older copies of a unit, ascending by id, and the copy of each that stays."""

    high: U64
    low: U64
    kept_high: U64
    kept_low: U64

    def among(self, ids: pa.Array) -> tuple[Bools, pa.StringArray]:
        """Which of these documents are older copies, and the ids of the copies that stay."""
        high, low = id_words(ids)
        if not len(self.high):
            return np.zeros(len(ids), np.bool_), pa.array([], pa.string())
        # Of ids with equal first halves (2^-64 for a pair) only the first would be found.
        at = np.minimum(np.searchsorted(self.high, high), len(self.high) - 1)
        is_older = (self.high[at] == high) & (self.low[at] == low)
        return is_older, ids_of(self.kept_high[at[is_older]], self.kept_low[at[is_older]])


def unpack_older(blocks: Iterable[bytes]) -> Older:
    """The older copies of a unit from any number of packed answers."""
    columns = _unpack(blocks, 4)
    order = np.lexsort((columns[1], columns[0]))
    return Older(*(column[order] for column in columns))


def _unpack(blocks: Iterable[bytes], columns: int) -> list[U64]:
    parts = [np.frombuffer(block, "<u8").reshape(columns, -1) for block in blocks]
    if not parts:
        return [np.zeros(0, np.uint64)] * columns
    return [np.concatenate([part[k] for part in parts]).astype(np.uint64, copy=False) for k in range(columns)]


def _hashes(normalized: pa.StringArray) -> U64:
    # A Python loop with a reason: one C call a URL (0.2 us), which stands for kilobytes of page.
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(url.encode()) for url in normalized.to_pylist()), np.uint64, len(normalized))


def leave_out(raw: RawBatch, older: Older) -> RawBatch:
    """A batch of the reader without older copies; these become rejects, after its own."""
    is_older, kept = older.among(raw.documents["id"])
    if not is_older.any():
        return raw
    older_rows = raw.documents.filter(pa.array(is_older))
    columns = {
        "document": older_rows["id"],
        "line": pa.nulls(older_rows.num_rows, pa.int32()),
        "reason": pa.repeat(OLDER_COPY, older_rows.num_rows),
        "detail": pc.binary_join_element_wise("the newest copy is", kept, " "),
        "step": pa.repeat("urls", older_rows.num_rows),
    }
    arrays = [(columns.get(f.name) if f.name in columns else older_rows[f.name]) for f in REJECTS]
    added = [_cast(column, f.type) for column, f in zip(arrays, REJECTS, strict=True)]
    both = pa.Table.from_batches([raw.rejects, pa.RecordBatch.from_arrays(added, schema=REJECTS)], REJECTS)
    rejects = both.unify_dictionaries().combine_chunks().to_batches()[0]
    return raw._replace(documents=raw.documents.filter(pa.array(~is_older)), rejects=rejects)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column.cast(kind)
