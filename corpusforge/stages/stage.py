"""What every stage does around its work: claim the folder, skip what is done, gather the manifest, time itself.

A stage's digest is of its recipe sections, its code version, the seed and the digests of what it reads. A folder that
carries the same digest is skipped or gone on with; one that carries another is refused, unless told to overwrite.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import platform
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import xxhash

from corpusforge import __version__, errors, shards
from corpusforge.content import combine
from corpusforge.progress import Progress, Silent
from corpusforge.shards import Manifest
from corpusforge.units import ShardUnit

RUN = "run.json"
TIMING = "timing.json"

CODE_VERSIONS = {"clean": 1, "dedupe": 1, "train-vocab": 1, "build-instances": 1, "pretrain": 1, "evaluate": 1}
"""Raised when a stage's output changes for the same recipe and input, so that old folders are not taken for new."""


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
    """A finished stage: where it lies, its manifest, and whether there was nothing to do."""

    folder: str
    manifest: Manifest
    skipped: bool
    seconds: float = 0.0
    peak_rss: int = 0


def digest_of(value: Any) -> str:
    """xxh3-128 of a value's canonical JSON, 32 hex digits.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return xxhash.xxh3_128_hexdigest(json.dumps(value, sort_keys=True, ensure_ascii=False).encode())


def stage_digest(stage: str, recipe: Mapping[str, Any], upstream: Mapping[str, str]) -> str:
    """The digest a finished stage carries in its manifest."""
    return digest_of([stage, CODE_VERSIONS[stage], recipe, upstream])


def claim(folder: str, stage: str, recipe: Mapping[str, Any], upstream: Mapping[str, str], execution: Execution) -> str:
    """Make a folder this stage's own, or find that it already is; returns the stage's digest.

    Raises `errors.OutputTaken` where it holds something else and ``overwrite`` was not given.
    """
    digest = stage_digest(stage, recipe, upstream)
    path = shards.join(folder, RUN)
    held = _held(path)
    if held is not None and held.get("digest") == digest:
        return digest
    if held is not None or _has_files(folder):
        what = "holds files that no stage wrote" if held is None else _difference(held, stage, recipe, upstream)
        if not execution.overwrite:
            raise errors.OutputTaken(folder, what, "choose another folder, or --overwrite to replace it")
        if held is None:
            raise errors.OutputTaken(folder, what, "choose another folder (--overwrite only replaces a stage's output)")
        shards.remove(folder)
    shards.write_json(path, {"stage": stage, "digest": digest, "recipe": dict(recipe), "upstream": dict(upstream)})
    return digest


def finished(folder: str, digest: str) -> Manifest | None:
    """The manifest of a stage that is complete under this digest, else None."""
    if not shards.exists(shards.join(folder, shards.MANIFEST)):
        return None
    manifest = Manifest.load(folder)
    return manifest if manifest.digest == digest else None


def _held(path: str) -> dict[str, Any] | None:
    if not shards.exists(path):
        return None
    try:
        held = shards.read_json(path)
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def _has_files(folder: str) -> bool:
    return bool(shards.list_names(folder, ""))


def _difference(held: Mapping[str, Any], stage: str, recipe: Mapping[str, Any], upstream: Mapping[str, str]) -> str:
    if held.get("stage") != stage:
        return f"already holds the stage '{held.get('stage')}'"
    old, new = _flat(held.get("recipe", {})), _flat(recipe)
    changed = [f"{k} {old.get(k)!r} -> {new.get(k)!r}" for k in sorted(old | new) if old.get(k) != new.get(k)]
    if not changed and held.get("upstream") != dict(upstream):
        changed = ["other input"]
    return f"already holds another run of {stage} ({'; '.join(changed[:3]) or 'of another version'})"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def manifest_of(
    folder: str,
    stage: str,
    digest: str,
    recipe: Mapping[str, Any],
    upstream: Mapping[str, str],
    *,
    statistics: Mapping[str, Any] | None = None,
    prefix: str = "",
) -> Manifest:
    """Gather a stage's entries (below ``folder/prefix``) into a manifest; it is not saved yet."""
    found, tallies, counted = shards.gather(shards.load_entries(shards.join(folder, prefix) if prefix else folder))
    return Manifest(
        stage=stage,
        digest=digest,
        content={table: combine(s.content for s in many) for table, many in found.items()},
        rows={table: sum(s.rows for s in many) for table, many in found.items()},
        bytes={table: sum(s.bytes for s in many) for table, many in found.items()},
        shards=found,
        tallies=tallies,
        statistics={**counted, **(statistics or {})},
        recipe=dict(recipe),
        upstream=dict(upstream),
        versions=versions(),
    )


def check_units(folder: str, units: int, where: str) -> None:
    """Raise `errors.ManifestInvalid` unless every unit has its last entry (a runner that lost work shows here)."""
    complete = {e.unit for e in shards.load_entries(folder) if e.last}
    missing = sorted(set(range(units)) - complete)
    if missing:
        raise errors.ManifestInvalid(
            where, f"{len(missing)} of {units} work units left no output (first: {missing[0]})", "run the stage again"
        )


def upstream_units(folder: str, table: str) -> tuple[Manifest, list[ShardUnit]]:
    """The shards of a finished stage as work units, in order."""
    manifest = Manifest.load(folder)
    listed = manifest.shards.get(table)
    if listed is None:
        raise errors.StageMismatch(folder, f"has no table '{table}'", f"it is the output of {manifest.stage}")
    paths = manifest.paths(folder, table)
    units = [ShardUnit(n, path, s.rows, s.bytes) for n, (path, s) in enumerate(zip(paths, listed, strict=True))]
    return manifest, units


def versions() -> dict[str, str]:
    """Versions of what decides the output: CorpusForge, Python and the libraries it leans on."""
    found = {"corpusforge": __version__, "python": platform.python_version()}
    for name in (
        "pyarrow",
        "numpy",
        "tokenizers",
        "fastwarc",
        "resiliparse",
        "nltk",
        "langdetect",
        "apache-beam",
        "torch",
    ):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@contextlib.contextmanager
def timed(folder: str, stage: str, execution: Execution) -> Iterator[dict[str, float]]:
    """Measure a stage: wall seconds, and the peak of the summed RSS of its processes; written to ``timing.json``."""
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
    timing = {"stage": stage, "workers": execution.workers, "runner": execution.runner, **measured}
    shards.write_json(shards.join(folder, TIMING), timing)


def _watch_memory(measured: dict[str, float], stop: threading.Event) -> None:
    me = psutil.Process()
    while True:
        total = 0
        for process in [me, *me.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        measured["peak_rss"] = max(measured["peak_rss"], float(total))
        if stop.wait(0.2):
            return


def fingerprint(paths: Sequence[tuple[str, str]]) -> str:
    """Digest of input files given as (path, source): names, sizes, and the first and last 64 KiB of local ones.

    Cheap for terabytes, the same in every clone; a file altered in its middle at equal length is not noticed.
    """
    seen = []
    for path, source in paths:
        if shards.is_remote(path):
            seen.append([source, 0, ""])
            continue
        size = Path(path).stat().st_size
        with Path(path).open("rb") as file:
            head = file.read(1 << 16)
            file.seek(max(0, size - (1 << 16)))
            seen.append([source, size, xxhash.xxh3_64_hexdigest(head + file.read())])
    return digest_of(seen)
