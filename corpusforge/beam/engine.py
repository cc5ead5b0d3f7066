"""How a stage runs its units: in a pool of processes here, or one unit an element on a distributed runner.

Comes in: a `units.UnitWork`, its units and their sizes. Goes out: one `UnitResult` a unit, in the order of the units.
An element is a reference to input, never text: all per-document work of a stage is fused in one DoFn. Locally that DoFn
gets all units as one element and hands them to `pool`; distributed, the graph holds only the path of a file that lists
the units, and results come back as the entries on the shared output folder.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from corpusforge import errors, shards
from corpusforge.beam.pool import run_pool, run_unit
from corpusforge.beam.runners import LOCAL, check_runner, make_pipeline, run_pipeline
from corpusforge.beam.sdk import as_itself, beam
from corpusforge.progress import Progress
from corpusforge.units import UnitResult, UnitWork

NAMESPACE = "corpusforge"
"""Namespace of the Beam counters, one a reason."""

JOBS = "jobs.pickle"


@dataclass(frozen=True)
class Engine:
    """Where and how wide work runs. ``workers`` 0: all cores. ``options``: Beam options, for the runner."""

    workers: int = 0
    runner: str = LOCAL
    options: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether work runs in processes of this machine. Raises `errors.RunnerRefused`."""
        return check_runner(self.runner) == LOCAL

    def width(self, units: int) -> int:
        """Worker processes for so many units."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(self.workers or cores, units))

    def run(self, build: Callable[[Any], None]) -> Any:
        """Build a pipeline with ``build(pipeline)`` and run it to its end; returns Beam's result."""
        name = check_runner(self.runner)
        pipeline = make_pipeline(name, self.options)
        build(pipeline)
        return run_pipeline(pipeline, name)


class Mapped(NamedTuple):
    """Results in the order of the units, and Beam's counters where the runner gives them."""

    results: list[UnitResult]
    counters: dict[str, int]


def run_map(
    engine: Engine,
    work: UnitWork,
    units: Sequence[Any],
    sizes: Sequence[int],
    *,
    label: str,
    folder: str,
    progress: Progress,
) -> list[UnitResult]:
    """Run ``work(unit, advance)`` for every unit; ``sizes`` are their bytes, ``folder`` is where they write.

    Raises what a unit raised; run again, finished shards are not done twice.
    """
    return map_units(engine, work, units, sizes, label=label, folder=folder, progress=progress).results


def map_units(
    engine: Engine,
    work: UnitWork,
    units: Sequence[Any],
    sizes: Sequence[int],
    *,
    label: str,
    folder: str,
    progress: Progress,
) -> Mapped:
    """As `run_map`, with the counters."""
    run = _map_locally if engine.is_local else _map_remotely
    if engine.is_local and engine.runner != LOCAL:
        progress.say(f"--runner {engine.runner}: taken as local, Beam's in-memory runner with a pool of processes")
    progress.start(label, sum(sizes), "bytes")
    try:
        return run(engine, work, units, sizes, label, folder, progress)
    finally:
        progress.finish()


def counters(result: Any) -> dict[str, int]:
    """The counters per reason of a finished pipeline (empty where the runner keeps them to itself)."""
    from apache_beam.metrics import MetricsFilter

    try:
        found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    except NotImplementedError:
        return {}
    return {metric.key.metric.name: int(metric.result) for metric in found}


def count(tallies: shards.Tallies) -> None:
    """Bump Beam's counter of each reason once, by the rows a unit or batch dropped for it."""
    from apache_beam.metrics import Metrics

    for reason, tally in tallies.items():
        Metrics.counter(NAMESPACE, reason).inc(tally["rows"])


# Locally: one element, all units.


@dataclass
class _Local:
    """What the DoFn shares with the caller; it runs in the caller's own thread and process."""

    work: UnitWork
    units: Sequence[Any]
    sizes: Sequence[int]
    workers: int
    tell: Callable[[int], None]
    results: dict[int, UnitResult] = field(default_factory=dict)
    error: BaseException | None = None


_RUNNING: dict[str, _Local] = {}
"""Runs in progress by ticket: a DoFn is pickled into the graph, so it carries the ticket only."""


class _RunAll(beam.DoFn):  # type: ignore[misc, name-defined]
    """Runs all units of a ticket; the error of a unit is kept for the caller, as Beam would reword and log it."""

    def process(self, ticket: str) -> Iterator[shards.Tallies]:
        run = _RUNNING[ticket]
        try:
            for index, result in _local_results(run):
                run.results[index] = result
                yield result.tallies
        except GeneratorExit:
            raise
        except BaseException as error:
            run.error = error


