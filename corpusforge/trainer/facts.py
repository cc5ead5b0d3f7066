"""What a run says of itself when it is over, and in the card of its model.

Comes in: a run in progress. Goes out: plain values. Nothing here decides anything about training.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge.trainer import checkpoint
from corpusforge.trainer.deviations import deviations

if TYPE_CHECKING:
    from corpusforge.trainer.run import Run


TOLD_ONE_BY_ONE = 3
"""More differences than these are counted before the first step, and told by the plan and the card. Ours."""


def first_lines(run: Run) -> list[str]:
    """What is said before the first step, or the first of this process: the kernel, and where a preset is not kept."""
    differs = [] if run.done else deviations(run.job)
    if len(differs) > TOLD_ONE_BY_ONE:
        differs = [f"it differs in {len(differs)} points, which --dry-run and the model card list"]
    return [f"attention: {run.job.attention}", *(f"not {run.job.settings.preset} as published: {d}" for d in differs)]


def of_card(run: Run) -> dict[str, Any]:
    """What the model card says of the training."""
    training = {
        "preset": run.job.settings.preset,
        "steps": f"{run.done:,} of {run.job.course.steps:,}",
        "tokens read": f"{run.tokens:,}",
        "loss": f"{run.last['loss']:.4f}" if run.last else None,
        "MLM loss": f"{run.last['mlm_loss']:.4f}" if run.last else None,
        "entropy of the training words (unigram)": f"{run.line:.4f}",
        "held-out MLM loss": _four(run.heldout.loss) if run.heldout else None,
        "the same tokens by word frequencies alone (unigram)": _four(run.heldout.unigram) if run.heldout else None,
        "seed": run.job.seed,
    }
    if run.initial:
        training["began from"] = f"{Path(run.initial['folder']).name}, weights {run.initial['digest']}"
        training["of its weights"] = run.initial["filled"]
    told = {k: v for k, v in training.items() if v is not None}
    differs = deviations(run.job)
    return {"corpus": run.fingerprint, "training": told, "differs": (run.job.settings.preset, differs)}


def _four(loss: float | None) -> str | None:
    return None if loss is None else f"{loss:.4f}"


def of_run(run: Run, seconds: float, tokens: int) -> dict[str, Any]:
    """What the caller is told; ``seconds`` and ``tokens``: of this process."""
    heldout = dataclasses.asdict(run.heldout) if run.heldout else None
    best = checkpoint.best_of(checkpoint.all_folders(run.output))
    return {
        "steps": run.done,
        "tokens": run.tokens,
        "skipped_steps": len(run.spikes.skipped) if run.spikes else 0,
        "parameters": sum(weight.numel() for weight in run.model.parameters()),
        "loss": run.last.get("loss"),
        "mlm_loss": run.last.get("mlm_loss"),
        "mlm_accuracy": run.last.get("mlm_accuracy"),
        "unigram": run.line,
        "heldout": heldout,
        "best_checkpoint": str(best) if best else None,
        "seconds": seconds,
        "tokens_per_second": tokens / seconds if tokens else run.last.get("tokens_per_second"),
        "device": str(run.job.device),
        "precision": "bf16" if run.job.dtype else "fp32",
        "attention": run.job.attention,
        "model": str(run.output / "model"),
        "checkpoint": str(run.newest),
        "log": str(run.output / "log.jsonl"),
    }
