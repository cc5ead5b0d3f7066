"""Deduplication without Beam: shards on disk in, shards on disk out, one unit after another, any number of rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import schemas, shards
from corpusforge.dedupe import pairs, signed_units
from corpusforge.dedupe.documents import KeepWork, settle_groups
from corpusforge.dedupe.exact_spans import CutWork, HashWork, compare_hashes
from corpusforge.dedupe.index import IndexUnit, IndexWork
from corpusforge.dedupe.job import Job
from corpusforge.dedupe.near_spans import CutNearWork
from corpusforge.dedupe.pairs import CompareWork, Pairing, Slots, compared_folder, shared_width
from corpusforge.dedupe.signed_units import Signing, SignWork
from corpusforge.engine import Combine, Consume, Engine, Produce, Reduce
from corpusforge.progress import Progress, Silent
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit, UnitResult, UnitWork


class InProcess(Engine):
    """Runs units one after another and shuffles in memory."""

    @property
    def is_local(self) -> bool:
        return True

    def map(
        self,
        work: UnitWork,
        units: Sequence[Any],
        sizes: Sequence[int],
        *,
        label: str,
        folder: str,
        progress: Progress,
    ) -> list[UnitResult]:
        return [work(unit, lambda _: None) for unit in units]

    def shuffle(
        self,
        items: Sequence[Any],
        produce: Produce,
        reduce: Reduce,
        consume: Consume | None = None,
        *,
        folder: str,
        combine: Combine | None = None,
    ) -> None:
        by_key: dict[int, list[bytes]] = {}
        for item in items:
            for key, block in produce(item):
                by_key.setdefault(key, []).append(block)
        reduced: dict[int, list[bytes]] = {}
        for key, blocks in by_key.items():
            for other, block in reduce(key, blocks) or ():
                reduced.setdefault(other, []).append(block)
        for key, blocks in reduced.items():
            assert consume is not None
            consume(key, blocks)


def job_of(units: Sequence[ShardUnit], output: Path, scratch: str, **settings: Any) -> Job:
    """A job for an engine without Beam."""
    return Job(InProcess(), Dedupe(**settings), units, str(output), scratch, Silent())


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
    keep: str = "hash",
    **cut: Any,
) -> tuple[pa.Table, pa.Table, dict[str, Any], dict[str, Any]]:
    """Exact spans: documents that stay, REPEATS, tallies and statistics."""
    hashing = HashWork(str(output / "hashes"), span_sentences, fold_numbers, keep)
    cutting = CutWork(str(output), hashing.folder, span_sentences=span_sentences, **cut)
    return run_works(units, output, hashing, cutting, partitions, rounds, ordered=keep != "hash")


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
    job = job_of(units, output, hashing.folder)
    job.map(hashing, label="hash", folder=job.scratch)
    compare_hashes(job, units, rounds, ordered=ordered, partitions=partitions)
    results = job.map(dataclasses.replace(cutting, rounds=rounds), label="cut", folder=job.output)
    done = _done(output, results, ("documents", "repeats"))
    return done.tables["documents"], done.tables["repeats"], done.tallies, done.statistics


def read_table(output: Path, name: str) -> pa.Table:
    """All shards of a table."""
    return pa.concat_tables(pq.read_table(path) for path in sorted((output / name).glob("*.parquet")))


class Done(NamedTuple):
    """Tables by name, tallies and statistics."""

    tables: dict[str, pa.Table]
    tallies: dict[str, Any]
    statistics: dict[str, Any]


def compare_items(
    job: Job,
    signing: Signing,
    threshold: float,
    *,
    partitions: int = 3,
    rounds: int = 1,
    best: bool,
    index: Sequence[IndexUnit] = (),
) -> None:
    """Sign, find equal items, pair, compare."""
    every = [*job.units, *index]
    job.map(SignWork(job.scratch, signing), label="sign", folder=job.scratch)
    job.map(IndexWork(job.scratch, signing), label="index", folder=job.scratch, units=index)
    compare_hashes(job, every, rounds, ordered=signing.ordered, partitions=partitions)
    slots = Slots(partitions + 1, rounds + 1)
    pairing = Pairing(job.scratch, signing, rounds, slots)
    shared = pairs.mark_shared(job, every, pairing, shared_width(1000, slots))
    pairing = dataclasses.replace(pairing, slots=Slots(partitions, rounds), shared=shared)
    pairs.pair_items(job, every, pairing)
    work = CompareWork(job.scratch, signing, threshold, rounds, rounds, best)
    job.map(work, label="compare pairs", folder=compared_folder(job.scratch), units=every)


def near_spans(
    units: Sequence[ShardUnit], output: Path, signing: Signing, threshold: float, *, cut: dict[str, Any], **how: Any
) -> Done:
    """The whole method `near-spans`."""
    job = job_of(units, output, str(output / "scratch"))
    compare_items(job, signing, threshold, best=True, **how)
    work = CutNearWork(job.output, job.scratch, span_sentences=signing.span_sentences, **cut)
    return _done(output, job.map(work, label="cut", folder=job.output), ("documents", "repeats"))


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
    job, first = job_of(units, output, str(output / "scratch")), len(units)
    signing = dataclasses.replace(signing, indexed=bool(index))
    others = [IndexUnit(first + n, str(path), 1, 1, f"{n:08d}") for n, path in enumerate(index)]
    compare_items(job, signing, threshold, best=False, index=others, **how)
    settle_groups(job.scratch, [unit.number for unit in (*units, *others)], first)
    work = KeepWork(job.output, job.scratch, signing, first, shard_bytes, export=True)
    return _done(output, job.map(work, label="keep", folder=job.output), ("documents", "repeats", "clusters"))


def _done(output: Path, results: list[UnitResult], names: Sequence[str]) -> Done:
    signed_units.forget()
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = {}
    for result in results:
        shards.add_tallies(tallies, result.tallies)
        shards.add_statistics(statistics, result.statistics)
    return Done({name: read_table(output, name) for name in names}, tallies, statistics)
