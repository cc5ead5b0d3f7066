"""Optimizers: AdamW (torch's), BERT's Adam without bias correction, and LAMB.

Each has two groups of weights, with weight decay and without (biases, LayerNorm). All three keep the same state (two
moments and a count of steps), so checkpoints do not depend on the optimizer; BERT's and LAMB's updates run over all
weights of a group at once (``torch._foreach``).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from corpusforge.sections.presets import Preset
from corpusforge.trainer.model import Encoder, decays

MOMENTS = ("exp_avg", "exp_avg_sq")
"""The state of a weight in every optimizer here, besides its ``step``."""


def make_optimizer(model: Encoder, preset: Preset, learning_rate: float, name: str = "adamw") -> torch.optim.Optimizer:
    """The optimizer ``name`` over a model's weights, in two groups: with the preset's weight decay, and without."""
    weights = list(model.parameters())
    groups: list[dict[str, Any]] = [
        {"params": [w for w in weights if decays(w)], "weight_decay": preset.weight_decay},
        {"params": [w for w in weights if not decays(w)], "weight_decay": 0.0},
    ]
    betas = (preset.beta_1, preset.beta_2)
    if name == "adamw":
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=preset.adam_epsilon, fused=True)
    for group, adapts in zip(groups, (True, False), strict=True):
        group["adapts"] = adapts
    kind = BertAdam if name == "bert-adam" else Lamb
    return kind(groups, lr=learning_rate, betas=betas, eps=preset.adam_epsilon)


class _Weights(NamedTuple):
    """The weights of a group that have a gradient, with their gradients and moments."""

    values: list[Tensor]
    gradients: list[Tensor]
    first: list[Tensor]
    second: list[Tensor]


class _Moments(torch.optim.Optimizer, abc.ABC):
    """An optimizer over Adam's two moments of each weight; `_update` applies them."""

    def __init__(self, groups: list[dict[str, Any]], *, lr: float, betas: tuple[float, float], eps: float) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0, "adapts": True})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step with the gradients of the weights."""
        for group in self.param_groups:
            weights, steps = self._of(group)
            if not weights.values:
                continue
            beta_1, beta_2 = group["betas"]
            torch._foreach_lerp_(weights.first, weights.gradients, 1 - beta_1)
            torch._foreach_mul_(weights.second, beta_2)
            torch._foreach_addcmul_(weights.second, weights.gradients, weights.gradients, 1 - beta_2)
            self._update(group, weights, steps)

    def _of(self, group: dict[str, Any]) -> tuple[_Weights, int]:
        """A group's weights and moments (zeros at first), and their number of steps, this one included."""
        weights, steps = _Weights([], [], [], []), 0
        for weight in group["params"]:
            if weight.grad is None:
                continue
            state = self.state[weight]
            if not state:
                state["step"] = torch.zeros(())  # on the CPU: reading it does not wait for a device
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
            state["step"] += 1
            steps = int(state["step"])
            for column, value in zip(weights, (weight, weight.grad, *(state[key] for key in MOMENTS)), strict=True):
                column.append(value)
        return weights, steps

    @abc.abstractmethod
    def _update(self, group: dict[str, Any], weights: _Weights, steps: int) -> None:
        """Update the weights of a group from their moments after ``steps`` steps."""


class BertAdam(_Moments):
    """google-research/bert's `AdamWeightDecayOptimizer` (optimization.py): moments without bias correction.

    ``w -= lr * (m / (sqrt(v) + eps) + decay * w)``. Without the correction the first step is
    ``(1 - b1) / sqrt(1 - b2)`` times as long: 3.2 at b1 .9, b2 .999; warm-up hides most of it.
    """

    def _update(self, group: dict[str, Any], weights: _Weights, steps: int) -> None:
        updates = _ratios(weights, group["eps"], 1.0, 1.0)
        if group["weight_decay"]:
            torch._foreach_add_(updates, weights.values, alpha=group["weight_decay"])
        torch._foreach_add_(weights.values, updates, alpha=-group["lr"])


class Lamb(_Moments):
    """LAMB: You et al. 2020 (arXiv 1904.00962), algorithm 2, with phi(z) = z as they train BERT with.

    ``r = m^ / (sqrt(v^) + eps) + decay * w``; ``w -= lr * |w| / |r| * r``, the norms of each weight tensor. If one
    of them is 0 the ratio is 1, and weights without decay (biases, LayerNorm) are not adapted, as
    google-research/albert has it (lamb_optimizer.py, `exclude_from_layer_adaptation`). No clamp of the ratio; NVLAMB's
    clipping of the whole gradient first is the preset's ``clip``.
    """

    def _update(self, group: dict[str, Any], weights: _Weights, steps: int) -> None:
        beta_1, beta_2 = group["betas"]
        updates = _ratios(weights, group["eps"], 1 - beta_1**steps, 1 - beta_2**steps)
        if group["weight_decay"]:
            torch._foreach_add_(updates, weights.values, alpha=group["weight_decay"])
        if group["adapts"]:
            sizes, lengths = (torch.stack(torch._foreach_norm(tensors)) for tensors in (weights.values, updates))
            trust = torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1.0)  # 0 / 0 is not selected
            torch._foreach_mul_(updates, list(trust.unbind()))
        torch._foreach_add_(weights.values, updates, alpha=-group["lr"])


def _ratios(weights: _Weights, epsilon: float, correction_1: float, correction_2: float) -> list[Tensor]:
    """``(m / correction_1) / (sqrt(v / correction_2) + eps)`` of each weight."""
    scales = torch._foreach_sqrt(weights.second)
    torch._foreach_div_(scales, math.sqrt(correction_2))
    torch._foreach_add_(scales, epsilon)
    torch._foreach_mul_(scales, correction_1)
    return list(torch._foreach_div(weights.first, scales))
