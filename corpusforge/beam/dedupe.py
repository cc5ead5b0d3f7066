"""The stage `dedupe`: a chain of methods, each of which reads the documents that the one before it left.

    document shards -> method -> scratch/chain/0-NAME/documents/ -> ... -> last method -> documents/
                          each method's repeats/ -> repeats/

Comes in: document shards. Goes out: ``documents/`` of the last method, ``repeats/`` of all of them. The one decision: a
method is a module with one function, ``run_method``, that reads units and writes a folder; it does not know the chain.
What a method wrote is marked when it is through, so a stage killed anywhere goes on in the method it was in.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence

from corpusforge import shards
from corpusforge.dedupe import memory
from corpusforge.dedupe.chain import ChainUnit, largest_document
from corpusforge.dedupe.methods import CarryWork, Chained, chained, units_below
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit, UnitResult

METHODS = {
    "lines": "corpusforge.beam.lines",
    "exact-spans": "corpusforge.beam.exact_spans",
    "near-spans": "corpusforge.beam.near_spans",
    "documents": "corpusforge.beam.near_documents",
}
"""Each of these modules has ``run_method(engine, settings, units, output, progress, *, audit_only)``, which writes
``documents/`` (not with ``audit_only``) and ``repeats/`` and returns a row a unit, in the order of the units."""

SCRATCH = "scratch"
"""Folder below the output for what is removed when the stage is through."""

_TEXT_OF_SHARD = 3
"""Bytes of text to a byte of a document shard, for the estimate (Wikipedia through zstd: 2.6 to 3)."""

_DONE = ".json"
"""Behind the name of a method's folder: the file of its rows, written when it is through."""


def scratch_of(output: str, method: str) -> str:
    """Where a method that writes to ``output`` may keep files; it removes them when it is through."""
    return shards.join(output, f"{SCRATCH}/{method}")


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
    """Write ``documents/`` and ``repeats/`` for every upstream shard; with ``audit_only`` no documents.

    ``text_bytes``: text in the units, where it is known. Raises `errors.RecipeInvalid` where the memory is too small.
    """
    engine, settings = within_budget(engine, settings, units, progress, text_bytes)
    *before, last = settings.method
    steps: list[list[UnitResult]] = []
    folders: list[str] = []
    reads: Sequence[ShardUnit] = units
    for number, name in enumerate(before):
        folder = shards.join(output, f"{SCRATCH}/chain/{number}-{name}")
        steps.append(_step(engine, settings, name, reads, folder, progress))
        folders.append(folder)
        if number:
            shards.remove(shards.join(folders[number - 1], "documents"))
        reads = units_below(folder, len(reads))
    parts = _carry(engine, folders, [len(rows) for rows in steps], output, len(reads), progress)
    method = importlib.import_module(METHODS[last])
    steps.append(method.run_method(engine, settings, reads, output, progress, audit_only=audit_only))
    for folder in folders:  # first, so that what is half removed is never taken for whole
        shards.remove(f"{folder}{_DONE}")
    shards.remove(shards.join(output, SCRATCH))
    return chained(settings.method, steps, parts)


def within_budget(
    engine: Engine, settings: Dedupe, units: Sequence[ShardUnit], progress: Progress, text_bytes: int
) -> tuple[Engine, Dedupe]:
    """The workers that fit the budget, and settings with what is left of it for the comparison."""
    if not engine.is_local:
        return engine, settings  # what other runners hold is theirs
    text_bytes = text_bytes or _TEXT_OF_SHARD * sum(unit.bytes for unit in units)
    largest = largest_document(units)
    planned = memory.plan(settings.memory_megabytes << 20, engine.width(len(units)), text_bytes, largest)
    progress.say(f"{', '.join(settings.method)}: {planned.words(text_bytes)}")
    engine = dataclasses.replace(engine, workers=planned.workers)
    return engine, dataclasses.replace(settings, memory_megabytes=planned.shuffle_bytes >> 20)


def _step(
    engine: Engine, settings: Dedupe, name: str, units: Sequence[ShardUnit], folder: str, progress: Progress
) -> list[UnitResult]:
    """A method that is not the last; done already where its rows are there."""
    mark = f"{folder}{_DONE}"
    if shards.exists(mark):
        return [UnitResult(**row) for row in shards.read_json(mark)]
    method = importlib.import_module(METHODS[name])
    reads = [ChainUnit(**dataclasses.asdict(unit)) for unit in units]
    rows: list[UnitResult] = method.run_method(engine, settings, reads, folder, progress, audit_only=False)
    shards.write_json(mark, [dataclasses.asdict(row) for row in rows])
    return rows


def _carry(
    engine: Engine, folders: Sequence[str], counts: Sequence[int], output: str, first: int, progress: Progress
) -> int:
    """Take the audit tables of these methods over as parts ``first`` and on; returns how many parts there are then.

    Parts before ``first`` are the last method's own: a part is a unit of one method.
    """
    for folder, count in zip(folders, counts, strict=True):
        units = [ShardUnit(number, folder, 0, 0) for number in range(first, first + count)]
        work = CarryWork(folder, output, first)
        engine.map(work, units, [0] * count, label="carry", folder=output, progress=progress)
        first += count
    return first
