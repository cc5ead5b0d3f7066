"""Running mean and deviation with weights, computed from all values each time."""

from __future__ import annotations

import math


def running(values: list[float], forgets: float) -> tuple[float, float]:
    """Mean and deviation: value k enters with share ``max(1 - forgets, 1 / k)``, the rest keep what is left."""
    weights: list[float] = []
    for k in range(1, len(values) + 1):
        share = max(1 - forgets, 1 / k)
        weights = [w * (1 - share) for w in weights] + [share]
    mean = sum(w * v for w, v in zip(weights, values, strict=True))
    variance = sum(w * (v - mean) ** 2 for w, v in zip(weights, values, strict=True))
    return mean, math.sqrt(variance)
