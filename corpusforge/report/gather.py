"""Read everything that reports show of a run or of one stage, and the funnel: what each stage kept.

What is missing stays empty. Damaged files are named in ``Run.problems`` and left out, because the report of an
unfinished or broken run is the one that matters most.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
"""Stages in pipeline order, and their folders (the same in every run)."""


@dataclass
class Run:
    """What is in the folder of a run, or of one stage (``alone`` names it then, and is "" otherwise).

    ``timings``: ``timing.json`` by stage; ``log``: lines of ``log.jsonl``; ``problems``: sentences for the reader.
    """

    folder: str
    manifests: dict[str, Manifest] = field(default_factory=dict)
    timings: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    evaluation: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    alone: str = ""

    def path(self, stage: str) -> str:
        """The folder of a stage."""
        return self.folder if stage == self.alone else shards.join(self.folder, FOLDERS[stage])

    def statistics(self, stage: str) -> dict[str, Any]:
        """The statistics of a stage; empty if it has not run."""
        return self.manifests[stage].statistics if stage in self.manifests else {}

    def last_figures(self) -> dict[str, Any]:
        """The last value of every figure in the training log."""
        return {key: value for line in self.log for key, value in line.items() if value is not None}


def gather(run_dir: str) -> Run:
    """Read the folder of a run or of a stage. Raises `errors.InputMissing` if it holds neither."""
    run = Run(str(run_dir).rstrip("/"))
    if not shards.exists(run.folder):
        raise errors.InputMissing(run.folder, "no such folder", "check the path")
    run.alone = _stage_in(run)
    for stage in [run.alone] if run.alone else FOLDERS:
        _read_stage(run, stage)
    if run.alone in ("", "pretrain"):
        run.log = read_log(run, shards.join(run.path("pretrain"), "log.jsonl"))
    evaluation = {}
    if run.alone in ("", "evaluate"):
        evaluation = _read_json(run, shards.join(run.path("evaluate"), "evaluation.json"))
    run.evaluation = evaluation if isinstance(evaluation, dict) else {}
    if not (run.manifests or run.log or run.evaluation):
        mend = "name the folder that corpusforge run wrote (runs/NAME)"
        raise errors.InputMissing(run.folder, "; ".join(run.problems) or "holds no finished stage", mend)
    return run


def _stage_in(run: Run) -> str:
    """The stage whose folder this is; "" for the folder of a run, which contains the folders of its stages."""
    for name in (shards.MANIFEST, "run.json"):
        about = _read_json(run, shards.join(run.folder, name))
        if isinstance(about, dict) and about.get("stage") in FOLDERS:
            return str(about["stage"])
    return ""


def _read_stage(run: Run, stage: str) -> None:
    folder = run.path(stage)
    timing = _read_json(run, shards.join(folder, "timing.json"))
    if isinstance(timing, dict):
        run.timings[stage] = timing
    if not shards.exists(shards.join(folder, shards.MANIFEST)):
        if shards.exists(folder):
            run.problems.append(f"{stage}: begun, not finished (no manifest in {folder})")
        return
    try:
        run.manifests[stage] = Manifest.load(folder)
    except errors.ManifestInvalid as error:
        run.problems.append(str(error))


def _read_json(run: Run, path: str) -> Any:
    if not shards.exists(path):
        return None
    try:
        return shards.read_json(path)
    except ValueError as error:
        run.problems.append(f"{path}: {error}")
        return None


def read_log(run: Run, path: str) -> list[dict[str, Any]]:
    """The lines of a training log that name a step; the number of other lines goes into ``run.problems``."""
    if not shards.exists(path):
        return []
    with shards.open_binary(path) as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    rows, unreadable = [], 0
    for line in lines:  # one line every few steps: thousands, not millions
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and isinstance(row.get("step"), int | float):
            rows.append(row)
        else:
            unreadable += 1
    if unreadable:
        run.problems.append(f"{path}: {unreadable} unreadable lines")
    return rows


def search(value: Any, word: str) -> Iterator[tuple[str, Any]]:
    """Yield each key that contains a word, with its value, at any depth of a nested dict.

    >>> list(search({"mlm": {"unigram_loss": 6.5}}, "unigram"))
    [('unigram_loss', 6.5)]
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if word in key:
                yield key, inner
            yield from search(inner, word)


def rows_by_id(folder: str, manifest: Manifest, table: str, ids: set[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of these documents in a table of a stage, by the id of their document."""
    column = "id" if table == "documents" else "document"
    rows: dict[str, list[dict[str, Any]]] = {}
    value_set = pa.array(sorted(ids), pa.string())
    for path in manifest.paths(folder, table) if ids else []:
        for batch in shards.read_shard(path):
            hits = batch.filter(pc.is_in(batch.column(column), value_set=value_set))
            for row in hits.to_pylist() if hits.num_rows else []:
                rows.setdefault(row[column], []).append(row)
    return rows


@dataclass(frozen=True)
class Step:
    """The documents at one point of the pipeline. ``text_bytes``: of UTF-8 text; for raw records, as stored."""

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
        is_counted = steps and steps[-1].stage != stage and steps[-1].documents == step.documents
        if not is_counted:
            steps.append(step)
    return steps


def share(step: Step, first: Step) -> float:
    """Documents of a step as a share of those of another; 0 if the other has none.

    >>> share(Step("b", 1, 10, "clean"), Step("a", 4, 40, "clean"))
    0.25
    """
    return step.documents / first.documents if first.documents else 0.0


@dataclass(frozen=True)
class CleaningStep:
    """What a step of cleaning left. ``dropped``: share of its input documents; 0 for the first entry."""

    name: str
    documents: int
    text_bytes: int
    dropped: float


def steps_of(statistics: Mapping[str, Any], order: Sequence[str]) -> list[CleaningStep]:
    """The funnel inside the stage clean: documents read, then what each pack and test left; [] if not recorded.

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
    steps = [CleaningStep("documents read", statistics["documents_in"], statistics["text_bytes_in"], 0.0)]
    for name in names:
        left, before = recorded[name], steps[-1].documents
        dropped = 1 - left["documents"] / before if before else 0.0
        steps.append(CleaningStep(name, left["documents"], left["text_bytes"], dropped))
    return steps


def step_order(manifest: Manifest) -> list[str]:
    """Names of the steps of a cleaning run, as they ran."""
    return [step["step"] for step in manifest.recipe.get("steps", [])]
