"""Who is alike, as graphs: what the methods `near-spans` and `documents` share.

    spans/ -> blocks of signature hashes -> GroupByKey -> find_losers -> (unit, rows) -> GroupByKey -> cuts-N/
    signed/ without these -> blocks of band hashes -> GroupByKey -> candidate_pairs -> GroupByKey -> pairs-N/
    signed/ + pairs-N/ -> CompareWork -> compared/

Comes in: units that are signed. Goes out: the folder's COMPARED rows. The one decision: two shuffles, the first of one
hash an item. It takes out the items of equal signatures, which are most of all repeats, before every item is shuffled
once a band. Rounds bound the memory of the local runner as they do for exact spans, and are marked when through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from corpusforge import shards
from corpusforge.beam.engine import Engine, listed, run_map
from corpusforge.beam.exact_spans import PARTITIONS, compare
from corpusforge.beam.sdk import as_itself, beam
from corpusforge.dedupe.near import candidate_pairs
from corpusforge.progress import Progress
from corpusforge.units import ShardUnit, UnitResult
from corpusforge.work.dedupe import plan_rounds
from corpusforge.work.near import (
    CompareWork,
    Signing,
    band_blocks,
    compared_folder,
    pairs_folder,
    plan_pair_rounds,
    write_pairs,
)


@dataclasses.dataclass(frozen=True)
class Alike:
    """What is asked of pairs, as in `CompareWork`, and the memory that the local runner may take."""

    threshold: float
    best: bool
    memory_bytes: int


def find_alike(
    engine: Engine,
    signing: Signing,
    units: Sequence[ShardUnit],
    scratch: str,
    items: int,
    progress: Progress,
    alike: Alike,
) -> list[UnitResult]:
    """Write the COMPARED rows of all units. ``items``: how many there are."""
    rounds = (1, 1)  # what other runners shuffle is theirs to hold or spill
    if engine.is_local:
        pair_rounds = plan_pair_rounds(items, signing.bands.bands, alike.memory_bytes)
        rounds = (plan_rounds(items, alike.memory_bytes, PARTITIONS), pair_rounds)
    compare(engine, units, scratch, rounds[0], progress, ordered=signing.ordered)
    _pair(engine, signing, units, scratch, rounds, progress)
    work = CompareWork(scratch, signing, alike.threshold, rounds, alike.best)
    sizes = [unit.bytes for unit in units]
    folder = compared_folder(scratch)
    return run_map(engine, work, units, sizes, label="compare pairs", folder=folder, progress=progress)


def _pair(
    engine: Engine,
    signing: Signing,
    units: Sequence[ShardUnit],
    scratch: str,
    rounds: tuple[int, int],
    progress: Progress,
) -> None:
    """Find the pairs worth comparing, round by round."""
    progress.start("pair", rounds[1], "rounds")
    try:
        for number in range(rounds[1]):
            mark = shards.join(pairs_folder(scratch, rounds[1]), f"round-{number}.json")
            if not shards.exists(mark):
                _pair_round(engine, units, _Round(scratch, signing, rounds, number))
                shards.write_json(mark, {"round": number, "rounds": rounds[1]})
            progress.advance(1)
    finally:
        progress.finish()


@dataclasses.dataclass(frozen=True)
class _Round:
    """A round of pairing. ``rounds``: of the comparison of signatures and of this one."""

    scratch: str
    signing: Signing
    rounds: tuple[int, int]
    number: int


def _pair_round(engine: Engine, units: Sequence[ShardUnit], round: _Round) -> None:
    def build(pipeline: Any) -> None:
        _ = (
            listed(pipeline, engine, round.scratch, [unit.number for unit in units])
            | "Blocks" >> beam.ParDo(_Blocks(round))
            | "ByBand" >> beam.GroupByKey()
            | "FindPairs" >> beam.ParDo(FindPairs(ordered=round.signing.ordered))
            | "ByUnit" >> beam.GroupByKey()
            | "WritePairs" >> beam.ParDo(_WritePairs(pairs_folder(round.scratch, round.rounds[1]), round.number))
        )

    engine.run(build)


class _Blocks(beam.DoFn):  # type: ignore[misc, name-defined]
    """Number of a unit -> (partition, packed block of band hashes), those of this round."""

    def __init__(self, round: _Round) -> None:
        self.round = round

    def process(self, unit: int) -> Iterator[tuple[int, bytes]]:
        made = self.round
        with as_itself():
            yield from band_blocks(
                made.scratch, unit, made.signing, made.rounds[0], PARTITIONS, made.number, made.rounds[1]
            )


class FindPairs(beam.DoFn):  # type: ignore[misc, name-defined]
    """(partition, packed blocks of all units) -> (unit, packed pairs of its items and earlier ones)."""

    def __init__(self, *, ordered: bool = False) -> None:
        self.ordered = ordered

    def process(self, group: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        yield from candidate_pairs(group[1], ordered=self.ordered)


class _WritePairs(beam.DoFn):  # type: ignore[misc, name-defined]
    """(unit, packed pairs of all partitions) -> a file in the folder of pairs."""

    def __init__(self, folder: str, number: int) -> None:
        self.folder, self.number = folder, number

    def process(self, group: tuple[int, Iterable[bytes]]) -> None:
        with as_itself():
            write_pairs(self.folder, group[0], self.number, group[1])
