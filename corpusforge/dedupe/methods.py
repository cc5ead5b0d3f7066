"""Run the methods of deduplication, one after another.

    document shards -> method -> scratch/methods/0-NAME/documents/ -> ... -> last method -> documents/
                          each method's repeats/ -> repeats/

The table of methods is `sections.corpus.METHODS`: a name, one line of help and the settings that it reads. The method
``some-name`` is the function ``run(job)`` of the module ``some_name`` beside this one (`job.Job`); to add a method, add
that file and a row.

A method that is complete is marked, so a stage that was killed resumes in the method that it was in. Documents in are
those of the first method, documents out those of the last; other counts are summed over methods.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corpusforge import errors, shards
from corpusforge.dedupe import memory
from corpusforge.dedupe.job import ChainUnit, Job
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.sections import Dedupe
from corpusforge.shards import Shard
from corpusforge.units import Advance, ShardUnit, UnitResult

SCRATCH = "scratch"
"""Folder below the output for files that are removed when the stage is done."""

_TEXT_OF_SHARD = 3
"""Bytes of text per byte of a document shard, for the estimate (Wikipedia through zstd: 2.6 to 3)."""

_OF_FIRST = ("documents_in", "text_bytes_in")
_OF_LAST = ("documents_out", "text_bytes_out")


class Chained(NamedTuple):
    """The result of a chain. ``parts``: units below the output, those of the last method first."""

    parts: int
    tallies: shards.Tallies
    statistics: dict[str, Any]  # of the chain, and under "methods" of each method, with its tallies


def method_run(name: str) -> Callable[[Job], list[UnitResult]]:
    """The function that runs a method: it returns a result for each unit, in the order of the units."""
    run: Callable[[Job], list[UnitResult]] = importlib.import_module(f"corpusforge.dedupe.{name.replace('-', '_')}").run
    return run


def run(
    engine: Engine,
    settings: Dedupe,
    units: Sequence[ShardUnit],
    output: str,
    progress: Progress,
    *,
    audit_only: bool = False,
    text_bytes: int = 0,
) -> Chained:
    """Write ``documents/`` and ``repeats/`` of all units; with ``audit_only`` no documents.

    ``text_bytes``: text in the units, where it is known. Raises `errors.RecipeInvalid` if the memory is too small.
    """
    engine, settings = within_budget(engine, settings, units, progress, text_bytes)
    *before, last = settings.method
    results: list[list[UnitResult]] = []
    folders: list[str] = []
    reads: Sequence[ShardUnit] = units
    for number, name in enumerate(before):
        folder = shards.join(output, f"{SCRATCH}/methods/{number}-{name}")
        results.append(_run_before_last(name, Job(engine, settings, reads, folder, _scratch(folder, name), progress)))
        folders.append(folder)
        if number:
            shards.remove(shards.join(folders[number - 1], "documents"))
        reads = units_below(folder, len(reads))
    parts = _carry(engine, folders, [len(rows) for rows in results], output, len(reads), progress)
    job = Job(engine, settings, reads, output, _scratch(output, last), progress, audit_only)
    results.append(method_run(last)(job))
    for folder in folders:  # marks first: what is half removed must not look complete
        shards.remove(_mark(folder))
    shards.remove(shards.join(output, SCRATCH))
    return chained(settings.method, results, parts)


def within_budget(
    engine: Engine, settings: Dedupe, units: Sequence[ShardUnit], progress: Progress, text_bytes: int
) -> tuple[Engine, Dedupe]:
    """The workers that fit the budget, and settings with what is left of it for the comparison."""
    if not engine.is_local:
        return engine, settings  # other runners plan their own memory
    text_bytes = text_bytes or _TEXT_OF_SHARD * sum(unit.bytes for unit in units)
    largest = memory.largest_document(units)
    planned = memory.plan(settings.memory_megabytes << 20, engine.width(len(units)), text_bytes, largest)
    progress.say(f"{', '.join(settings.method)}: {planned.words(text_bytes)}")
    engine = dataclasses.replace(engine, workers=planned.workers)
    return engine, dataclasses.replace(settings, memory_megabytes=planned.shuffle_bytes >> 20)


def _scratch(output: str, method: str) -> str:
    """Where a method that writes to ``output`` keeps its own files."""
    return shards.join(output, f"{SCRATCH}/{method}")


def _mark(folder: str) -> str:
    """The file of a method's results, beside its folder; where it exists, the method is complete."""
    return f"{folder}.json"


