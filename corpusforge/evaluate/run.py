"""Evaluation of a checkpoint: runs tasks and returns one dictionary of results, described in `docs/evaluation.md`.

A checkpoint is any Hugging Face directory that pretrain wrote: ``model/``, a folder below ``checkpoints/``, or the
run's own folder, which stands for its ``model/``; or another author's that `trainer.hf_folder` can load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from corpusforge import errors, shards
from corpusforge.evaluate.blimp import blimp, read_pairs
from corpusforge.evaluate.finetune import FineTuning
from corpusforge.evaluate.glue import find_tasks, glue
from corpusforge.evaluate.mlm import heldout_loss
from corpusforge.evaluate.squad import squad
from corpusforge.instances.masking import Specials
from corpusforge.loader.batcher import load_specials
from corpusforge.loader.corpus import Corpus, open_table
from corpusforge.progress import Progress
from corpusforge.sections import TASKS, Evaluate
from corpusforge.trainer.hf_folder import load_model, model_folder
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.prepare import choose_device, choose_dtype


def find_model(path: str) -> Path:
    """The Hugging Face directory that ``path`` stands for.

    Raises `errors.InputMissing`.
    """
    folder = model_folder(path)
    if folder is None:
        mend = "name a folder that pretrain wrote: the run, its model/, or one of its checkpoints/"
        raise errors.InputMissing(path, "no model in it", mend)
    return folder


def evaluate(
    checkpoint: str,
    settings: Evaluate,
    data: str | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    precision: str = "fp32",
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run the tasks of ``settings`` and return ``{"checkpoint", "tasks": {task: figures}}``.

    ``data``: a folder of build-instances (mlm); ``seed``: of the first fine-tuning; ``precision``: of mlm and blimp;
    bf16 is faster on a GPU and changes scores in the third digit (fine-tuning uses it on a GPU that has it). Raises
    `errors.RecipeInvalid` for an unknown task, and what the tasks raise.
    """
    tasks = settings.tasks
    _check_tasks(tasks)
    if threads:
        torch.set_num_threads(threads)
    folder, target = find_model(checkpoint), choose_device(device)
    pairs = read_pairs(settings.blimp_data, settings.blimp_pairs) if "blimp" in tasks else []
    folders = find_tasks(settings.glue_data, settings.glue_tasks) if "glue" in tasks else {}
    model, specials = _load(folder, target)
    common: dict[str, Any] = {"batch_tokens": settings.batch_tokens, "device": target, "progress": progress}
    exact, fast = choose_dtype(precision, target), choose_dtype("auto", target)
    how = FineTuning(settings, seed)
    run: dict[str, Callable[[], dict[str, Any]]] = {
        "mlm": lambda: heldout_loss(model, *_instances(data), specials, dtype=exact, **common),
        "blimp": lambda: blimp(model, folder, specials.mask, pairs, dtype=exact, **common),
        "glue": lambda: glue(model, folder, folders, how, dtype=fast, **common),
        "squad": lambda: squad(model, folder, settings.squad_data, specials, how, dtype=fast, **common),
    }
    return {"checkpoint": str(folder), "tasks": {task: run[task]() for task in TASKS if task in tasks}}


def _check_tasks(tasks: Sequence[str]) -> None:
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not tasks:
        what = f"unknown task '{unknown[0]}'" if unknown else "no task"
        raise errors.RecipeInvalid("evaluate.tasks", what, f"tasks: {', '.join(TASKS)}")


def _load(folder: Path, device: torch.device) -> tuple[Encoder, Specials]:
    """The model on its device, and the special ids of its tokenizer, which must match."""
    model, specials = load_model(folder).to(device), load_specials(str(folder))
    if specials.size > model.shape.vocabulary:  # fewer is usual: tables are padded for speed
        what = f"its tokenizer has {specials.size} entries, its model {model.shape.vocabulary}"
        raise errors.StageMismatch(str(folder), what, "name a checkpoint that pretrain wrote")
    return model, specials


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
