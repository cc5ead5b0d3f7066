"""Masks of words, n-grams and spans, one instance and one draw at a time, in plain Python integers.

Written from the descriptions of `corpusforge.instances.mask_units` and `mask_spans`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tests.oracles.mask_words import word


def units_of(ids, starts, special):
    """(first position, tokens) of each run of maskable tokens up to the next word start."""
    units = []
    for i, token in enumerate(ids):
        if token in special:
            continue
        if units and sum(units[-1]) == i and not starts[i]:
            units[-1] = (units[-1][0], units[-1][1] + 1)
        else:
            units.append((i, 1))
    return units


def budget_of(ids, special, settings):
    if not settings.rate:
        return 0
    share = Fraction(str(settings.rate)) * len(ids)
    wanted = max(1, math.ceil(share) if settings.unit == "span" else round(settings.rate * len(ids)))
    if settings.max_predictions:
        wanted = min(wanted, settings.max_predictions)
    return min(wanted, sum(token not in special for token in ids))


def whole_words(units, budget, sequence):
    """The runs of tokens to mask: units in the order of their hashes, each that still fits."""
    draws = [word(0, "mask-word", sequence, k) >> 33 for k in range(len(units))]
    chosen = []
    for k in sorted(range(len(units)), key=lambda k: (draws[k], k)):
        if units[k][1] <= budget:
            chosen.append(units[k])
            budget -= units[k][1]
    return sorted(chosen)


def runs(units, budget, sequence, weights):
    """N-grams and spans: a length drawn, then places tried for it; see `mask_spans`."""
    total = sum(weights)
    limits = [round(float(sum(weights[: k + 1]) / total) * 2**32) for k in range(len(weights))]

    def drawn(number):
        draw = word(0, "mask-length", sequence, number) >> 32
        return next(k for k, limit in enumerate(limits, 1) if draw < limit)

    covered, found, step, tries, length = set(), [], 0, 0, None
    while budget > 0 and units:
        if length is None:
            length = drawn(len(found))
        wanted = min(length, budget, len(units))
        draw = word(0, "mask-place", sequence, step) & 0xFFFFFFFF
        start = draw * (len(units) - wanted + 1) >> 32
        step += 1
        run = units[start : start + wanted]
        while run and sum(size for _, size in run) > budget:
            run.pop()
        tokens = sum(size for _, size in run)
        places = set(range(start, start + len(run)))
        if run and not places & covered and run[-1][0] + run[-1][1] - run[0][0] == tokens:
            found.append((run[0][0], tokens))
            covered |= places
            budget, tries, length = budget - tokens, 0, None
            continue
        tries += 1
        if tries >= (24 if wanted == 1 else 8):
            if wanted == 1:
                break
            tries, length = 0, max(wanted // 2, 1)
    return sorted(found)


def mask_one(ids, starts, key, *, special, words, mask_id, seed, epoch, settings):
    """The ids the model sees, the masked positions, the labels, and the runs, of one instance."""
    units, budget = units_of(ids, starts, special), budget_of(ids, special, settings)
    sequence = word(seed, "mask", key, epoch)
    if settings.unit == "whole-word":
        found = whole_words(units, budget, sequence)
    else:
        ngrams, spans = [Fraction(1, n) for n in (1, 2, 3)], [Fraction(4, 5) ** n for n in range(10)]
        found = runs(units, budget, sequence, ngrams if settings.unit == "ngram" else spans)
    seen, positions = list(ids), []
    for begin, size in found:
        for position in range(begin, begin + size):
            own = word(seed, "mask-token", key, (epoch << 16) + position)
            first = word(seed, "mask-token", key, (epoch << 16) + begin)
            share = (first if settings.unit == "span" else own) >> 32
            if share < round(settings.mask_share * 2**32):
                seen[position] = mask_id
            elif share < round(settings.mask_share * 2**32) + round(settings.random_share * 2**32):
                seen[position] = words[(own & 0xFFFFFFFF) * len(words) >> 32]
            positions.append(position)
    return seen, positions, [ids[p] for p in positions], [[b, b + n] for b, n in found]