def _run_before_last(name: str, job: Job) -> list[UnitResult]:
    """Run a method that is not the last, unless it is complete already."""
    mark = _mark(job.output)
    if shards.exists(mark):
        return [UnitResult(**row) for row in shards.read_json(mark)]
    mapped = [ChainUnit(**dataclasses.asdict(unit)) for unit in job.units]
    results = method_run(name)(dataclasses.replace(job, units=mapped))
    shards.write_json(mark, [dataclasses.asdict(result) for result in results])
    return results


def units_below(folder: str, units: int) -> list[ShardUnit]:
    """The documents that a method of this many units kept, as units of the next method, one per shard."""
    below: list[ShardUnit] = []
    complete = set()
    for entry in shards.load_entries(folder, units):
        shard = entry.tables["documents"]
        below.append(ShardUnit(len(below), shards.join(folder, shard.name), shard.rows, shard.bytes))
        if entry.last:
            complete.add(entry.unit)
    if len(complete) < units:
        raise errors.ManifestInvalid(folder, f"{units - len(complete)} of {units} units are missing", "run it again")
    return below


def _carry(
    engine: Engine, folders: Sequence[str], counts: Sequence[int], output: str, first: int, progress: Progress
) -> int:
    """Copy the audit tables of these methods as parts from ``first`` on; returns the number of parts then.

    Parts before ``first`` are the last method's own: a part is a unit of one method.
    """
    for folder, count in zip(folders, counts, strict=True):
        units = [ShardUnit(number, folder, 0, 0) for number in range(first, first + count)]
        work = CarryWork(folder, output, first)
        engine.map(work, units, [0] * count, label="carry", folder=output, progress=progress)
        first += count
    return first


@dataclasses.dataclass(frozen=True)
class CarryWork:
    """Copies the audit tables of a method from ``folder`` to ``output``, as parts from ``first`` on."""

    folder: str
    output: str
    first: int

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Copy one part; tallies and statistics are those of the chain."""
        part = unit.number
        for entry in shards.unit_entries(self.folder, part - self.first):
            tables = {
                name: self._copied(name, shard, f"part-{part:05d}-{entry.shard:05d}")
                for name, shard in entry.tables.items()
                if name != "documents"
            }
            copied = dataclasses.replace(entry, unit=part, tables=tables, tallies={}, statistics={})
            path = shards.join(self.output, f"entries/part-{part:05d}-{entry.shard:05d}.json")
            shards.write_json(path, dataclasses.asdict(copied))
        return UnitResult(part, {}, {})

    def _copied(self, table: str, shard: Shard, stem: str) -> Shard:
        name = f"{table}/{stem}{Path(shard.name).suffix}"
        with shards.open_binary(shards.join(self.folder, shard.name)) as file:
            shards.write_bytes(shards.join(self.output, name), file.read())
        return dataclasses.replace(shard, name=name)


def chained(methods: Sequence[str], results: Sequence[Sequence[UnitResult]], parts: int) -> Chained:
    """The numbers of a chain from the results of its methods."""
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = dict.fromkeys((*_OF_FIRST, *_OF_LAST), 0)  # even without any document
    by_method = {}
    for number, (name, rows) in enumerate(zip(methods, results, strict=True)):
        of_method: dict[str, Any] = {"tallies": {}}
        for row in rows:
            shards.add_tallies(of_method["tallies"], row.tallies)
            shards.add_statistics(of_method, row.statistics)
        shards.add_tallies(tallies, of_method["tallies"])
        by_method[name] = of_method
        left_out = {"tallies"} if len(results) == 1 else {"tallies", "documents_changed"}
        left_out |= set(_OF_FIRST) if number else set()
        left_out |= set(_OF_LAST) if number < len(results) - 1 else set()
        shards.add_statistics(statistics, {key: value for key, value in of_method.items() if key not in left_out})
    return Chained(parts, tallies, {**statistics, "methods": by_method})
