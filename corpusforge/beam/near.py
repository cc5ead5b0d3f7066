"""Who is alike, as graphs: what the methods `near-spans` and `documents` share.

    spans/ -> blocks of signature hashes -> GroupByKey -> find_losers -> (unit, rows) -> GroupByKey -> cuts-N/
    signed/ without these -> marks of band hashes -> GroupByKey -> find_shared -> shared-N/
    signed/, shared-N/ -> blocks of band hashes -> GroupByKey -> candidate_pairs -> GroupByKey -> pairs-N/
    signed/ + pairs-N/ -> CompareWork -> compared/

Comes in: units that are signed. Goes out: the folder's COMPARED rows. The one decision: heavy things travel last. The
first shuffle, of one hash an item, takes out the items of equal signatures, which are most of all repeats. The second,
of four bytes a band hash, finds those that are there twice at all; only these travel with what they belong to. Rounds
bound the memory of the local runner as they do for exact spans, and are marked when through. Other runners hold or
spill what they shuffle, and are spared the second.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

from corpusforge import shards
from corpusforge.beam.exact_spans import PARTITIONS, compare
from corpusforge.dedupe.exact_spans import plan_rounds
from corpusforge.dedupe.memory import give_back
from corpusforge.dedupe.pairs import (
    Banded,
    CompareWork,
    SharedSlots,
    Signing,
    Slots,
    band_blocks,
    banded,
    candidate_pairs,
    compared_folder,
    find_shared,
    mark_blocks,
    pairs_folder,
    plan_mark_rounds,
    plan_pair_rounds,
    shared_folder,
    shared_width,
    write_pairs,
    write_shared,
)
from corpusforge.dedupe.signed_units import forget, mapped_bytes
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.units import ShardUnit, UnitResult


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
    memory = max(alike.memory_bytes // 4, alike.memory_bytes - mapped_bytes(scratch)) if engine.is_local else 0
    rounds = plan_rounds(items, memory, PARTITIONS) if engine.is_local else 1
    give_back()
    compare(engine, units, scratch, rounds, progress, ordered=signing.ordered)
    pairing = _Pairing(scratch, signing, rounds, Slots(PARTITIONS, 1))
    if engine.is_local:
        pairing = _mark(engine, units, pairing, items * signing.bands.bands, memory, progress)
    _run_rounds(engine, units, pairing, pairs_folder(scratch, pairing.slots.rounds), _pair_round, "pair", progress)
    forget()  # what this process mapped counts as its memory
    work = CompareWork(scratch, signing, alike.threshold, (rounds, pairing.slots.rounds), alike.best)
    sizes = [unit.bytes for unit in units]
    folder = compared_folder(scratch)
    return engine.map(work, units, sizes, label="compare pairs", folder=folder, progress=progress)


def with_pairs(results: Sequence[UnitResult], compared: Sequence[UnitResult]) -> list[UnitResult]:
    """The rows of a method's units with the counts of `find_alike`; those of an index come last and are left out."""
    both = zip(results, compared, strict=False)
    return [dataclasses.replace(row, statistics={**row.statistics, **pairs.statistics}) for row, pairs in both]


@dataclasses.dataclass(frozen=True)
class _Pairing:
    """How band hashes are shuffled. ``exact_rounds``: of the comparison of signatures. ``width``: of marks."""

    scratch: str
    signing: Signing
    exact_rounds: int
    slots: Slots
    width: int = 0
    shared: SharedSlots | None = None

    def banded(self, unit: int) -> Banded:
        """The band hashes of a unit."""
        return banded(self.scratch, unit, self.exact_rounds, self.signing)


def _mark(
    engine: Engine, units: Sequence[ShardUnit], pairing: _Pairing, hashes: int, memory_bytes: int, progress: Progress
) -> _Pairing:
    """Find the band hashes that two items share; how to pair these. ``hashes``: how many there are of all items."""
    slots = Slots(PARTITIONS, plan_mark_rounds(hashes, memory_bytes, PARTITIONS))
    folder, width = shared_folder(pairing.scratch, slots.rounds), shared_width(hashes, slots)
    marking = dataclasses.replace(pairing, slots=slots, width=width)
    _run_rounds(engine, units, marking, folder, _mark_round, "mark", progress)
    shared = SharedSlots(folder, slots, width)
    rounds = plan_pair_rounds(*shared.counts(), memory_bytes)
    return dataclasses.replace(pairing, slots=Slots(PARTITIONS, rounds), shared=shared)


def _run_rounds(
    engine: Engine,
    units: Sequence[ShardUnit],
    pairing: _Pairing,
    folder: str,
    run: Callable[[Engine, Sequence[ShardUnit], _Pairing, int, str], None],
    label: str,
    progress: Progress,
) -> None:
    """Run what fills a folder round by round, and mark each round that is through."""
    progress.start(label, pairing.slots.rounds, "rounds")
    try:
        for number in range(pairing.slots.rounds):
            mark = shards.join(folder, f"round-{number}.json")
            if not shards.exists(mark):
                run(engine, units, pairing, number, folder)
                shards.write_json(mark, {"round": number, "rounds": pairing.slots.rounds})
            progress.advance(1)
    finally:
        progress.finish()


def _mark_round(engine: Engine, units: Sequence[ShardUnit], pairing: _Pairing, number: int, folder: str) -> None:
    engine.shuffle(
        [unit.number for unit in units],
        functools.partial(_marks, pairing, number),
        functools.partial(_write_shared, folder, pairing.width),
        folder=pairing.scratch,
    )


def _pair_round(engine: Engine, units: Sequence[ShardUnit], pairing: _Pairing, number: int, folder: str) -> None:
    engine.shuffle(
        [unit.number for unit in units],
        functools.partial(_blocks, pairing, number),
        functools.partial(_find_pairs, pairing.signing.ordered),
        functools.partial(_write_pairs, folder, number),
        folder=pairing.scratch,
    )


def _marks(pairing: _Pairing, round: int, unit: int) -> list[tuple[int, bytes]]:
    """The marks of a unit's band hashes that belong to a round: (slot, packed marks)."""
    return mark_blocks(pairing.banded(unit), pairing.slots, round)


def _write_shared(folder: str, width: int, slot: int, packed: Iterable[bytes]) -> None:
    write_shared(folder, slot, find_shared(packed, width))


def _blocks(pairing: _Pairing, round: int, unit: int) -> list[tuple[int, bytes]]:
    """The shared band hashes of a unit that belong to a round: (partition, packed block)."""
    return band_blocks(pairing.banded(unit), pairing.slots, round, pairing.shared)


def _find_pairs(ordered: bool, partition: int, packed: Iterable[bytes]) -> Iterable[tuple[int, bytes]]:
    """(unit, packed pairs of its items and earlier ones)."""
    return candidate_pairs(packed, ordered=ordered)


def _write_pairs(folder: str, round: int, unit: int, packed: Iterable[bytes]) -> None:
    write_pairs(folder, unit, round, packed)
