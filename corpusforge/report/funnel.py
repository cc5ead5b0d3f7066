"""The funnel: how many documents and how much text each stage let through.

Comes in: manifests by stage name. Goes out: one `Step` for each place where documents were counted. The report and the
summary at the end of a run draw the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpusforge.shards import Manifest


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
    """The steps that can be told from the manifests, in the order of the line.

    What a stage reads is left out where the stage before it already said so.
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
    """The funnel inside the stage clean: what was read, then each pack and test; [] where none is told.

    ``order``: names of the steps as they ran (`step_order`), since statistics keep them sorted by name.

    >>> left = {"fineweb": {"documents": 1, "text_bytes": 9}, "gopher": {"documents": 2, "text_bytes": 20}}
    >>> counts = {"documents_in": 4, "text_bytes_in": 40, "steps": left}
    >>> [(step.name, step.documents, step.dropped) for step in steps_of(counts, ["gopher", "fineweb"])]
    [('documents read', 4, 0.0), ('gopher', 2, 0.5), ('fineweb', 1, 0.5)]
    """
    told = statistics.get("steps") or {}
    names = [name for name in order if name in told]
    if not names:
        return []
    found = [CleaningStep("documents read", statistics["documents_in"], statistics["text_bytes_in"], 0.0)]
    for name in names:
        left, came = told[name], found[-1].documents
        lost = 1 - left["documents"] / came if came else 0.0
        found.append(CleaningStep(name, left["documents"], left["text_bytes"], lost))
    return found


def step_order(manifest: Manifest) -> list[str]:
    """Names of the steps of a cleaning run, as they ran."""
    return [step["step"] for step in manifest.recipe.get("steps", [])]
