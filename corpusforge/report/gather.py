"""Everything the report shows of a run, or of one stage, read from its folder.

Comes in: a run's folder or URL, or that of a stage. Goes out: a `Found` with manifests, timings, log lines and the
evaluation. Whatever is missing stays empty; whatever is damaged is named in ``problems`` and left out, because a report
of a half-finished or broken run is wanted most of all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from corpusforge import errors, shards
from corpusforge.shards import Manifest

FOLDERS = {
    "clean": "clean",
    "dedupe": "dedupe",
    "train-vocab": "vocab",
    "build-instances": "instances",
    "pretrain": "pretrain",
    "evaluate": "evaluate",
}
"""Stages in the order of the line, and their folders (the same in every run)."""


@dataclass
class Found:
    """A run. ``timings``: ``timing.json`` by stage; ``log``: lines of ``log.jsonl``; ``problems``: for a person;
    ``alone``: the stage, where the folder is that of one stage and not of a run."""

    folder: str
    manifests: dict[str, Manifest] = field(default_factory=dict)
    timings: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    evaluation: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    alone: str = ""

    def path(self, stage: str) -> str:
        """Folder of a stage of this run."""
        return self.folder if stage == self.alone else shards.join(self.folder, FOLDERS[stage])

    def statistics(self, stage: str) -> dict[str, Any]:
        """Statistics of a stage; empty where it has not run."""
        return self.manifests[stage].statistics if stage in self.manifests else {}


def gather(run_dir: str) -> Found:
    """Read the folder of a run or of a stage. Raises `errors.InputMissing` where nothing of either is in it."""
    found = Found(str(run_dir).rstrip("/"))
    if not shards.exists(found.folder):
        raise errors.InputMissing(found.folder, "no such folder", "check the path")
    found.alone = _stage_in(found)
    for stage in [found.alone] if found.alone else FOLDERS:
        _read_stage(found, stage)
    if found.alone in ("", "pretrain"):
        found.log = read_log(found, shards.join(found.path("pretrain"), "log.jsonl"))
    evaluation = {}
    if found.alone in ("", "evaluate"):
        evaluation = _read_json(found, shards.join(found.path("evaluate"), "evaluation.json"))
    found.evaluation = evaluation if isinstance(evaluation, dict) else {}
    if not (found.manifests or found.log or found.evaluation):
        mend = "name the folder that corpusforge run wrote (runs/NAME)"
        raise errors.InputMissing(found.folder, "; ".join(found.problems) or "holds no finished stage", mend)
    return found


def _stage_in(found: Found) -> str:
    """The stage whose folder this is; "" for a run's, whose stages have folders of their own in it."""
    for name in (shards.MANIFEST, "run.json"):
        note = _read_json(found, shards.join(found.folder, name))
        if isinstance(note, dict) and note.get("stage") in FOLDERS:
            return str(note["stage"])
    return ""


def _read_stage(found: Found, stage: str) -> None:
    folder = found.path(stage)
    timing = _read_json(found, shards.join(folder, "timing.json"))
    if isinstance(timing, dict):
        found.timings[stage] = timing
    if not shards.exists(shards.join(folder, shards.MANIFEST)):
        if shards.exists(folder):
            found.problems.append(f"{stage}: begun, not finished (no manifest in {folder})")
        return
    try:
        found.manifests[stage] = Manifest.load(folder)
    except errors.ManifestInvalid as error:
        found.problems.append(str(error))


def _read_json(found: Found, path: str) -> Any:
    if not shards.exists(path):
        return None
    try:
        return shards.read_json(path)
    except ValueError as error:
        found.problems.append(f"{path}: {error}")
        return None


def read_log(found: Found, path: str) -> list[dict[str, Any]]:
    """Lines of a log that tell of a step; empty where there is none. Others are counted in ``found.problems``."""
    if not shards.exists(path):
        return []
    with shards.open_binary(path) as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    rows, bad = [], 0
    for line in lines:  # one line every few steps: thousands, not millions
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and isinstance(row.get("step"), int | float):
            rows.append(row)
        else:
            bad += 1
    if bad:
        found.problems.append(f"{path}: {bad} unreadable lines")
    return rows


def search(value: Any, word: str) -> Iterator[tuple[str, Any]]:
    """Key and value of everything below a nested dict whose key contains a word.

    >>> list(search({"mlm": {"unigram_loss": 6.5}}, "unigram"))
    [('unigram_loss', 6.5)]
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if word in key:
                yield key, inner
            yield from search(inner, word)
