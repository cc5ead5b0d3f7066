"""What every stage does around its work: list its units, gather its manifest, measure itself, fingerprint its input."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import xxhash

from corpusforge import errors, shards
from corpusforge.content import combine
from corpusforge.engine import Engine
from corpusforge.progress import Progress, Silent
from corpusforge.shards import Manifest, Tallies
from corpusforge.stages.output_folder import TIMING, Claim, digest_of
from corpusforge.units import ShardUnit
from corpusforge.version import VERSION


@dataclasses.dataclass(frozen=True)
class Execution:
    """How to run, as opposed to what: nothing here may change a digest. ``workers`` 0: all cores."""

    workers: int = 0
    runner: str = "local"
    beam_options: tuple[str, ...] = ()
    overwrite: bool = False
    progress: Progress = dataclasses.field(default_factory=Silent)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished stage: its folder, its manifest, and whether it was up to date already."""

    folder: str
    manifest: Manifest
    skipped: bool
    seconds: float = 0.0
    peak_rss: int = 0


def manifest_of(
    claimed: Claim,
    *,
    units: int | None = None,
    tallies: Tallies | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> Manifest:
    """Gather the entries of a stage's first ``units`` units (None: all) into a manifest; it is not saved yet.

    ``tallies`` replace those of the entries; ``statistics`` are added to those of the entries.
    """
    tables, summed_tallies, summed_statistics = shards.gather(shards.load_entries(claimed.folder, units))
    return Manifest(
        stage=claimed.stage,
        digest=claimed.digest,
        content={table: combine(s.content for s in listed) for table, listed in tables.items()},
        rows={table: sum(s.rows for s in listed) for table, listed in tables.items()},
        bytes={table: sum(s.bytes for s in listed) for table, listed in tables.items()},
        shards=tables,
        tallies=summed_tallies if tallies is None else tallies,
        statistics={**summed_statistics, **(statistics or {})},
        recipe=dict(claimed.recipe),
        upstream=dict(claimed.upstream),
        versions=versions(),
    )


def check_units(folder: str, units: int) -> None:
    """Raise `errors.ManifestInvalid` unless every unit has its last entry (a runner that lost work shows here)."""
    complete = {e.unit for e in shards.load_entries(folder, units) if e.last}
    missing = sorted(set(range(units)) - complete)
    if missing:
        raise errors.ManifestInvalid(
            folder, f"{len(missing)} of {units} work units have no output (first: {missing[0]})", "run the stage again"
        )


def finish(claimed: Claim, manifest: Manifest, measured: Mapping[str, float]) -> Outcome:
    """Write the manifest of a finished stage; returns its outcome."""
    manifest.save(claimed.folder)
    return Outcome(claimed.folder, manifest, False, measured["seconds"], int(measured["peak_rss"]))


def upstream_units(folder: str, table: str) -> tuple[Manifest, list[ShardUnit]]:
    """The shards of a finished stage as work units, in order."""
    manifest = Manifest.load(folder)
    listed = manifest.shards.get(table)
    if listed is None:
        raise errors.StageMismatch(folder, f"has no table '{table}'", f"it is the output of {manifest.stage}")
    paths = manifest.paths(folder, table)
    units = [ShardUnit(n, path, s.rows, s.bytes) for n, (path, s) in enumerate(zip(paths, listed, strict=True))]
    return manifest, units


def load_instances(folder: str) -> tuple[Manifest, str]:
    """The manifest of finished instances, and the digest of their content.

    Raises `errors.StageMismatch` if the folder holds the output of another stage.
    """
    manifest = Manifest.load(folder)
    if manifest.stage != "build-instances":
        raise errors.StageMismatch(folder, f"holds the output of {manifest.stage}", "name a build-instances folder")
    return manifest, digest_of(manifest.content)


def numbers_of(values: Mapping[str, Any], *, leave_out: str = "") -> dict[str, Any]:
    """The numbers among nested values, by joined names.

    >>> numbers_of({"loss": 2.5, "blimp": {"score": 60, "name": "x"}})
    {'loss': 2.5, 'blimp_score': 60}
    """
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}_{name}": number for name, number in numbers_of(value).items()}
        elif isinstance(value, int | float) and key != leave_out:
            flat[key] = value
    return flat


