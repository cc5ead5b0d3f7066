"""`BeamEngine`: the two verbs of `corpusforge.engine` on any Beam runner.

On this machine `map` hands its units to the pool of processes and never imports Beam, whose import takes longer than
the cleaning of a small input. On a cluster the graph holds the path of a file that lists the units, one unit becomes
one element, and the results are read back from the entries in the shared output folder. `shuffle` is the same graph on
every runner, the local one being Beam's in-memory runner.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from corpusforge import errors, shards
from corpusforge.beam.runners import LOCAL, check_runner, make_pipeline, outside_notebooks, run_pipeline
from corpusforge.engine import Combine, Consume, Engine, Produce, Reduce
from corpusforge.pool import run_units
from corpusforge.progress import Progress
from corpusforge.units import UnitResult, UnitWork

JOBS = "jobs.pickle"
"""The file that lists what a graph works on; see `graph`."""


@dataclass(frozen=True)
class BeamEngine(Engine):
    """Runs units and shuffles on a Beam runner. ``options``: Beam options, for the runner."""

    runner: str = LOCAL
    options: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        return check_runner(self.runner) == LOCAL

    def check(self, *, shuffles: bool) -> None:
        """Raise what would stop the engine later, without importing Beam. ``shuffles``: whether `shuffle` will be used.

        Raises `errors.RunnerRefused`, or `errors.ExtraMissing` where Beam is needed and not installed.
        """
        if (not self.is_local or shuffles) and importlib.util.find_spec("apache_beam") is None:
            raise errors.ExtraMissing(
                "corpusforge.beam", "apache_beam is not installed", "pip install 'corpusforge[beam]'"
            )

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
        if self.is_local and self.runner != LOCAL:
            progress.say(f"--runner {self.runner}: taken as local, Beam's in-memory runner with a pool of processes")
        progress.start(label, sum(sizes), "bytes")
        try:
            if self.is_local:
                return run_units(work, units, sizes, self.width(len(units)), folder, progress.advance)
            progress.say(f"{label}: {len(units)} units through {self.runner}")
            results = self._map_remotely(work, units, label, folder)
            progress.advance(sum(sizes))
            return results
        finally:
            progress.finish()

    def _map_remotely(self, work: UnitWork, units: Sequence[Any], label: str, folder: str) -> list[UnitResult]:
        before = {entry.unit for entry in shards.load_entries(folder) if entry.last}
        from corpusforge.beam import graph

        self._run_listed(units, folder, lambda items: graph.run_units(items, work, label))
        entries: dict[int, list[shards.Entry]] = {unit.number: [] for unit in units}
        for entry in shards.load_entries(folder):
            entries.setdefault(entry.unit, []).append(entry)
        results = []
        for unit in units:
            _, tallies, statistics = shards.gather(entries[unit.number])
            results.append(UnitResult(unit.number, tallies, statistics, unit.number in before))
        return results

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
        from corpusforge.beam import graph

        self._run_listed(items, folder, lambda listed: graph.shuffle(listed, produce, reduce, consume, combine))

    def _run_listed(self, items: Sequence[Any], folder: str, build: Callable[[Any], None]) -> None:
        """Run the graph that ``build`` makes of a PCollection of the items; a file in ``folder`` lists them."""
        from corpusforge.beam.graph import read_items, write_items

        path, is_remote = shards.join(folder, JOBS), not self.is_local
        digest = write_items(path, items)
        self.run(lambda pipeline: build(read_items(pipeline, path, digest, spread=is_remote)))
        shards.remove(path)

    def run(self, build: Callable[[Any], None]) -> Any:
        """Build a pipeline with ``build(pipeline)`` and run it to its end; returns Beam's result."""
        name = check_runner(self.runner)
        pipeline = make_pipeline(name, self.options)
        with outside_notebooks():
            build(pipeline)
            return run_pipeline(pipeline, name)
