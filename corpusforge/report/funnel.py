"""The funnel: how many documents and how much text each stage let through.

Comes in: manifests by stage name. Goes out: one `Step` for each place where documents were counted. The report and the
summary at the end of a run draw the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping
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