def versions() -> dict[str, str]:
    """Versions of what decides the output: CorpusForge, Python and the libraries it uses."""
    import importlib.metadata
    import platform

    installed = {"corpusforge": VERSION, "python": platform.python_version()}
    for name in (
        "pyarrow",
        "numpy",
        "tokenizers",
        "fastwarc",
        "resiliparse",
        "trafilatura",
        "langdetect",
        "apache-beam",
        "torch",
    ):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


@contextlib.contextmanager
def timed(claimed: Claim, execution: Execution, budget: int = 0) -> Iterator[dict[str, float]]:
    """Measure a stage: wall seconds, and the peak of the summed RSS of its processes; written to ``timing.json``.

    ``budget``: bytes of memory that may be used (0: no limit was given); a higher peak is reported.
    """
    measured: dict[str, float] = {"seconds": 0.0, "peak_rss": 0.0}
    stop = threading.Event()
    watcher = threading.Thread(target=_watch_memory, args=(measured, stop), daemon=True)
    watcher.start()
    began = time.monotonic()
    try:
        yield measured
    finally:
        stop.set()
        watcher.join()
        measured["seconds"] = time.monotonic() - began
    timing = {"stage": claimed.stage, "workers": execution.workers, "runner": execution.runner, **measured}
    if budget:
        timing |= {"memory_budget": budget, "over_budget": measured["peak_rss"] > budget}
    shards.write_json(shards.join(claimed.folder, TIMING), timing)
    if budget and measured["peak_rss"] > budget:
        peak, allowed = measured["peak_rss"] / 2**20, budget / 2**20
        line = f"warning: {claimed.stage} took {peak:,.0f} MiB of memory, more than the budget of {allowed:,.0f}"
        execution.progress.say(line)


def _watch_memory(measured: dict[str, float], stop: threading.Event) -> None:
    import psutil

    this = psutil.Process()
    while True:
        total = 0
        for process in [this, *this.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        measured["peak_rss"] = max(measured["peak_rss"], float(total))
        if stop.wait(0.2):
            return


def cuts_of(manifest: Manifest, table: str) -> str:
    """Digest of how a table is divided into shards: unfinished work on another division cannot be resumed."""
    return digest_of([[shard.rows, shard.digest] for shard in manifest.shards[table]])


def fingerprint(paths: Iterable[tuple[str, str]]) -> str:
    """Digest of input files given as (path, source): names, sizes, and the first and last 64 KiB of local ones.

    Cheap for terabytes, the same in every clone; a file altered in its middle at equal length is not noticed. Of
    remote files it covers what the store reports: size and entity tag, checksum or time of change.
    """
    return digest_of(sorted([source, *_identity(path)] for path, source in paths))


def _identity(path: str) -> list[Any]:
    """What tells one state of a file from another without reading all of it."""
    if shards.is_remote(path):
        import fsspec

        filesystem, inner = fsspec.core.url_to_fs(path)
        info = filesystem.info(inner)
        return [info.get("size"), str(info.get("ETag") or info.get("md5Hash") or info.get("mtime") or "")]
    size = Path(path).stat().st_size
    with Path(path).open("rb") as file:
        head = file.read(1 << 16)
        file.seek(max(0, size - (1 << 16)))
        return [size, xxhash.xxh3_64_hexdigest(head + file.read())]


def engine_of(execution: Execution, *, shuffles: bool = False) -> Engine:
    """The engine of an execution. ``shuffles``: whether the stage shuffles, for which Beam must be installed.

    Raises `errors.RunnerRefused` or `errors.ExtraMissing` before any work.
    """
    from corpusforge.beam.engine import BeamEngine

    engine = BeamEngine(execution.workers, execution.runner, execution.beam_options)
    engine.check(shuffles=shuffles)
    return engine
