"""URL duplicates before cleaning, as graphs: scan, compare in rounds.

    units -> ScanWork -> hashes of URLs, times and ids, in a folder of their own
    -> (partition, packed block) -> GroupByKey -> find_older -> (unit, packed rows) -> GroupByKey -> older-N/

Comes in: the units of an input. Goes out: `work.urls.OlderCopies`, which the cleaning of a unit asks. The one decision:
48 bytes a record travel and no page does. Beam's local runner holds what it shuffles, so there the comparison runs in
rounds over ranges of the hash, as many as the memory asks for; a round that is done is marked and not done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from corpusforge import shards
from corpusforge.beam.engine import Engine, listed, run_map
from corpusforge.beam.sdk import as_itself, beam
from corpusforge.clean.copies import find_older
from corpusforge.progress import Progress
from corpusforge.work.urls import OlderCopies, ScanWork, blocks, origins_path, plan_rounds

if TYPE_CHECKING:
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.read import ReadOptions

PARTITIONS = 64
"""Ranges of the hash sorted one by one: bounds the memory of a sort, and how many workers can share a round."""


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
    scanned = run_map(engine, work, units, sizes, label="scan URLs", folder=scratch, progress=progress)
    rounds = 1  # what other runners shuffle is theirs to hold or spill
    if engine.is_local:
        records = sum(result.statistics.get("origins", 0) for result in scanned)
        rounds = plan_rounds(records, memory_bytes, PARTITIONS)
    found = OlderCopies(scratch, rounds)
    numbers = [unit.number for unit in units]
    progress.start("compare URLs", rounds, "rounds")
    try:
        for number in range(rounds):
            if not shards.exists(found.mark(number)):
                _compare(engine, numbers, found, number)
                shards.write_json(found.mark(number), {"round": number, "rounds": rounds})
            progress.advance(1)
    finally:
        progress.finish()
    return found


def forget(found: OlderCopies) -> None:
    """Remove what a comparison left, its marks first, so that what is half removed is never taken for whole."""
    for number in range(found.rounds):
        shards.remove(found.mark(number))
    shards.remove(found.scratch)


def _compare(engine: Engine, units: Sequence[int], found: OlderCopies, number: int) -> None:
    items = [(origins_path(found.scratch, unit), unit) for unit in units]

    def build(pipeline: Any) -> None:
        _ = (
            listed(pipeline, engine, found.scratch, items)
            | "Blocks" >> beam.ParDo(_Blocks(number, found.rounds))
            | "ByHash" >> beam.GroupByKey()
            | "FindOlder" >> beam.ParDo(_FindOlder())
            | "ByUnit" >> beam.GroupByKey()
            | "WriteOlder" >> beam.ParDo(_WriteOlder(found, number))
        )

    engine.run(build)


class _Blocks(beam.DoFn):  # type: ignore[misc, name-defined]
    """(path of a unit's origins, its number) -> (partition, packed block), those of this round."""

    def __init__(self, number: int, rounds: int) -> None:
        self.number, self.rounds = number, rounds

    def process(self, item: tuple[str, int]) -> Iterator[tuple[int, bytes]]:
        with as_itself():
            yield from blocks(*item, PARTITIONS, self.number, self.rounds)


class _FindOlder(beam.DoFn):  # type: ignore[misc, name-defined]
    """(partition, packed blocks of all units) -> (unit, packed rows of its older copies)."""

    def process(self, group: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        yield from find_older(group[1])


class _WriteOlder(beam.DoFn):  # type: ignore[misc, name-defined]
    """(unit, packed rows of all partitions) -> a file."""

    def __init__(self, found: OlderCopies, number: int) -> None:
        self.found, self.number = found, number

    def process(self, group: tuple[int, Iterable[bytes]]) -> None:
        with as_itself():
            self.found.write(group[0], self.number, group[1])
