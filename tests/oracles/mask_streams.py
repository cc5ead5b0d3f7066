"""N-grams and spans of words from a stream of random numbers, one instance at a time.

Written from the papers: a length is drawn (ALBERT, section 3.1, equation 1: p(n) proportional to 1/n up to 3;
SpanBERT, section 3.1: geometric with p = 0.2, up to 10 words), then a place for it, until the budget of tokens is used
up; the last one ends where the budget does, and nothing is masked twice.
"""

from __future__ import annotations

import random

LENGTHS = {"ngram": [1 / n for n in (1, 2, 3)], "span": [0.2 * 0.8 ** (n - 1) for n in range(1, 11)]}
"""The weight of 1, 2, ... words."""


def runs(words: list[tuple[int, int]], budget: int, unit: str, rng: random.Random) -> list[tuple[int, int]]:
    """``(first word, words)`` of each run, in the order they were drawn. ``words``: first position and tokens."""
    weights = LENGTHS[unit]
    masked: set[int] = set()
    found: list[tuple[int, int]] = []
    failures = 0
    while budget > 0 and failures < 200:
        (length,) = rng.choices(range(1, len(weights) + 1), weights)
        for _ in range(20):
            first = rng.randrange(max(len(words) - length + 1, 1))
            run = words[first : first + length]
            while run and sum(size for _, size in run) > budget:
                run = run[:-1]
            numbers = set(range(first, first + len(run)))
            together = not run or run[-1][0] + run[-1][1] - run[0][0] == sum(size for _, size in run)
            if run and together and not numbers & masked:
                masked |= numbers
                found.append((first, len(run)))
                budget -= sum(size for _, size in run)
                break
        else:
            failures += 1
    return found
