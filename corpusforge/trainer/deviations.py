"""Where a run differs from the paper its preset is named after, one short line for each difference.

A preset promises a published recipe, so every run reports every deviation: settings the user changed, the data, and
what this trainer always does differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from corpusforge.sections.presets import Preset
from corpusforge.trainer.prepare import Job
from corpusforge.trainer.training_plan import TrainingPlan


@dataclass(frozen=True)
class Published:
    """What a paper's model was trained on, and by which optimizer."""

    corpus: str
    format: str
    masking: str
    vocabulary: int
    length: int = 512
    optimizer: str = "adamw"


_BERT = Published("BooksCorpus and Wikipedia", "segment-pair", "duplicated", 30_522, optimizer="bert-adam")
PUBLISHED = {
    "Devlin et al. 2019": _BERT,
    "Turc et al. 2019": _BERT,
    "Liu et al. 2019": Published(
        "BooksCorpus, Wikipedia, CC-News, OpenWebText and Stories", "full-sentences", "dynamic", 50_265
    ),
    "Lan et al. 2020": Published("BooksCorpus and Wikipedia", "sop", "duplicated", 30_000, optimizer="lamb"),
    "Joshi et al. 2020": Published("BooksCorpus and Wikipedia", "doc-sentences", "dynamic", 28_996),
}
"""BERT: appendix A.2 and google-research/bert create_pretraining_data.py (masks of 10 copies are stored); its uncased
vocabulary. RoBERTa: sections 3.2, 4.1, 4.2 ("we use FULL-SENTENCES in the remainder") and 4.4. ALBERT: section 4.1, and
google-research/albert create_pretraining_data.py (masks are stored). SpanBERT: section 4.2 (BERT's cased vocabulary,
other masks each epoch, text of one document)."""


def deviations(job: Job) -> list[str]:
    """One line for each difference between a run and its preset's paper."""
    preset = job.plan.preset
    lines = [f"no such model was published; the training is that of {preset.paper}"] if preset.is_own else []
    return [*lines, *preset.notes, *_of_data(job, preset), *_of_plan(job, job.plan, preset)]


def _of_data(job: Job, preset: Preset) -> Iterator[str]:
    paper = PUBLISHED[preset.paper]
    yield f"reads this corpus (paper: {paper.corpus})"
    if job.specials.size != paper.vocabulary:
        yield f"vocabulary of {job.specials.size:,} (paper: {paper.vocabulary:,})"
    for key, published in (("format", paper.format), ("masking", paper.masking), ("length", paper.length)):
        ours = job.instances.get(key, published)
        if ours != published:
            yield f"{key} {ours} (paper: {published})"
    if job.masker.settings.unit != preset.mask_unit:
        yield f"mask unit {job.masker.settings.unit} (paper: {preset.mask_unit})"
    first, last = job.plan.mask_rates
    if first != last or first != 0.15:
        yield f"masks {first:.0%}{f' to {last:.0%}' if first != last else ''} of the tokens (paper: 15%)"


def _of_plan(job: Job, plan: TrainingPlan, preset: Preset) -> Iterator[str]:
    if job.init:
        yield f"starts from {job.init.folder.name} (paper: from random weights)"
    yield "a step is a number of tokens, whatever the lengths of its sequences (paper: of sequences)"
    warmup = round(preset.warmup_share * preset.steps)
    numbers: list[tuple[str, Any, Any]] = [
        ("steps", plan.steps, preset.steps),
        ("warm-up steps", plan.warmup_steps, warmup),
        ("optimizer", plan.optimizer, PUBLISHED[preset.paper].optimizer),
        ("learning rate", plan.learning_rate, preset.learning_rate),
        ("decay", plan.decay, "linear"),
        ("dropout", plan.dropout, preset.dropout),
    ]
    for name, ours, published in numbers:
        if ours != published:
            yield f"{name} {_shown(ours)} (paper: {_shown(published)})"
    if job.settings.budget:
        yield f"as many steps as fit into {job.settings.budget} (paper: {preset.steps:,})"
    for part in plan.parts:
        if part.batch_tokens != preset.batch_sequences * part.length:
            paper = f"{preset.batch_sequences:,} sequences"
            yield f"{part.batch_tokens:,} tokens a step at length {part.length} (paper: {paper})"
    short = plan.parts[0].stop / plan.steps if len(plan.parts) > 1 else 0.0
    if round(short, 3) != preset.short_share:
        ours = f"{short:.0%} of the steps at length {plan.parts[0].length}" if short else "one length throughout"
        yield f"{ours} (paper: {preset.short_share:.0%} of the steps at 128)"
    elif short:
        yield "the short part reads parts of the same instances (paper: instances built for it)"


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
