"""SQuAD: the pretrained encoder fine-tuned to point at answers, several seeds, the median reported.

Comes in: a checkpoint's model and tokenizer, a folder with train*.json and dev*.json of version 1.1 or 2. Goes out:
exact match and F1, medians over seeds with the lowest and highest run.
"""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpusforge import errors
from corpusforge.evaluate.finetune import FineTuning, fine_tune, scores
from corpusforge.evaluate.heads import SpanExtractor
from corpusforge.evaluate.likelihood import load_tokenizer
from corpusforge.evaluate.metrics import medians
from corpusforge.evaluate.squad_answers import answers, figures
from corpusforge.evaluate.squad_data import Questions, cut_windows, find_files, is_misplaced, read_questions
from corpusforge.instances.masking import Specials
from corpusforge.progress import Progress
from corpusforge.trainer.model import Encoder

LENGTH = 384
"""Tokens of a window (google-research/bert, `run_squad.py`, max_seq_length)."""


def squad(
    model: Encoder,
    model_folder: Path,
    folder: str,
    specials: Specials,
    how: FineTuning,
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Figures on the dev file."""
    train, dev, misplaced = _read(folder, how)
    tokenizer = load_tokenizer(model_folder)
    longest = min(how.settings.max_length or LENGTH, model.shape.longest)
    learn, test = (cut_windows(tokenizer, part, specials.cls, specials.sep, longest) for part in (train, dev))
    tuning = how.tuning(model.shape.family, "squad2" if dev.has_unanswerable else "squad")
    runs = []
    for seed in how.run_seeds():
        tuned = SpanExtractor(copy.deepcopy(model))
        fine_tune(
            tuned, learn.inputs, torch.from_numpy(learn.targets), tuning, seed=seed, name=f"SQuAD, seed {seed}",
            micro_tokens=batch_tokens, device=device, dtype=dtype, progress=progress,
        )  # fmt: skip
        found = figures(
            dev, answers(dev, test, scores(tuned, test.inputs, batch_tokens, dtype)), how.settings.squad_threshold
        )
        runs.append({"seed": seed, "score": found["f1"], **found})
    return medians(runs) | {
        "version": 2 if dev.has_unanswerable else 1,
        "questions": {"train": len(train), "dev": len(dev)},
        "windows": {"train": len(learn), "dev": len(test)},
        "misplaced": misplaced,
        "runs": runs,
        "tuning": dataclasses.asdict(tuning),
    }


def _read(folder: str, how: FineTuning) -> tuple[Questions, Questions, int]:
    """Questions to train and to test on, and how many answers stand elsewhere than they say."""
    files = find_files(folder)
    train, dev = (read_questions(path) for path in files)
    misplaced = is_misplaced(train)
    if misplaced.all():
        what = "no answer stands where answer_start says"
        raise errors.InputUnreadable(str(files[0]), what, "count characters of the context, from 0")
    train = train.pick(np.flatnonzero(~misplaced))
    return train.pick(how.sample(len(train), "squad")), dev, int(misplaced.sum())
