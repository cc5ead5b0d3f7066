"""Training from one call: instances in, checkpoints and a model out.

Writes ``checkpoints/step-NNNNNN/``, ``model/`` (the newest as a Hugging Face directory), ``log.jsonl`` and
``tensorboard/``. The steps are those of `run`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import torch

from corpusforge.progress import Progress, Silent
from corpusforge.sections import Pretrain
from corpusforge.trainer.prepare import output_folder, prepare
from corpusforge.trainer.ranks import Ranks
from corpusforge.trainer.run import Run
from corpusforge.trainer.signals import StopFlag


def pretrain(
    data_folder: str,
    output: str,
    settings: Pretrain,
    *,
    seed: int = 0,
    vocab_folder: str,
    manifest_digest: str,
    recipe: dict[str, Any],
    card: dict[str, Any],
    progress: Progress | None = None,
    resume: bool = False,
    ranks: Ranks | None = None,
    began: float | None = None,
) -> dict[str, Any]:
    """Train, or go on training, and return plain facts of the run (steps, tokens, losses, speed, paths).

    ``manifest_digest`` is the fingerprint of the data; ``recipe`` is stored in checkpoints; ``card`` fills the model
    card (see `export.model_card`); ``ranks``: what `ranks.joined` gives, one process without; ``began``: from when on a
    budget counts, by `time.perf_counter` (None: from now). Raises `Interrupted` (a SystemExit of 143 or 130) when asked
    to stop, behind a checkpoint; `errors.TrainingStopped` when a loss is not finite; and what `prepare` raises.
    """
    began = time.perf_counter() if began is None else began
    folder = output_folder(output, resume=resume)
    ranks = ranks or Ranks()
    job = dataclasses.replace(prepare(data_folder, settings, vocab_folder=vocab_folder, seed=seed), ranks=ranks)
    progress = progress if progress and ranks.is_first else Silent()
    with _threads(settings.threads), StopFlag() as flag:
        run = Run(job, folder, vocab_folder, manifest_digest, recipe, card, progress, flag, began)
        return run.train(resume=resume)


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
