"""Evaluation of a checkpoint: tasks in, one dictionary of figures and a table for people out.

A checkpoint is any Hugging Face directory that pretrain wrote: ``model/``, a folder below ``checkpoints/``, or the
run's own folder, which stands for its ``model/``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from corpusforge import errors, shards
from corpusforge.evaluate.blimp import blimp, read_pairs
from corpusforge.evaluate.mlm import heldout_loss
from corpusforge.loader.corpus import Corpus, open_table
from corpusforge.loader.folder import load_specials
from corpusforge.progress import Progress
from corpusforge.trainer.export import load_model
from corpusforge.trainer.prepare import choose_device, choose_dtype

TASKS = ("mlm", "blimp")


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
    *,
    data_folder: str | None = None,
    blimp_data: str = "",
    blimp_pairs: int = 100,
    batch_tokens: int = 16_384,
    device: str = "auto",
    precision: str = "fp32",
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run ``tasks`` and return ``{"checkpoint", "tasks": {task: figures}}``.

    ``data_folder``: of build-instances (mlm); ``blimp_pairs``: of each paradigm, 0 for all; ``precision``: bf16 is
    faster on a GPU and moves scores in the third digit. Raises `errors.RecipeInvalid` for an unknown task, and what
    the tasks raise.
    """
    _check_tasks(tasks)
    if threads:
        torch.set_num_threads(threads)
    folder, place = find_model(checkpoint), choose_device(device)
    dtype = choose_dtype(precision, place)
    pairs = read_pairs(blimp_data, blimp_pairs) if "blimp" in tasks else []
    model, specials = load_model(folder).to(place), load_specials(str(folder))
    _check_fit(str(folder), specials.size, model.shape.vocabulary)
    found: dict[str, Any] = {}
    if "mlm" in tasks:
        heldout, train = _instances(data_folder)
        found["mlm"] = heldout_loss(
            model, heldout, train, specials, batch_tokens=batch_tokens, device=place, dtype=dtype
        )
    if "blimp" in tasks:
        run = partial(blimp, batch_tokens=batch_tokens, device=place, dtype=dtype)
        found["blimp"] = run(model, folder, specials.mask, pairs, progress=progress)
    return {"checkpoint": str(folder), "tasks": found}


def _check_tasks(tasks: Sequence[str]) -> None:
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not tasks:
        what = f"unknown task '{unknown[0]}'" if unknown else "no task"
        raise errors.RecipeInvalid("evaluate.tasks", what, f"tasks: {', '.join(TASKS)}")


def _check_fit(folder: str, entries: int, embedded: int) -> None:
    if entries != embedded:
        what = f"its tokenizer has {entries} entries, its model {embedded}"
        raise errors.StageMismatch(folder, what, "name a checkpoint that pretrain wrote")


def _instances(data_folder: str | None) -> tuple[Corpus, Corpus | None]:
    """The held-out instances and the training instances of a build-instances folder."""
    mend = "name a folder that build-instances wrote, with instances.heldout above 0"
    if not data_folder:
        raise errors.InputMissing("instances", "the task mlm needs instances that were held out", mend)
    manifest = shards.Manifest.load(data_folder)
    if not manifest.rows.get("heldout"):
        raise errors.InputMissing(data_folder, "no instance of it is held out", mend)
    heldout = open_table(data_folder, manifest, "heldout")
    train = open_table(data_folder, manifest, "train") if manifest.rows.get("train") else None
    return heldout, train


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
