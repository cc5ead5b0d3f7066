"""What a run reports about itself: before its first step, at its end, and in the card of its model.

Nothing here affects training.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusforge.trainer.deviations import deviations
from corpusforge.trainer.heldout import Loss
from corpusforge.trainer.prepare import Job

LISTED_DEVIATIONS = 3
"""If there are more deviations than this, only their number is reported before the first step. Our choice."""


@dataclass(frozen=True)
class Results:
    """The state of a run after some steps. ``last``: its newest log line, empty before the first."""

    steps: int
    tokens: int
    skipped: int  # steps
    last: Mapping[str, Any]
    unigram: float  # entropy of the training tokens
    heldout: Loss | None
    initial: Mapping[str, str]  # the checkpoint the run started from; empty: random weights


def opening_lines(job: Job, *, is_resumed: bool) -> list[str]:
    """What is reported before the first step of a process: the kernel, and for a new run its deviations."""
    lines = [] if is_resumed else deviations(job)
    if len(lines) > LISTED_DEVIATIONS:
        lines = [f"it differs in {len(lines)} points, which a dry run and the model card list"]
    return [f"attention: {job.attention}", *(f"not {job.settings.preset} as published: {line}" for line in lines)]


def card_values(job: Job, results: Results, fingerprint: str) -> dict[str, Any]:
    """What the model card states about the training (see `model_card.model_card`)."""
    last, heldout = results.last, results.heldout
    training = {
        "preset": job.settings.preset,
        "steps": f"{results.steps:,} of {job.plan.steps:,}",
        "tokens read": f"{results.tokens:,}",
        "loss": f"{last['loss']:.4f}" if last else None,
        "MLM loss": f"{last['mlm_loss']:.4f}" if last else None,
        "entropy of the training words (unigram)": f"{results.unigram:.4f}",
        "held-out MLM loss": f"{heldout.loss:.4f}" if heldout else None,
        "the same tokens by word frequencies alone (unigram)": (
            f"{heldout.unigram:.4f}" if heldout and heldout.unigram is not None else None
        ),
        "seed": job.seed,
    }
    if results.initial:
        training["started from"] = f"{Path(results.initial['folder']).name}, weights {results.initial['digest']}"
        training["of its weights"] = results.initial["filled"]
    measured = {name: value for name, value in training.items() if value is not None}
    return {"corpus": fingerprint, "training": measured, "differs": (job.settings.preset, deviations(job))}


def summary(job: Job, results: Results, *, parameters: int, seconds: float, tokens: int) -> dict[str, Any]:
    """The figures that a finished run returns; ``seconds`` and ``tokens``: of this process."""
    last = results.last
    return {
        "steps": results.steps,
        "tokens": results.tokens,
        "skipped_steps": results.skipped,
        "parameters": parameters,
        "loss": last.get("loss"),
        "mlm_loss": last.get("mlm_loss"),
        "mlm_accuracy": last.get("mlm_accuracy"),
        "unigram": results.unigram,
        "heldout": dataclasses.asdict(results.heldout) if results.heldout else None,
        "seconds": seconds,
        "tokens_per_second": tokens / seconds if tokens else last.get("tokens_per_second"),
        "device": str(job.device),
        "precision": "bf16" if job.dtype else "fp32",
        "attention": job.attention,
    }
