"""Metrics against their definitions, and against scipy where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.evaluate import metrics
from tests.oracles import correlations


@given(st.integers(2, 4).flatmap(lambda k: st.tuples(st.just(k), _pairs(st.integers(0, k - 1)))))
def test_classification_is_by_definition(case: tuple[int, list[tuple[int, int]]]) -> None:
    classes, pairs = case
    predicted, labels = [p for p, _ in pairs], [y for _, y in pairs]
    found = metrics.classification(np.array(predicted), np.array(labels), classes)
    assert found["accuracy"] == pytest.approx(correlations.accuracy(predicted, labels))
    of_classes = [correlations.f1(predicted, labels, k) for k in range(classes)]
    assert found["f1"] == pytest.approx(of_classes[1] if classes == 2 else np.mean(of_classes))
    assert found["matthews"] == pytest.approx(correlations.matthews(predicted, labels, classes), abs=1e-9)


def _pairs(values: st.SearchStrategy) -> st.SearchStrategy:  # type: ignore[type-arg]
    return st.lists(st.tuples(values, values), min_size=1, max_size=20)


@given(_pairs(st.integers(-5, 5).map(float)))
def test_correlations_are_by_definition(pairs: list[tuple[float, float]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    found = metrics.regression(np.array(one), np.array(other))
    assert found["pearson"] == pytest.approx(correlations.pearson(one, other), abs=1e-9)
    of_ranks = correlations.pearson(correlations.ranks(one), correlations.ranks(other))
    assert found["spearman"] == pytest.approx(of_ranks, abs=1e-9)


def test_correlations_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 26, 1500) / 5  # as STS-B's, with many ties
    predicted = labels + rng.normal(0, 1.5, 1500)
    found = metrics.regression(predicted, labels)
    assert found["pearson"] == pytest.approx(stats.pearsonr(predicted, labels).statistic, abs=1e-12)
    assert found["spearman"] == pytest.approx(stats.spearmanr(predicted, labels).statistic, abs=1e-12)


def test_matthews_of_cola_by_hand() -> None:
    """tp 6, fp 3, tn 1, fn 2: 6 * 1 - 3 * 2 = 0; and a model that predicts one class for everything has 0."""
    predicted, labels = [1] * 9 + [0] * 3, [1] * 6 + [0] * 3 + [0] + [1] * 2
    assert metrics.classification(np.array(predicted), np.array(labels), 2)["matthews"] == 0.0
    assert metrics.classification(np.ones(5, np.int64), np.array([1, 0, 1, 1, 0]), 2)["matthews"] == 0.0
