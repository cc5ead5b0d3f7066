"""The method `exact-spans` as graphs: hash, compare in rounds, cut.

    document shards -> HashWork -> hashes of spans, in a folder of their own
    hashes -> (partition, packed block) -> GroupByKey -> find_losers -> (unit, packed rows) -> GroupByKey -> cuts-N/
    document shards + cuts -> CutWork -> documents/, repeats/

Text is read twice and never shuffled; what travels are 24 bytes a span. Beam's local runner holds what it shuffles and
never spills, so the comparison runs in rounds over ranges of the hash, as many as the memory budget asks for; on other
runners nothing is held in this process and one round does. A round that is done is marked, in a folder for that number
of rounds; a stage killed anywhere goes on behind its last shard or round.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from corpusforge import shards
from corpusforge.beam.dedupe import scratch_of
from corpusforge.beam.where import find_where
from corpusforge.dedupe import locate
from corpusforge.dedupe.exact_spans import CutWork, HashWork, blocks, cuts_folder, plan_rounds, span_path, write_cuts
from corpusforge.dedupe.spans import find_losers
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit, UnitResult

PARTITIONS = 64
"""Ranges of the hash sorted one by one: bounds the memory of a sort, and how many workers can share a round."""

METHOD = "exact-spans"


def run_method(
    engine: Engine,
    settings: Dedupe,
    units: Sequence[ShardUnit],
    output: str,
    progress: Progress,
    *,
    audit_only: bool = False,
) -> list[UnitResult]:
    """Write ``documents/`` and ``repeats/`` for every upstream shard; with ``audit_only`` no documents."""
    scratch = scratch_of(output, METHOD)
    hashing = HashWork(scratch, settings.span_sentences, settings.fold_numbers, settings.survivor)
    floors: dict[str, Any] = {"min_sentences": settings.min_sentences, "min_words": settings.min_words}
    cutting = CutWork(output, scratch, span_sentences=settings.span_sentences, audit_only=audit_only, **floors)
    return cut_repeats(engine, settings, units, hashing, cutting, progress, ordered=settings.survivor != "hash")


def cut_repeats(
    engine: Engine,
    settings: Dedupe,
    units: Sequence[ShardUnit],
    hashing: HashWork,
    cutting: CutWork,
    progress: Progress,
    *,
    ordered: bool,
) -> list[UnitResult]:
    """Hash, compare and cut; which spans, say the two works. ``ordered``: survivors have an order before their keys."""
    scratch, sizes = hashing.folder, [unit.bytes for unit in units]
    hashed = engine.map(hashing, units, sizes, label="hash", folder=scratch, progress=progress)
    rounds = 1  # what other runners shuffle is theirs to hold or spill
    if engine.is_local:
        spans = sum(result.statistics.get("spans", 0) for result in hashed)
        rounds = plan_rounds(spans, settings.memory_megabytes << 20, PARTITIONS)
    cuts = compare(engine, units, scratch, rounds, progress, ordered=ordered)
    cutting = dataclasses.replace(cutting, cuts=cuts, rounds=rounds)
    find_where(engine, units, cutting)
    results = engine.map(cutting, units, sizes, label="cut", folder=cutting.output, progress=progress)
    locate.forget()
    for number in range(rounds):  # first, so that cuts half removed are never taken for whole
        shards.remove(_mark(cuts, number))
    shards.remove(scratch)
    return results


def compare(
    engine: Engine, units: Sequence[ShardUnit], scratch: str, rounds: int, progress: Progress, *, ordered: bool = False
) -> str:
    """Find the spans that go, round by round; returns the folder they are written to.

    ``ordered``: survivors have an order before their keys.
    """
    cuts = cuts_folder(scratch, rounds)
    progress.start("compare", rounds, "rounds")
    try:
        for number in range(rounds):
            if not shards.exists(_mark(cuts, number)):
                _compare_round(engine, units, scratch, number, rounds, ordered=ordered)
                shards.write_json(_mark(cuts, number), {"round": number, "rounds": rounds})
            progress.advance(1)
    finally:
        progress.finish()
    return cuts


def _mark(cuts: str, number: int) -> str:
    """The file that says that a round is through."""
    return shards.join(cuts, f"round-{number}.json")


def _compare_round(
    engine: Engine, units: Sequence[ShardUnit], scratch: str, number: int, rounds: int, *, ordered: bool
) -> None:
    engine.shuffle(
        [unit.number for unit in units],
        functools.partial(_blocks, scratch, number, rounds, ordered),
        functools.partial(_find_losers, ordered),
        functools.partial(_write_cuts, cuts_folder(scratch, rounds), number),
        folder=scratch,
    )


def _blocks(scratch: str, round: int, rounds: int, ordered: bool, unit: int) -> list[tuple[int, bytes]]:
    """The hashes of a unit that belong to a round: (partition, packed block)."""
    return blocks(span_path(scratch, unit), unit, PARTITIONS, round, rounds, ordered=ordered)


def _find_losers(ordered: bool, partition: int, packed: Iterable[bytes]) -> Iterable[tuple[int, bytes]]:
    """(unit, packed places of the spans that go and of those that stay)."""
    return find_losers(packed, ordered=ordered)


def _write_cuts(cuts: str, round: int, unit: int, packed: Iterable[bytes]) -> None:
    write_cuts(cuts, unit, round, packed)
