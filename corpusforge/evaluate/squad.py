"""SQuAD: the pretrained encoder fine-tuned to point at answers, the median over several seeds reported.

Exact match and F1 are counted as by SQuAD's own scripts (Rajpurkar et al. 2016, section 6.1; version 2:
`evaluate-v2.0.py`). The span of the highest summed score is found exactly, among all spans of at most `LONGEST` tokens,
not among the 20 best starts and ends.
"""

from __future__ import annotations

import copy
import dataclasses
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpusforge import errors
from corpusforge.arrays import F64, I64, Bools
from corpusforge.evaluate.finetune import FineTuning, SpanExtractor, fine_tune, scores
from corpusforge.evaluate.likelihood import load_tokenizer
from corpusforge.evaluate.metrics import medians
from corpusforge.evaluate.squad_data import (
    Questions,
    Windows,
    find_files,
    is_misplaced,
    read_questions,
    split_windows,
)
from corpusforge.instances.masking import Specials
from corpusforge.progress import Progress
from corpusforge.trainer.model import Encoder

LENGTH = 384
"""Tokens of a window (google-research/bert, `run_squad.py`, max_seq_length)."""
LONGEST = 30
"""The most tokens of an answer (google-research/bert, `run_squad.py`, max_answer_length)."""


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
    """Metrics on the dev file."""
    train, dev, misplaced = _read(folder, how)
    tokenizer = load_tokenizer(model_folder)
    longest = min(how.settings.max_length or LENGTH, model.shape.longest)
    train_windows, dev_windows = (
        split_windows(tokenizer, part, specials.cls, specials.sep, longest) for part in (train, dev)
    )
    tuning = how.tuning(model.shape.family, "squad2" if dev.has_unanswerable else "squad")
    runs = []
    for seed in how.run_seeds():
        tuned = SpanExtractor(copy.deepcopy(model))
        fine_tune(
            tuned, train_windows.inputs, torch.from_numpy(train_windows.targets), tuning, seed=seed,
            name=f"SQuAD, seed {seed}", micro_tokens=batch_tokens, device=device, dtype=dtype, progress=progress,
        )  # fmt: skip
        best = answers(dev, dev_windows, scores(tuned, dev_windows.inputs, batch_tokens, dtype))
        values = figures(dev, best, how.settings.squad_threshold)
        runs.append({"seed": seed, "score": values["f1"], **values})
    return medians(runs) | {
        "version": 2 if dev.has_unanswerable else 1,
        "questions": {"train": len(train), "dev": len(dev)},
        "windows": {"train": len(train_windows), "dev": len(dev_windows)},
        "misplaced": misplaced,
        "runs": runs,
        "tuning": dataclasses.asdict(tuning),
    }


def _read(folder: str, how: FineTuning) -> tuple[Questions, Questions, int]:
    """Questions to train and to evaluate on, and how many answers are not where ``answer_start`` says."""
    files = find_files(folder)
    train, dev = (read_questions(path) for path in files)
    misplaced = is_misplaced(train)
    if misplaced.all():
        what = "no answer is where answer_start says"
        raise errors.InputUnreadable(str(files[0]), what, "count characters of the context, from 0")
    train = train.pick(np.flatnonzero(~misplaced))
    return train.pick(how.sample(len(train), "squad")), dev, int(misplaced.sum())


@dataclass(frozen=True)
class Answers:
    """One entry per question. ``null``: score of "no answer" minus that of the text."""

    texts: list[str]
    null: F64


def best_spans(scores: Tensor, front: I64, count: I64) -> tuple[I64, I64, F64]:
    """First token, last token (positions in the input) and score of the best span of each window.

    ``scores`` [B, T, 2]; only tokens ``front`` to ``front + count`` belong to the passage.
    """
    B, T, _ = scores.shape
    positions = torch.arange(T)
    begin, end = torch.from_numpy(front)[:, None], torch.from_numpy(front + count)[:, None]
    is_passage = (positions >= begin) & (positions < end)
    first, last = (scores[..., k].double().masked_fill(~is_passage, -torch.inf) for k in (0, 1))
    best = torch.full((B,), -torch.inf, dtype=torch.float64)
    chosen = torch.zeros((B, 2), dtype=torch.int64)
    for more in range(min(LONGEST, T)):  # spans of one token, of two, ...
        highest, at = (first[:, : T - more] + last[:, more:]).max(1)
        better = highest > best
        best = torch.where(better, highest, best)
        chosen = torch.where(better[:, None], torch.stack([at, at + more], 1), chosen)
    return chosen[:, 0].numpy(), chosen[:, 1].numpy(), best.numpy()


