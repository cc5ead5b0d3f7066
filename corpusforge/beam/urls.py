"""URL duplicates before cleaning, as graphs: scan, compare in rounds.

    units -> ScanWork -> hashes of URLs, times and ids, in a folder of their own
    -> (partition, packed block) -> GroupByKey -> find_older -> (unit, packed rows) -> GroupByKey -> older-N/

Comes in: the units of an input. Goes out: `clean.url_duplicates.OlderCopies`, which the cleaning of a unit asks. The one decision:
48 bytes a record travel and no page does. Beam's local runner holds what it shuffles, so there the comparison runs in
rounds over ranges of the hash, as many as the memory asks for; a round that is done is marked and not done again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from corpusforge import shards
from corpusforge.clean.url_duplicates import OlderCopies, ScanWork, blocks, find_older, origins_path, plan_rounds
from corpusforge.engine import Engine
from corpusforge.progress import Progress

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
    scanned = engine.map(work, units, sizes, label="scan URLs", folder=scratch, progress=progress)
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
    engine.shuffle(
        units,
        functools.partial(_blocks, found, number),
        _find_older,
        functools.partial(_write_older, found, number),
        folder=found.scratch,
    )


def _blocks(found: OlderCopies, round: int, unit: int) -> list[tuple[int, bytes]]:
    """The records of a unit that belong to a round: (partition, packed block)."""
    return blocks(origins_path(found.scratch, unit), unit, PARTITIONS, round, found.rounds)


def _find_older(partition: int, packed: Iterable[bytes]) -> Iterable[tuple[int, bytes]]:
    """(unit, packed rows of its older copies)."""
    return find_older(packed)


def _write_older(found: OlderCopies, round: int, unit: int, packed: Iterable[bytes]) -> None:
    found.write(unit, round, packed)
