"""Measures of agreement from their textbook definitions, one example at a time."""

from __future__ import annotations

import math
from fractions import Fraction


def accuracy(predicted: list[int], labels: list[int]) -> float:
    return sum(p == y for p, y in zip(predicted, labels, strict=True)) / len(labels)


def f1(predicted: list[int], labels: list[int], of: int) -> float:
    """Harmonic mean of precision and recall of one class; 0 if the class does not occur."""
    both = sum(p == y == of for p, y in zip(predicted, labels, strict=True))
    said, asked = predicted.count(of), labels.count(of)
    if not said or not asked or not both:
        return 0.0
    precision, recall = Fraction(both, said), Fraction(both, asked)
    return float(2 * precision * recall / (precision + recall))


def matthews(predicted: list[int], labels: list[int], classes: int) -> float:
    """The correlation of the one-hot vectors of both (Gorodkin 2004): covariances summed over the classes."""

    def covariance(one: list[int], other: list[int]) -> Fraction:
        total = Fraction(0)
        for k in range(classes):
            a, b = [int(v == k) for v in one], [int(v == k) for v in other]
            mean_a, mean_b = Fraction(sum(a), len(a)), Fraction(sum(b), len(b))
            total += sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
        return total

    spread = covariance(predicted, predicted) * covariance(labels, labels)
    return float(covariance(predicted, labels)) / math.sqrt(spread) if spread else 0.0


def pearson(one: list[float], other: list[float]) -> float:
    a, b = [Fraction(v) for v in one], [Fraction(v) for v in other]
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    both = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    spread = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return float(both) / math.sqrt(spread) if spread else 0.0


def ranks(values: list[float]) -> list[float]:
    return [(sum(v < value for v in values) + 1 + sum(v <= value for v in values)) / 2 for value in values]