def answers(questions: Questions, windows: Windows, scored: Sequence[tuple[I64, Tensor]]) -> Answers:
    """The best answer of each question over all its windows; ``scored``: rows of windows and their scores."""
    W = len(windows)
    first, last = np.zeros(W, np.int64), np.zeros(W, np.int64)
    best, null = np.full(W, -np.inf), np.zeros(W)
    for rows, batch in scored:
        first[rows], last[rows], best[rows] = best_spans(batch, windows.front[rows], windows.count[rows])
        null[rows] = batch[:, 0].double().sum(-1).numpy()
    order = np.lexsort((-best, windows.question))
    _, at = np.unique(windows.question[order], return_index=True)
    winner = order[at]  # the window of each question with the best span
    lowest = np.full(len(questions), np.inf)
    np.minimum.at(lowest, windows.question, null)  # a passage has no answer if none of its windows has one
    shift = windows.offsets[winner] - windows.front[winner]
    has_span = np.isfinite(best[winner])  # else the passage has no tokens, and the answer is empty
    begin = windows.begins[np.where(has_span, first[winner] + shift, -1)]
    end = windows.ends[np.where(has_span, last[winner] + shift, -1)]
    texts = [
        questions.passages[passage][b:e].strip()
        for passage, b, e in zip(questions.passage.tolist(), begin.tolist(), end.tolist(), strict=True)
    ]
    return Answers(texts, lowest - np.where(has_span, best[winner], 0.0))


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Lowercase, without punctuation, articles and repeated spaces, as SQuAD compares answers.

    >>> normalize("The  U.S. (an  Army)")
    'us army'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_and_f1(answer: str, right: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 over words of an answer against the best of the right ones (none: the empty answer is right).

    >>> exact_and_f1("the red house", ["house", "a red barn"])
    (0.0, 0.6666666666666666)
    """
    normalized = normalize(answer)
    references = [text for text in map(normalize, right) if text] or [""]
    f1 = max(_f1(normalized.split(), reference.split()) for reference in references)
    return float(normalized in references), f1


def _f1(words: list[str], right: list[str]) -> float:
    if not words or not right:
        return float(words == right)
    common = sum((Counter(words) & Counter(right)).values())
    return 2 * common / (len(words) + len(right))


def figures(questions: Questions, given: Answers, threshold: float) -> dict[str, float]:
    """``exact``, ``f1``; for version 2 also by kind of question, and at the best threshold."""
    pairs = [exact_and_f1(text, right) for text, right in zip(given.texts, questions.answers, strict=True)]
    exact, f1 = np.array(pairs, np.float64).T
    if not questions.has_unanswerable:
        return {"exact": float(exact.mean()), "f1": float(f1.mean())}
    has_answer = np.array([bool(right) for right in questions.answers])
    is_null = given.null > threshold
    values = {}
    for name, raw in (("exact", exact), ("f1", f1)):
        counted = np.where(is_null, ~has_answer, raw)
        values[name] = float(counted.mean())
        if has_answer.any():
            values[f"{name}_answerable"] = float(counted[has_answer].mean())
        values["no_answer"] = float(is_null[~has_answer].mean())
        values[f"best_{name}"], values[f"best_{name}_threshold"] = best_threshold(raw, given.null, has_answer)
    return values


def best_threshold(raw: F64, null: F64, has_answer: Bools) -> tuple[float, float]:
    """The highest mean over all thresholds, and that threshold: questions with ``null`` up to it are answered."""
    order = np.argsort(null, kind="stable")
    gain = np.where(has_answer, raw, raw - 1)[order]
    totals = (~has_answer).sum() + np.append(0.0, np.cumsum(gain))  # with no question answered, one, two, ...
    between = np.diff(null[order]) > 0  # a threshold cannot lie between equal scores
    totals[1:-1][~between] = -np.inf
    answered = int(totals.argmax())
    threshold = null[order][answered - 1] if answered else null.min() - 1
    return float(totals[answered] / len(raw)), float(threshold)
