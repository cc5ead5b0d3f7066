"""Answers out of scores, and how right they are.

Comes in: for each window the scores of being first and last token. Goes out: the best answer of each question with how
much likelier "no answer" is, and exact match and F1 as SQuAD's own scripts count them (Rajpurkar et al. 2016, section
6.1; version 2: `evaluate-v2.0.py`). The span of the highest summed score is found exactly, among all spans of at most
`LONGEST` tokens, not among the 20 best starts and ends.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from corpusforge.arrays import F64, I64, Bools
from corpusforge.evaluate.squad_data import Questions, Windows

LONGEST = 30
"""Tokens of an answer at most (google-research/bert, `run_squad.py`, max_answer_length)."""


@dataclass(frozen=True)
class Answers:
    """One entry a question. ``null``: score of having no answer minus that of the text."""

    texts: list[str]
    null: F64


def best_spans(scores: Tensor, front: I64, count: I64) -> tuple[I64, I64, F64]:
    """First token, last token (places in the input) and score of the best span of each window.

    ``scores`` [B, T, 2]; only tokens ``front`` to ``front + count`` are of the passage.
    """
    B, T, _ = scores.shape
    places = torch.arange(T)
    begin, end = torch.from_numpy(front)[:, None], torch.from_numpy(front + count)[:, None]
    is_passage = (places >= begin) & (places < end)
    first, last = (scores[..., k].double().masked_fill(~is_passage, -torch.inf) for k in (0, 1))
    best = torch.full((B,), -torch.inf, dtype=torch.float64)
    chosen = torch.zeros((B, 2), dtype=torch.int64)
    for more in range(min(LONGEST, T)):  # spans of one token, of two, ...
        found, at = (first[:, : T - more] + last[:, more:]).max(1)
        better = found > best
        best = torch.where(better, found, best)
        chosen = torch.where(better[:, None], torch.stack([at, at + more], 1), chosen)
    return chosen[:, 0].numpy(), chosen[:, 1].numpy(), best.numpy()


def answers(questions: Questions, windows: Windows, scored: Sequence[tuple[I64, Tensor]]) -> Answers:
    """The best answer of each question over its windows; ``scored``: rows of windows and their scores."""
    W = len(windows)
    first, last = np.zeros(W, np.int64), np.zeros(W, np.int64)
    best, null = np.full(W, -np.inf), np.zeros(W)
    for rows, scores in scored:
        first[rows], last[rows], best[rows] = best_spans(scores, windows.front[rows], windows.count[rows])
        null[rows] = scores[:, 0].double().sum(-1).numpy()
    order = np.lexsort((-best, windows.question))
    _, at = np.unique(windows.question[order], return_index=True)
    winner = order[at]  # the window of each question with the best span
    lowest = np.full(len(questions), np.inf)
    np.minimum.at(lowest, windows.question, null)  # a passage has no answer if no window of it has one
    shift = windows.offsets[winner] - windows.front[winner]
    known = np.isfinite(best[winner])  # else the passage has no token, and the answer no letter
    begin = windows.begins[np.where(known, first[winner] + shift, -1)]
    end = windows.ends[np.where(known, last[winner] + shift, -1)]
    texts = [
        questions.passages[passage][b:e].strip()
        for passage, b, e in zip(questions.passage.tolist(), begin.tolist(), end.tolist(), strict=True)
    ]
    return Answers(texts, lowest - np.where(known, best[winner], 0.0))


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower case, without punctuation, articles and more than single spaces, as SQuAD compares answers.

    >>> normalise("The  U.S. (an  Army)")
    'us army'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_and_f1(said: str, right: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 over words of an answer, against the best of the right ones (none: no answer is right).

    >>> exact_and_f1("the red house", ["house", "a red barn"])
    (0.0, 0.6666666666666666)
    """
    mine = normalise(said)
    rights = [normalised for normalised in map(normalise, right) if normalised] or [""]
    return float(mine in rights), max(_f1(mine.split(), other.split()) for other in rights)


def _f1(said: list[str], right: list[str]) -> float:
    if not said or not right:
        return float(said == right)
    both = sum((Counter(said) & Counter(right)).values())
    return 2 * both / (len(said) + len(right))


def figures(questions: Questions, said: Answers, threshold: float) -> dict[str, float]:
    """``exact``, ``f1``; of version 2 also by kind of question, and what the best threshold would give."""
    pairs = [exact_and_f1(text, right) for text, right in zip(said.texts, questions.answers, strict=True)]
    exact, f1 = np.array(pairs, np.float64).T
    if not questions.has_unanswerable:
        return {"exact": float(exact.mean()), "f1": float(f1.mean())}
    has_answer = np.array([bool(right) for right in questions.answers])
    is_null = said.null > threshold
    found = {}
    for name, raw in (("exact", exact), ("f1", f1)):
        counted = np.where(is_null, ~has_answer, raw)
        found[name] = float(counted.mean())
        if has_answer.any():
            found[f"{name}_answerable"] = float(counted[has_answer].mean())
        found["no_answer"] = float(is_null[~has_answer].mean())
        found[f"best_{name}"], found[f"best_{name}_threshold"] = best_threshold(raw, said.null, has_answer)
    return found


def best_threshold(raw: F64, null: F64, has_answer: Bools) -> tuple[float, float]:
    """The highest mean any threshold gives, and that threshold: questions up to it in ``null`` are answered."""
    order = np.argsort(null, kind="stable")
    gain = np.where(has_answer, raw, raw - 1)[order]
    totals = (~has_answer).sum() + np.append(0.0, np.cumsum(gain))  # with none answered, one, two, ...
    between = np.diff(null[order]) > 0  # equal scores fall on one side of every threshold
    totals[1:-1][~between] = -np.inf
    answered = int(totals.argmax())
    threshold = null[order][answered - 1] if answered else null.min() - 1
    return float(totals[answered] / len(raw)), float(threshold)
