"""Masks, one instance and one draw at a time, in plain Python integers.

Written from the description of `corpusforge.instances.masking`: an endless sequence of uniform draws an instance, of
which the first n different ones are masked; one more draw a position says what is seen there.
"""

from __future__ import annotations

from corpusforge.seeds import stage_key

M = 2**64 - 1


def mix(word: int) -> int:
    z = (word + 0x9E3779B97F4A7C15) & M
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
    return z ^ (z >> 31)


def word(seed: int, stage: str, key: int, counter: int) -> int:
    return mix((mix(key ^ stage_key(seed, stage)) + counter * 0x9E3779B97F4A7C15) & M)


def mask_one(ids, key, *, special, words, mask_id, seed, epoch, settings):
    """The ids the model sees, the masked positions, and the labels of one instance."""
    candidates = [i for i, token in enumerate(ids) if token not in special]
    wanted = max(1, round(settings.rate * len(ids)))  # Python's round, as google-research/bert
    if settings.max_predictions:
        wanted = min(wanted, settings.max_predictions)
    wanted = min(wanted, len(candidates)) if settings.rate else 0
    sequence, chosen, counter = word(seed, "mask", key, epoch), set(), 0
    while len(chosen) < wanted:
        draw = word(0, "mask-draw", sequence, counter) >> 32
        chosen.add(candidates[draw * len(candidates) >> 32])
        counter += 1
    seen, positions = list(ids), sorted(chosen)
    for position in positions:
        draw = word(seed, "mask-token", key, (epoch << 16) + position)
        share, low = draw >> 32, draw & 0xFFFFFFFF
        if share < round(settings.mask_share * 2**32):
            seen[position] = mask_id
        elif share < round(settings.mask_share * 2**32) + round(settings.random_share * 2**32):
            seen[position] = words[low * len(words) >> 32]
    return seen, positions, [ids[p] for p in positions]
