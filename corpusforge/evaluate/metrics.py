"""Agreement between predictions and labels, as GLUE measures it (Wang et al. 2019, arXiv 1804.07461, section 2).

Arrays have one entry per example. An undefined figure (a correlation with a constant) is 0: a model that predicts the
same for everything has learned nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from corpusforge.arrays import F64, I64


def confusion(predicted: I64, labels: I64, classes: int) -> I64:
    """How often each label (row) was predicted as each class (column): ``[classes, classes]``."""
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def classification(predicted: I64, labels: I64, classes: int) -> dict[str, float]:
    """``accuracy``, ``f1`` (of class 1 if there are two, else the mean over classes) and ``matthews``.

    >>> classification(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]), 2)
    {'accuracy': 0.75, 'f1': 0.6666666666666666, 'matthews': 0.5773502691896258}
    """
    table = confusion(predicted, labels, classes).astype(np.float64)
    hits, labeled, chosen = np.diag(table), table.sum(1), table.sum(0)
    f1 = 2 * hits / np.maximum(labeled + chosen, 1)
    return {
        "accuracy": float(hits.sum() / max(table.sum(), 1)),
        "f1": float(f1[1] if classes == 2 else f1.mean()),
        "matthews": _matthews(hits.sum(), labeled, chosen),
    }


def _matthews(hits: float, labeled: F64, chosen: F64) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004, equation 8)."""
    n = labeled.sum()
    spread = np.sqrt((n * n - (labeled * labeled).sum()) * (n * n - (chosen * chosen).sum()))
    return float((hits * n - (labeled * chosen).sum()) / spread) if spread else 0.0


def regression(predicted: F64, labels: F64) -> dict[str, float]:
    """``pearson`` and ``spearman``: the correlation of the values, and that of their ranks.

    >>> regression(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0]))["spearman"]
    1.0
    """
    return {"pearson": pearson(predicted, labels), "spearman": pearson(ranks(predicted), ranks(labels))}


def pearson(one: F64, other: F64) -> float:
    """Pearson's correlation; 0 if either is constant."""
    if len(one) == 0 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    one, other = one - one.mean(), other - other.mean()
    spread = np.sqrt((one * one).sum() * (other * other).sum())
    return float(np.clip((one * other).sum() / spread, -1, 1)) if spread else 0.0


def ranks(values: F64) -> F64:
    """Ranks from 1; equal values share the mean of theirs.

    >>> ranks(np.array([30.0, 10.0, 30.0, 20.0])).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, value, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[value], np.float64)


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each figure over runs with a ``seed`` each, and the ``lowest`` and ``highest`` ``score``.

    >>> medians([{"seed": 1, "score": 0.5}, {"seed": 2, "score": 0.9}, {"seed": 3, "score": 0.6}])
    {'score': 0.6, 'lowest': 0.5, 'highest': 0.9}
    """
    middle = {key: float(np.median([run[key] for run in runs])) for key in runs[0] if key != "seed"}
    score = [run["score"] for run in runs]
    return middle | {"lowest": min(score), "highest": max(score)}