class _Count(beam.DoFn):  # type: ignore[misc, name-defined]
    """Bumps the counters once a unit and reason."""

    def process(self, tallies: shards.Tallies) -> None:
        count(tallies)


def _local_results(run: _Local) -> Iterator[tuple[int, UnitResult]]:
    if run.workers > 1:
        yield from run_pool(run.work, run.units, run.sizes, run.workers, run.tell)
        return
    for index, (unit, size) in enumerate(zip(run.units, run.sizes, strict=True)):
        yield index, run_unit(run.work, unit, size, run.tell)


def _map_locally(
    engine: Engine,
    work: UnitWork,
    units: Sequence[Any],
    sizes: Sequence[int],
    label: str,
    folder: str,
    progress: Progress,
) -> Mapped:
    ticket = uuid.uuid4().hex
    run = _RUNNING[ticket] = _Local(work, units, sizes, engine.width(len(units)), progress.advance)

    def build(pipeline: Any) -> None:
        _ = (
            pipeline
            | "Units" >> beam.Create([ticket])
            | label >> beam.ParDo(_RunAll())
            | "Count" >> beam.ParDo(_Count())
        )

    shards.sweep(folder)
    try:
        result = engine.run(build)
    finally:
        del _RUNNING[ticket]
    if run.error is not None:
        shards.sweep(folder)
        raise run.error
    return Mapped([run.results[i] for i in range(len(units))], counters(result))


# Distributed: one element a unit.


def listed(pipeline: Any, engine: Engine, folder: str, items: Sequence[Any]) -> Any:
    """A PCollection of small picklable items, which lie in a file of ``folder`` and not in the graph.

    Dataflow limits a graph to 10 MB, and `Create` would put every item into it. Spread over workers where there are.
    """
    path = shards.join(folder, JOBS)
    packed = pickle.dumps([pickle.dumps(item) for item in items])
    shards.write_bytes(path, packed)
    reading = beam.ParDo(_ReadList(hashlib.sha256(packed).hexdigest()))
    found = pipeline | "Listed" >> beam.Create([path], reshuffle=False) | "ReadList" >> reading
    if not engine.is_local:
        found |= "Spread" >> beam.Reshuffle()
    return found | "Item" >> beam.Map(pickle.loads)


class _ReadList(beam.DoFn):  # type: ignore[misc, name-defined]
    """The path of a list -> its items, still pickled.

    ``digest``: SHA-256 of the list, which travels in the graph: a file that someone else put there is never unpickled.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def process(self, path: str) -> Iterator[bytes]:
        with shards.open_binary(path) as file:
            packed = file.read()
        if hashlib.sha256(packed).hexdigest() != self.digest:
            with as_itself():
                what = "is not the list that this run wrote"
                raise errors.ManifestInvalid(path, what, "see that no other run writes there, and run the stage again")
        yield from pickle.loads(packed)


class _RunOne(beam.DoFn):  # type: ignore[misc, name-defined]
    """Runs one unit; its output and its entries are on the shared folder."""

    def __init__(self, work: UnitWork) -> None:
        self.work = work

    def process(self, unit: Any) -> None:
        with as_itself():
            count(run_unit(self.work, unit, 0, lambda _: None).tallies)


def _map_remotely(
    engine: Engine,
    work: UnitWork,
    units: Sequence[Any],
    sizes: Sequence[int],
    label: str,
    folder: str,
    progress: Progress,
) -> Mapped:
    before = {entry.unit for entry in shards.load_entries(folder) if entry.last}

    def build(pipeline: Any) -> None:
        _ = listed(pipeline, engine, folder, units) | label >> beam.ParDo(_RunOne(work))

    progress.say(f"{label}: {len(units)} units through {engine.runner}")
    result = engine.run(build)
    shards.remove(shards.join(folder, JOBS))
    progress.advance(sum(sizes))
    return Mapped(_results_of_entries(folder, [unit.number for unit in units], before), counters(result))


def _results_of_entries(folder: str, numbers: Sequence[int], before: set[int]) -> list[UnitResult]:
    entries: dict[int, list[shards.Entry]] = {number: [] for number in numbers}
    for entry in shards.load_entries(folder):
        entries.setdefault(entry.unit, []).append(entry)
    results = []
    for number in numbers:
        _, tallies, statistics = shards.gather(entries[number])
        results.append(UnitResult(number, tallies, statistics, number in before))
    return results
