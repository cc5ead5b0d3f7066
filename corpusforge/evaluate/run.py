"""Evaluation of a checkpoint: tasks in, one dictionary of figures and a table for people out.

A checkpoint is any Hugging Face directory that pretrain wrote: ``model/``, a folder below ``checkpoints/``, or the
run's own folder, which stands for its ``model/``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from corpusforge import errors, shards
from corpusforge.evaluate.blimp import blimp, read_pairs
from corpusforge.evaluate.mlm import heldout_loss
from corpusforge.instances.masking import Masker, MaskSettings
from corpusforge.progress import Progress, Silent
from corpusforge.trainer.corpus import open_corpus
from corpusforge.trainer.export import load_model
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.prepare import choose_device, choose_dtype, load_specials

TASKS = ("mlm", "blimp")


@dataclass(frozen=True)
class Settings:
    """How to evaluate; fields named as in the recipe's [evaluate] mean what they mean there."""

    blimp_data: str = ""
    blimp_pairs: int = 100
    batch_tokens: int = 16_384
    device: str = "auto"
    precision: str = "fp32"  # bf16 is faster on a GPU and moves pseudo-log-likelihoods
    threads: int = 0
    seed: int = 0  # of the masks, where the held-out instances have none stored
    masking: MaskSettings = field(default_factory=MaskSettings)


def find_model(path: str) -> Path:
    """The Hugging Face directory that ``path`` means.

    Raises `errors.InputMissing`.
    """
    for folder in (Path(path), Path(path) / "model"):
        if (folder / "config.json").is_file():
            return folder
    mend = "name a folder that pretrain wrote: the run, its model/, or one of its checkpoints/"
    raise errors.InputMissing(path, "no model in it", mend)


def evaluate(
    checkpoint: str,
    tasks: Sequence[str],
    settings: Settings,
    *,
    heldout_paths: Sequence[str] = (),
    train_paths: Sequence[str] = (),
    output: str = "",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run ``tasks`` and return ``{"checkpoint", "tasks": {task: figures}}``; written to ``output`` (JSON) if named.

    ``heldout_paths`` and ``train_paths`` are INSTANCES shards (mlm). Raises `errors.RecipeInvalid` for an unknown
    task, and what the tasks raise.
    """
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not tasks:
        what = f"unknown task '{unknown[0]}'" if unknown else "no task"
        raise errors.RecipeInvalid("evaluate.tasks", what, f"tasks: {', '.join(TASKS)}")
    if settings.threads:
        torch.set_num_threads(settings.threads)
    shown, folder = progress or Silent(), find_model(checkpoint)
    pairs = read_pairs(settings.blimp_data, settings.blimp_pairs) if "blimp" in tasks else []
    device = choose_device(settings.device)
    dtype = choose_dtype(settings.precision, device)
    model = load_model(folder).to(device)
    found: dict[str, Any] = {}
    for task in dict.fromkeys(tasks):
        if task == "mlm":
            found[task] = _mlm(model, folder, settings, heldout_paths, train_paths, device, dtype)
        else:
            mask_id = load_specials(str(folder)).mask
            budget = settings.batch_tokens
            found[task] = blimp(
                model, folder, mask_id, pairs, batch_tokens=budget, device=device, dtype=dtype, progress=shown
            )
    result = {"checkpoint": str(folder), "tasks": found}
    if output:
        shards.write_json(output, result)
    return result


def _mlm(
    model: Encoder,
    folder: Path,
    settings: Settings,
    heldout_paths: Sequence[str],
    train_paths: Sequence[str],
    device: torch.device,
    dtype: torch.dtype | None,
) -> dict[str, Any]:
    if not heldout_paths:
        mend = "build instances with instances.heldout above 0"
        raise errors.InputMissing("heldout", "no held-out instances to take the MLM loss on", mend)
    specials = load_specials(str(folder))
    if specials.size != model.shape.vocabulary:
        what = f"its tokenizer has {specials.size} entries, its model {model.shape.vocabulary}"
        raise errors.StageMismatch(str(folder), what, "name a checkpoint that pretrain wrote")
    return heldout_loss(
        model,
        open_corpus(heldout_paths),
        open_corpus(train_paths) if train_paths else None,
        specials,
        Masker(specials, settings.masking, settings.seed),
        batch_tokens=settings.batch_tokens,
        device=device,
        dtype=dtype,
    )


def table(result: dict[str, Any]) -> str:
    """The figures as lines of text.

    >>> print(table({"checkpoint": "run/model", "tasks": {"mlm": {"loss": 2.5, "masked": 10, "pair_loss": None}}}))
    run/model
      mlm   loss                        2.5000
      mlm   masked                          10
    """
    lines = [result["checkpoint"]]
    for task, figures in result["tasks"].items():
        flat = {k: v for k, v in figures.items() if not isinstance(v, dict) and v is not None}
        flat |= {f"  {term}": value for term, value in figures.get("phenomena", {}).items()}
        for name, value in flat.items():
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            lines.append(f"  {task:<5} {name:<22} {shown:>11}")
    return "\n".join(lines)
