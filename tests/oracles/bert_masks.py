"""Masks of single tokens as google-research/bert draws them: from a stream of random numbers, one instance at a time.

Written from the description of the procedure (create_pretraining_data.py, create_masked_lm_predictions).
"""

from __future__ import annotations

import random


def masks(
    ids: list[int],
    rng: random.Random,
    *,
    frame: set[int],
    mask_id: int,
    words: list[int],
    rate: float = 0.15,
    most: int = 20,
) -> tuple[list[int], list[int]]:
    """The ids the model sees, and the masked positions. ``frame``: [CLS] and [SEP], which are never masked."""
    order = [position for position, token in enumerate(ids) if token not in frame]
    rng.shuffle(order)
    chosen = sorted(order[: min(most, max(1, round(len(ids) * rate)))])
    seen = list(ids)
    for position in chosen:
        if rng.random() < 0.8:
            seen[position] = mask_id
        elif rng.random() >= 0.5:  # else kept
            seen[position] = words[rng.randint(0, len(words) - 1)]
    return seen, chosen
