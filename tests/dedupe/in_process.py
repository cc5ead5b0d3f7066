"""The whole dedupe stage without Beam: shards on disk in, shards on disk out, one unit after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import schemas, shards
from corpusforge.dedupe.exact_spans import CutWork, HashWork, blocks, cuts_folder, span_path, write_cuts
from corpusforge.dedupe.spans import find_losers
from corpusforge.units import ShardUnit


def documents_batch(rows: Sequence[tuple[str, str]]) -> pa.RecordBatch:
    """DOCUMENTS of (id, text) pairs."""
    records = [
        {"id": i, "url": None, "source": "s", "position": 0, "timestamp": None, "language": None, "text": t}
        for i, t in rows
    ]
    return pa.RecordBatch.from_pylist(records, schema=schemas.DOCUMENTS)


def write_units(folder: Path, groups: Sequence[Sequence[tuple[str, str]]]) -> list[ShardUnit]:
    """One document shard, and one unit, for each group of (id, text) pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    units = []
    for number, rows in enumerate(groups):
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_batches([documents_batch(rows)]), path)
        units.append(ShardUnit(number, str(path), len(rows), path.stat().st_size))
    return units


def dedupe_units(
    units: Sequence[ShardUnit],
    output: Path,
    *,
    partitions: int = 3,
    rounds: int = 1,
    span_sentences: int = 3,
    fold_numbers: bool = False,
    survivor: str = "hash",
    **cut: Any,
) -> tuple[pa.Table, pa.Table, dict[str, Any], dict[str, Any]]:
    """Exact spans: documents that stay, REPEATS, tallies and statistics."""
    hashing = HashWork(str(output / "hashes"), span_sentences, fold_numbers, survivor)
    cutting = CutWork(str(output), hashing.folder, span_sentences=span_sentences, **cut)
    return run_works(units, output, hashing, cutting, partitions, rounds, ordered=survivor != "hash")


def run_works(
    units: Sequence[ShardUnit],
    output: Path,
    hashing: HashWork,
    cutting: CutWork,
    partitions: int,
    rounds: int,
    *,
    ordered: bool,
) -> tuple[pa.Table, pa.Table, dict[str, Any], dict[str, Any]]:
    """Documents that stay, REPEATS, tallies and statistics of any hashes and cuts."""
    folder = hashing.folder
    for unit in units:
        hashing(unit, lambda _: None)
    for round in range(rounds):
        by_partition: dict[int, list[bytes]] = {}
        for unit in units:
            path = span_path(folder, unit.number)
            for partition, block in blocks(path, unit.number, partitions, round, rounds, ordered=ordered):
                by_partition.setdefault(partition, []).append(block)
        by_unit: dict[int, list[bytes]] = {}
        for found in by_partition.values():
            for number, losers in find_losers(found, ordered=ordered):
                by_unit.setdefault(number, []).append(losers)
        for number, packed in by_unit.items():
            write_cuts(cuts_folder(folder, rounds), number, round, packed)
    work = dataclasses.replace(cutting, cuts=cuts_folder(folder, rounds), rounds=rounds)
    results = [work(unit, lambda _: None) for unit in units]
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = {}
    for result in results:
        shards.add_tallies(tallies, result.tallies)
        shards.add_statistics(statistics, result.statistics)
    return read_table(output, "documents"), read_table(output, "repeats"), tallies, statistics


def read_table(output: Path, name: str) -> pa.Table:
    """All shards of a table."""
    return pa.concat_tables(pq.read_table(path) for path in sorted((output / name).glob("*.parquet")))
