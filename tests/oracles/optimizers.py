"""Optimizers in plain Python floats, one number at a time, as their papers and repositories write them."""

from __future__ import annotations

import math


class Slow:
    """One weight tensor as a list of numbers. ``kind``: adamw, bert-adam, lamb."""

    def __init__(self, kind: str, weight: list[float], *, b1: float, b2: float, eps: float, decay: float) -> None:
        self.kind, self.weight = kind, list(weight)
        self.b1, self.b2, self.eps, self.decay = b1, b2, eps, decay
        self.m, self.v, self.t = [0.0] * len(weight), [0.0] * len(weight), 0

    def step(self, gradient: list[float], lr: float, *, adapts: bool) -> None:
        self.t += 1
        updates = []
        for i, g in enumerate(gradient):
            self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g
            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g * g
            m, v = self.m[i], self.v[i]
            if self.kind != "bert-adam":
                m, v = m / (1 - self.b1**self.t), v / (1 - self.b2**self.t)
            updates.append(m / (math.sqrt(v) + self.eps) + self.decay * self.weight[i])
        trust = 1.0
        if self.kind == "lamb" and adapts:
            mine, other = (math.sqrt(sum(x * x for x in values)) for values in (self.weight, updates))
            trust = mine / other if mine > 0 and other > 0 else 1.0
        self.weight = [w - lr * trust * u for w, u in zip(self.weight, updates, strict=True)]
