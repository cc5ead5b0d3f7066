"""Whether two things are distributed alike, with limits that chance passes once in 10,000 times (p = 1e-4)."""

from __future__ import annotations

import math

import numpy as np

DEVIATIONS = 3.719
"""A normal variable lies this many standard deviations above its mean with a probability of 1e-4."""

SMIRNOV = 2.23
"""2 exp(-2 x^2) is 1e-4 here: the limit of the scaled distance of two samples."""


def chi_square_limits(free: int) -> tuple[float, float]:
    """Chi-square lies below the first, and above the second, with a probability of 1e-4 each (Wilson and Hilferty)."""
    spread = 2 / (9 * free)
    low, high = (free * (1 - spread + sign * DEVIATIONS * math.sqrt(spread)) ** 3 for sign in (-1, 1))
    return max(low, 0.0), high


def fits(counts: np.ndarray, shares: np.ndarray) -> bool:
    """Whether counts have these shares; every expected count must exceed 5."""
    expected = np.asarray(shares) / np.sum(shares) * counts.sum()
    assert expected.min() > 5
    return float(((counts - expected) ** 2 / expected).sum()) < chi_square_limits(len(counts) - 1)[1]


def same_counts(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two histograms over the same cells are of one distribution; cells with fewer than 10 go together."""
    size = max(len(one), len(other))
    both = np.array([np.pad(side, (0, size - len(side))) for side in (one, other)], np.float64)
    few = both.sum(0) < 10
    both = np.concatenate((both[:, ~few], both[:, few].sum(1, keepdims=True)), 1)
    both = both[:, both.sum(0) > 0]
    expected = both.sum(1, keepdims=True) * both.sum(0) / both.sum()
    free = both.shape[1] - 1
    return free == 0 or float(((both - expected) ** 2 / expected).sum()) < chi_square_limits(free)[1]


def same_distribution(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two samples pass the test of Kolmogorov and Smirnov."""
    points = np.unique(np.concatenate((one, other)))
    below = [np.searchsorted(np.sort(side), points, "right") / len(side) for side in (one, other)]
    scale = math.sqrt(len(one) * len(other) / (len(one) + len(other)))
    return float(np.abs(below[0] - below[1]).max()) * scale < SMIRNOV


def same_share(one: int, of_one: int, other: int, of_other: int) -> bool:
    """Whether two counts fit the same share."""
    share = (one + other) / (of_one + of_other)
    spread = math.sqrt(share * (1 - share) * (1 / of_one + 1 / of_other))
    return abs(one / of_one - other / of_other) <= (DEVIATIONS + 0.17) * spread  # two-sided
