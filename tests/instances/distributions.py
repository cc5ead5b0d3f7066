"""Whether two things are distributed alike, with limits that chance passes once in 10,000 times (p = 1e-4)."""

from __future__ import annotations

import math

import numpy as np

DEVIATIONS = 3.719
"""Of a normal distribution 1e-4 lies above so many standard deviations."""

SMIRNOV = 2.23
"""2 exp(-2 x^2) is 1e-4 here: the limit of the scaled distance of two samples."""


def chi_square_limits(free: int) -> tuple[float, float]:
    """Chi-square lies below the first, and above the second, with a probability of 1e-4 each (Wilson and Hilferty)."""
    spread = 2 / (9 * free)
    low, high = (free * (1 - spread + sign * DEVIATIONS * math.sqrt(spread)) ** 3 for sign in (-1, 1))
    return max(low, 0.0), high


def fits(found: np.ndarray, shares: np.ndarray) -> bool:
    """Whether counts have these shares; every cell must be expected to hold some."""
    expected = np.asarray(shares) / np.sum(shares) * found.sum()
    assert expected.min() > 5
    return float(((found - expected) ** 2 / expected).sum()) < chi_square_limits(len(found) - 1)[1]


def same_counts(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether two histograms over the same cells are of one distribution; cells with fewer than 10 go together."""
    size = max(len(mine), len(theirs))
    both = np.array([np.pad(side, (0, size - len(side))) for side in (mine, theirs)], np.float64)
    few = both.sum(0) < 10
    both = np.concatenate((both[:, ~few], both[:, few].sum(1, keepdims=True)), 1)
    both = both[:, both.sum(0) > 0]
    expected = both.sum(1, keepdims=True) * both.sum(0) / both.sum()
    free = both.shape[1] - 1
    return free == 0 or float(((both - expected) ** 2 / expected).sum()) < chi_square_limits(free)[1]


def same_distribution(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether Kolmogorov and Smirnov's test lets two samples pass."""
    points = np.unique(np.concatenate((mine, theirs)))
    below = [np.searchsorted(np.sort(side), points, "right") / len(side) for side in (mine, theirs)]
    scale = math.sqrt(len(mine) * len(theirs) / (len(mine) + len(theirs)))
    return float(np.abs(below[0] - below[1]).max()) * scale < SMIRNOV


def same_share(mine: int, of_mine: int, theirs: int, of_theirs: int) -> bool:
    """Whether two counts are of one share."""
    share = (mine + theirs) / (of_mine + of_theirs)
    spread = math.sqrt(share * (1 - share) * (1 / of_mine + 1 / of_theirs))
    return abs(mine / of_mine - theirs / of_theirs) <= (DEVIATIONS + 0.17) * spread  # two-sided
