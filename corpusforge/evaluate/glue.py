"""GLUE: a head on the pretrained encoder, all weights fine-tuned on each task, several seeds, the median reported.

Comes in: a checkpoint's model and tokenizer, folders in GLUE's format. Goes out: per task the median over seeds and the
lowest and highest run (RoBERTa reports the median of five: Liu et al. 2019, section 5.1), and the mean of all tasks.
"""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpusforge.evaluate import metrics
from corpusforge.evaluate.encoded import Encoded, encode
from corpusforge.evaluate.finetune import FineTuning, Tuning, fine_tune, scores
from corpusforge.evaluate.glue_tasks import Examples, read_task
from corpusforge.evaluate.heads import Classifier
from corpusforge.evaluate.likelihood import load_tokenizer
from corpusforge.progress import Progress
from corpusforge.trainer.model import Encoder

LENGTH = 128
"""Tokens of an example (google-research/bert, `run_classifier.py`, max_seq_length)."""


def glue(
    model: Encoder,
    model_folder: Path,
    folders: dict[str, Path],
    how: FineTuning,
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Figures of each task of ``folders`` (`glue_tasks.find_tasks`) and their ``average``."""
    tokenizer = load_tokenizer(model_folder)
    longest = min(how.settings.max_length or LENGTH, model.shape.longest)
    tuning = how.tuning(model.shape.family, "glue")
    found = {}
    for name, folder in folders.items():
        examples = read_task(name, folder)
        rows = how.sample(len(examples.train), name)
        examples = dataclasses.replace(examples, train=examples.train.pick(rows))
        inputs = {"train": encode(tokenizer, examples.train.texts, longest)}
        inputs |= {f"dev{more}": encode(tokenizer, part.texts, longest) for more, part in examples.dev.items()}
        runs = []
        for seed in how.run_seeds():
            tuned = Classifier(copy.deepcopy(model), max(len(examples.classes), 1))
            targets = torch.from_numpy(
                examples.train.labels if examples.classes else examples.train.labels.astype("f4")
            )
            label = f"{name}, seed {seed}"
            fine_tune(
                tuned, inputs["train"], targets, tuning, seed=seed, name=label,
                micro_tokens=batch_tokens, device=device, dtype=dtype, progress=progress,
            )  # fmt: skip
            runs.append({"seed": seed, **_test(tuned, examples, inputs, batch_tokens, dtype)})
        found[name] = _summary(examples, inputs, runs, tuning)
    return {"average": float(np.mean([figures["score"] for figures in found.values()])), "tasks": found}


def _test(
    tuned: Classifier, examples: Examples, inputs: dict[str, Encoded], batch_tokens: int, dtype: torch.dtype | None
) -> dict[str, float]:
    """The figures of one run on the dev files, and ``score``, the mean of the task's main ones."""
    found: dict[str, float] = {}
    for more, part in examples.dev.items():
        said = np.empty((len(part), max(len(examples.classes), 1)), np.float64)
        for rows, some in scores(tuned, inputs[f"dev{more}"], batch_tokens, dtype):
            said[rows] = some.numpy()
        if examples.classes:
            figures = metrics.classification(said.argmax(1), part.labels.astype(np.int64), len(examples.classes))
        else:
            figures = metrics.regression(said[:, 0], part.labels.astype(np.float64))
        found |= {f"{figure}{more}": value for figure, value in figures.items()}
    return {"score": float(np.mean([found[figure] for figure in examples.main]))} | found


def _summary(
    examples: Examples, inputs: dict[str, Encoded], runs: list[dict[str, float]], how: Tuning
) -> dict[str, Any]:
    """Medians over runs, the spread of the score, and what the figures rest on."""
    found: dict[str, Any] = {"majority": majority(examples)} if examples.classes else {}
    parts = {"train": examples.train, **{f"dev{more}": part for more, part in examples.dev.items()}}
    return (
        metrics.medians(runs)
        | found
        | {
            "main": list(examples.main),
            "classes": list(examples.classes),
            "examples": {name: len(part) for name, part in parts.items()},
            "truncated": {name: encoded.truncated for name, encoded in inputs.items()},
            "left_out": sum(part.left_out for part in parts.values()),
            "runs": runs,
            "tuning": dataclasses.asdict(how),
        }
    )


def majority(examples: Examples) -> float:
    """Accuracy, on the first dev file, of always saying the class most training examples have."""
    most = np.bincount(examples.train.labels.astype(np.int64)).argmax()
    return float((next(iter(examples.dev.values())).labels == most).mean())
