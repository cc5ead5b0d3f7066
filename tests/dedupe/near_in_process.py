"""The methods `near-spans` and `documents` without Beam: one unit after the other, any number of rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from corpusforge import shards
from corpusforge.dedupe import signed_units
from corpusforge.dedupe.documents import IndexUnit, IndexWork, KeepWork, settle_groups
from corpusforge.dedupe.exact_spans import blocks, cuts_folder, span_path, write_cuts
from corpusforge.dedupe.near_spans import CutNearWork
from corpusforge.dedupe.pairs import (
    CompareWork,
    SharedSlots,
    Signing,
    SignWork,
    Slots,
    band_blocks,
    banded,
    candidate_pairs,
    find_shared,
    mark_blocks,
    pairs_folder,
    shared_folder,
    shared_width,
    write_pairs,
    write_shared,
)
from corpusforge.dedupe.spans import find_losers
from corpusforge.units import ShardUnit, UnitResult
from tests.dedupe.in_process import read_table

Blocks = list[tuple[int, bytes]]


class Done(NamedTuple):
    """Tables by name, tallies and statistics."""

    tables: dict[str, pa.Table]
    tallies: dict[str, Any]
    statistics: dict[str, Any]


def compare_units(
    units: Sequence[ShardUnit],
    folder: str,
    signing: Signing,
    threshold: float,
    *,
    partitions: int = 3,
    rounds: int = 1,
    best: bool,
    index: Sequence[IndexUnit] = (),
) -> None:
    """Sign, find equal signatures, pair, compare."""
    for unit in units:
        SignWork(folder, signing)(unit, lambda _: None)
    for unit in index:
        IndexWork(folder, signing)(unit, lambda _: None)
    numbers = [unit.number for unit in (*units, *index)]

    def equal(number: int, round: int) -> Blocks:
        return blocks(span_path(folder, number), number, partitions, round, rounds, ordered=signing.ordered)

    slots = Slots(partitions + 1, rounds + 1)
    shared = SharedSlots(shared_folder(folder, slots.rounds), slots, shared_width(1000, slots))

    def met(number: int, round: int) -> Blocks:
        return band_blocks(banded(folder, number, rounds, signing), Slots(partitions, rounds), round, shared)

    for round in range(rounds):
        for number, packed in _shuffled(numbers, round, equal, lambda b: find_losers(b, ordered=signing.ordered)):
            write_cuts(cuts_folder(folder, rounds), number, round, packed)
    for round in range(slots.rounds):
        marks: dict[int, list[bytes]] = {}
        for number in numbers:
            for slot, block in mark_blocks(banded(folder, number, rounds, signing), slots, round):
                marks.setdefault(slot, []).append(block)
        for slot, many in marks.items():
            write_shared(shared.folder, slot, find_shared(many, shared.width))
    for round in range(rounds):
        for number, pairs in _shuffled(numbers, round, met, lambda b: candidate_pairs(b, ordered=signing.ordered)):
            write_pairs(pairs_folder(folder, rounds), number, round, pairs)
    for unit in (*units, *index):
        CompareWork(folder, signing, threshold, (rounds, rounds), best)(unit, lambda _: None)


def _shuffled(
    units: Sequence[int], round: int, give: Callable[[int, int], Blocks], find: Callable[[list[bytes]], Blocks]
) -> list[tuple[int, list[bytes]]]:
    by_partition: dict[int, list[bytes]] = {}
    for unit in units:
        for partition, block in give(unit, round):
            by_partition.setdefault(partition, []).append(block)
    by_unit: dict[int, list[bytes]] = {}
    for many in by_partition.values():
        for unit, packed in find(many):
            by_unit.setdefault(unit, []).append(packed)
    return list(by_unit.items())


def near_spans(
    units: Sequence[ShardUnit], output: Path, signing: Signing, threshold: float, *, cut: dict[str, Any], **how: Any
) -> Done:
    """The whole method `near-spans`."""
    folder = str(output / "scratch")
    compare_units(units, folder, signing, threshold, best=True, **how)
    work = CutNearWork(str(output), folder, span_sentences=signing.span_sentences, **cut)
    return _done(output, [work(unit, lambda _: None) for unit in units], ("documents", "repeats"))


def near_documents(
    units: Sequence[ShardUnit],
    output: Path,
    signing: Signing,
    threshold: float,
    *,
    index: Sequence[Path] = (),
    shard_bytes: int = 64 << 20,
    **how: Any,
) -> Done:
    """The whole method `documents`. ``index``: shards of signatures."""
    folder, first = str(output / "scratch"), len(units)
    signing = dataclasses.replace(signing, indexed=bool(index))
    others = [IndexUnit(first + n, str(path), 1, 1, f"{n:08d}") for n, path in enumerate(index)]
    compare_units(units, folder, signing, threshold, best=False, index=others, **how)
    settle_groups(folder, [unit.number for unit in (*units, *others)], first)
    work = KeepWork(str(output), folder, signing, first, shard_bytes, export=True)
    return _done(output, [work(unit, lambda _: None) for unit in units], ("documents", "repeats", "clusters"))


def _done(output: Path, results: list[UnitResult], names: Sequence[str]) -> Done:
    signed_units.forget()
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = {}
    for result in results:
        shards.add_tallies(tallies, result.tallies)
        shards.add_statistics(statistics, result.statistics)
    return Done({name: read_table(output, name) for name in names}, tallies, statistics)
