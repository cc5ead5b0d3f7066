"""Work units and their output: units are independent, repeatable and resumable.

A unit is defined by the input alone. A shard ends where the text read reaches a fixed size, so shards are the same for
any number of workers. After each shard an entry is written. A unit that runs again reads its entries up to the first
whose files are missing or altered, and resumes after the last good one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from corpusforge import shards
from corpusforge.shards import Entry, Shard, ShardWriter, Tallies

ONE_SHARD = 1 << 62
"""A ``shard_bytes`` that no unit reaches: all of its output is one shard."""

Advance = Callable[[int], None]
"""``advance(n)`` reports n more bytes (or rows) of input as done. Cheap to call often."""


@dataclasses.dataclass(frozen=True)
class UnitResult:
    """What a unit returns: numbers, never text. ``resumed``: its output existed already."""

    unit: int
    tallies: Tallies
    statistics: dict[str, Any]
    resumed: bool = False


@dataclasses.dataclass(frozen=True)
class ShardUnit:
    """A unit of a stage that reads shards: one shard of the stage before. ``bytes``: on disk, for the progress bar."""

    number: int
    path: str
    rows: int
    bytes: int


class UnitWork(Protocol):
    """What an engine runs for each unit: a picklable object of an importable module."""

    def __call__(self, unit: Any, advance: Advance) -> UnitResult:
        """Process the unit, write its shards, and return its result."""


class UnitOutput:
    """Writes the tables of one unit, shard by shard.

    ``tables``: ``{name: (schema, "parquet" | "arrow")}``. Use it as a context manager: on an error the unfinished shard
    is deleted, and finished ones stay.
    """

    def __init__(self, folder: str, unit: int, tables: Mapping[str, tuple[pa.Schema, str]], shard_bytes: int) -> None:
        self.folder, self.unit, self.tables, self.shard_bytes = folder, unit, dict(tables), shard_bytes
        self.entries = _good_entries(folder, unit)
        self._writers: dict[str, ShardWriter] = {}
        self._tallies: Tallies = {}
        self._statistics: dict[str, Any] = {}
        self._size, self._position = 0, self.position

    @property
    def position(self) -> int:
        """How many records of the unit finished shards already cover."""
        return self.entries[-1].position if self.entries else 0

    @property
    def done(self) -> bool:
        """Whether all of the unit is written."""
        return bool(self.entries) and self.entries[-1].last

    def write(
        self,
        batches: Mapping[str, pa.RecordBatch],
        *,
        position: int,
        size: int,
        tallies: Tallies,
        statistics: Mapping[str, Any],
    ) -> None:
        """Add the output of one input batch.

        ``position``: records of the unit consumed so far; ``size``: bytes of text read, which decide where shards end.
        """
        for table, batch in batches.items():
            self._writer(table).write(batch)
        shards.add_tallies(self._tallies, tallies)
        shards.add_statistics(self._statistics, dict(statistics))
        self._position, self._size = position, self._size + size
        if self._size >= self.shard_bytes:
            self._cut(last=False)

    def finish(self) -> UnitResult:
        """Write the last shard (an empty one where the unit had nothing) and return the unit's result."""
        if not self.done:
            self._cut(last=True)
        return self.result(resumed=False)

    def result(self, *, resumed: bool) -> UnitResult:
        """The unit's result, from its entries."""
        _, tallies, statistics = shards.gather(self.entries)
        return UnitResult(self.unit, tallies, statistics, resumed)

    def __enter__(self) -> UnitOutput:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.abandon()

    def _fresh(self) -> None:
        self._tallies, self._statistics = {}, {}
        self._size, self._position = 0, self.position

    def _stem(self) -> str:
        return f"part-{self.unit:05d}-{len(self.entries):05d}"

    def _writer(self, table: str) -> ShardWriter:
        if table not in self._writers:
            schema, kind = self.tables[table]
            name = f"{table}/{self._stem()}{shards.SUFFIX[kind]}"
            self._writers[table] = ShardWriter(self.folder, name, schema, kind)
        return self._writers[table]

    def _cut(self, *, last: bool) -> None:
        written: dict[str, Shard] = {table: self._writer(table).finish() for table in self.tables}
        self._writers = {}
        stem = self._stem()
        entry = Entry(self.unit, len(self.entries), self._position, last, written, self._tallies, self._statistics)
        shards.write_json(shards.join(self.folder, f"entries/{stem}.json"), dataclasses.asdict(entry))
        self.entries.append(entry)
        self._fresh()


@dataclasses.dataclass(frozen=True)
class Written:
    """What the next ``rows`` of a unit became; ``size``: bytes of their text, which decide where shards end."""

    rows: int
    tables: Mapping[str, pa.RecordBatch]
    statistics: Mapping[str, Any]
    tallies: Tallies = dataclasses.field(default_factory=dict)
    size: int = 0


def write_unit(
    folder: str,
    unit: ShardUnit,
    tables: Mapping[str, tuple[pa.Schema, str]],
    batches: Callable[[int], Iterable[Written]],
    advance: Advance,
    *,
    shard_bytes: int = ONE_SHARD,
) -> UnitResult:
    """Write what finished shards of a unit do not cover. ``batches(position)``: what the rows from there on become."""
    with UnitOutput(folder, unit.number, tables, shard_bytes) as output:
        if output.done:
            advance(unit.bytes)
            return output.result(resumed=True)
        position = output.position
        advance(_bytes_of(unit, position))
        for batch in batches(position):
            before, position = _bytes_of(unit, position), position + batch.rows
            output.write(
                batch.tables, position=position, size=batch.size, tallies=batch.tallies, statistics=batch.statistics
            )
            advance(_bytes_of(unit, position) - before)
        return output.finish()


def _bytes_of(unit: ShardUnit, rows: int) -> int:
    """The bytes on disk that the first rows of a unit stand for."""
    return unit.bytes * rows // max(1, unit.rows)


def _good_entries(folder: str, unit: int) -> list[Entry]:
    good: list[Entry] = []
    for entry in shards.unit_entries(folder, unit):
        if not all(_intact(folder, shard) for shard in entry.tables.values()):
            break
        good.append(entry)
    return good


def _intact(folder: str, shard: Shard) -> bool:
    path = shards.join(folder, shard.name)
    return shards.exists(path) and shards.file_digest(path) == shard.digest
