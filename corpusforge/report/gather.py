"""Read everything that reports show of a run or of one stage, and the funnel: what each stage kept.

Missing files stay empty. Damaged ones are named in ``Found.problems`` and left out, because the report of an
unfinished or broken run is the one that matters most.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
    """Read the folder of a run or of a stage. Raises `errors.InputMissing` if nothing of either is in it."""
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
    """The lines of a training log that belong to a step; others are counted in ``found.problems``."""
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


@dataclass(frozen=True)
class Step:
    """What was there at one point of the line. ``text_bytes``: of text in UTF-8; for raw records, as stored."""

    label: str
    documents: int
    text_bytes: int
    stage: str


_STEPS = (
    ("clean", "raw records", "records_in", "raw_bytes_in"),
    ("clean", "documents read", "documents_in", "text_bytes_in"),
    ("clean", "cleaned", "documents_out", "text_bytes_out"),
    ("dedupe", "before deduplication", "documents_in", "text_bytes_in"),
    ("dedupe", "deduplicated", "documents_out", "text_bytes_out"),
)


def funnel(manifests: Mapping[str, Manifest]) -> list[Step]:
    """The steps that the manifests record, in pipeline order.

    A stage's input is omitted if the stage before it already counted it.
    """
    steps: list[Step] = []
    for stage, label, documents, size in _STEPS:
        statistics: Mapping[str, Any] = manifests[stage].statistics if stage in manifests else {}
        if documents not in statistics:
            continue
        step = Step(label, int(statistics[documents]), int(statistics.get(size, 0)), stage)
        same = steps and steps[-1].stage != stage and steps[-1].documents == step.documents
        if not same:
            steps.append(step)
    return steps


def share(step: Step, first: Step) -> float:
    """Documents of a step as a share of another's; 0 where there were none.

    >>> share(Step("b", 1, 10, "clean"), Step("a", 4, 40, "clean"))
    0.25
    """
    return step.documents / first.documents if first.documents else 0.0


@dataclass(frozen=True)
class CleaningStep:
    """What a step of cleaning left. ``dropped``: share of the documents that came to it; 0 for the first entry."""

    name: str
    documents: int
    text_bytes: int
    dropped: float


def steps_of(statistics: Mapping[str, Any], order: Sequence[str]) -> list[CleaningStep]:
    """The funnel inside the stage clean: documents read, then each pack and test; [] if none is recorded.

    ``order``: names of the steps as they ran (`step_order`), since statistics keep them sorted by name.

    >>> left = {"fineweb": {"documents": 1, "text_bytes": 9}, "gopher": {"documents": 2, "text_bytes": 20}}
    >>> counts = {"documents_in": 4, "text_bytes_in": 40, "steps": left}
    >>> [(step.name, step.documents, step.dropped) for step in steps_of(counts, ["gopher", "fineweb"])]
    [('documents read', 4, 0.0), ('gopher', 2, 0.5), ('fineweb', 1, 0.5)]
    """
    recorded = statistics.get("steps") or {}
    names = [name for name in order if name in recorded]
    if not names:
        return []
    found = [CleaningStep("documents read", statistics["documents_in"], statistics["text_bytes_in"], 0.0)]
    for name in names:
        left, came = recorded[name], found[-1].documents
        lost = 1 - left["documents"] / came if came else 0.0
        found.append(CleaningStep(name, left["documents"], left["text_bytes"], lost))
    return found


def step_order(manifest: Manifest) -> list[str]:
    """Names of the steps of a cleaning run, as they ran."""
    return [step["step"] for step in manifest.recipe.get("steps", [])]
