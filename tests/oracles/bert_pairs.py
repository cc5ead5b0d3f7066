"""Segment pairs drawn as google-research/bert describes them: one document at a time, from a stream of random numbers.

Written from the description of the procedure, to compare distributions: targets, cuts, labels, put-back, truncation.
"""

from __future__ import annotations

import random


def pairs(
    documents: list[list[int]],
    longest: int,
    short_probability: float,
    rng: random.Random,
    *,
    consecutive: bool = False,
    swap: bool = False,
):
    """Yields ``(document, a, b, label)``; sentences are given as lengths, and segments as lists of (document, token).

    ``longest``: tokens of A and B together; ``consecutive``: B from elsewhere only where a chunk has one sentence;
    ``swap``: of the others half are swapped before they are shortened, as google-research/albert does, with label 1;
    those from elsewhere then have 2 (1 in ALBERT).
    """
    for number, document in enumerate(documents):
        target = rng.randint(2, longest) if rng.random() < short_probability else longest
        at = 0
        while at < len(document):
            stop, size = at, 0
            while stop < len(document) and size < target:
                size += document[stop]
                stop += 1
            cut = rng.randint(1, stop - at - 1) if stop - at > 1 else 1
            a = _tokens(documents, number, at, at + cut)
            if stop - at == 1 or (not consecutive and rng.random() < 0.5):
                b = _random_next(documents, number, target - len(a), rng)
                label, at = 1 + swap, at + cut
            else:
                b = _tokens(documents, number, at + cut, stop)
                label, at = 0, stop
                if swap and rng.random() < 0.5:
                    a, b, label = b, a, 1
            yield number, *_truncated(a, b, longest, rng), label


def _random_next(documents, number, wanted, rng):
    other = number
    while other == number:
        other = rng.randrange(len(documents))
    start = rng.randrange(len(documents[other]))
    stop, size = start, 0
    while True:
        size += documents[other][stop]
        stop += 1
        if size >= wanted or stop == len(documents[other]):
            return _tokens(documents, other, start, stop)


def _truncated(a, b, longest, rng):
    a, b = list(a), list(b)
    while len(a) + len(b) > longest:
        longer = a if len(a) > len(b) else b
        longer.pop(0 if rng.random() < 0.5 else -1)
    return a, b


def _tokens(documents, number, first, behind):
    begin = sum(documents[number][:first])
    return [(number, begin + i) for i in range(sum(documents[number][first:behind]))]
