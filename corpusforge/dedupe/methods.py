"""Between two methods of a deduplication chain: what one wrote becomes the input of the next.

Comes in: the folder that a method wrote. Goes out: its documents as units of the next method, its audit tables as
shards of the stage's own folder, and the numbers of the whole chain. The one decision: nothing is summed over methods
that is not a sum (documents in are those of the first, documents out those of the last).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpusforge import errors, shards
from corpusforge.shards import Shard
from corpusforge.units import Advance, ShardUnit, UnitResult

_OF_FIRST = ("documents_in", "text_bytes_in")
_OF_LAST = ("documents_out", "text_bytes_out")


class Chained(NamedTuple):
    """What a chain did. ``parts``: units below the output, those of the last method first."""

    parts: int
    tallies: shards.Tallies
    statistics: dict[str, Any]  # of the whole chain, and under "methods" of each method, with its tallies


@dataclasses.dataclass(frozen=True)
class CarryWork:
    """Copies what a method wrote beside documents from ``folder`` to ``output``, as parts ``first`` and on."""

    folder: str
    output: str
    first: int

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Copy one part; tallies and statistics stay with the chain's own."""
        part = unit.number
        for entry in shards.unit_entries(self.folder, part - self.first):
            tables = {}
            for name, shard in entry.tables.items():
                if name != "documents":
                    tables[name] = self._copied(name, shard, f"part-{part:05d}-{entry.shard:05d}")
            copied = dataclasses.replace(entry, unit=part, tables=tables, tallies={}, statistics={})
            path = shards.join(self.output, f"entries/part-{part:05d}-{entry.shard:05d}.json")
            shards.write_json(path, dataclasses.asdict(copied))
        return UnitResult(part, {}, {})

    def _copied(self, table: str, shard: Shard, stem: str) -> Shard:
        name = f"{table}/{stem}{Path(shard.name).suffix}"
        with shards.open_binary(shards.join(self.folder, shard.name)) as file:
            shards.write_bytes(shards.join(self.output, name), file.read())
        return dataclasses.replace(shard, name=name)


def units_below(folder: str, units: int) -> list[ShardUnit]:
    """The documents that a method of so many units left, a shard a unit of the next method."""
    found: list[ShardUnit] = []
    complete = set()
    for entry in shards.load_entries(folder, units):
        shard = entry.tables["documents"]
        found.append(ShardUnit(len(found), shards.join(folder, shard.name), shard.rows, shard.bytes))
        if entry.last:
            complete.add(entry.unit)
    if len(complete) < units:
        raise errors.ManifestInvalid(folder, f"{units - len(complete)} of {units} units are missing", "run it again")
    return found


def chained(methods: Sequence[str], steps: Sequence[Sequence[UnitResult]], parts: int) -> Chained:
    """The numbers of a chain from the rows of its methods."""
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = dict.fromkeys((*_OF_FIRST, *_OF_LAST), 0)  # also where there was no document
    by_method = {}
    for number, (name, rows) in enumerate(zip(methods, steps, strict=True)):
        of_method: dict[str, Any] = {"tallies": {}}
        for row in rows:
            shards.add_tallies(of_method["tallies"], row.tallies)
            shards.add_statistics(of_method, row.statistics)
        shards.add_tallies(tallies, of_method["tallies"])
        by_method[name] = of_method
        left_out = {"tallies"} if len(steps) == 1 else {"tallies", "documents_changed"}
        left_out |= set(_OF_FIRST) if number else set()
        left_out |= set(_OF_LAST) if number < len(steps) - 1 else set()
        shards.add_statistics(statistics, {key: value for key, value in of_method.items() if key not in left_out})
    return Chained(parts, tallies, {**statistics, "methods": by_method})
