"""One optimiser step: micro-batches forward and backward, then the optimiser.

Losses are divided by the masked positions of the whole step, so neither the number of micro-batches nor their sizes
change the gradient. Dropout draws from a generator seeded for each micro-step: nothing about it has to be saved.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from corpusforge import seeds
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.losses import SUMS, batch_losses
from corpusforge.trainer.model import Encoder


def gradients(
    model: torch.nn.Module,
    batches: list[Batch],
    *,
    seed: int,
    step: int,
    device: torch.device,
    dtype: torch.dtype | None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Tensor | None:
    """Add the gradient of a step to the weights; returns `log.FIELDS`' first nine [9], on the device.

    None where ``should_stop`` said so between two micro-batches; the gradient is then not complete.
    """
    masked = max(1, sum(batch.masked_count for batch in batches))
    pairs = max(1, sum(batch.pair_count for batch in batches))
    total = torch.zeros(SUMS, dtype=torch.float64, device=device)
    for number, batch in enumerate(batches):
        torch.manual_seed(seeds.stage_key(seed, f"dropout/{step}/{number}") >> 1)
        sums, losses = batch_losses(model, batch.to(device), dtype)
        losses.mean(masked, pairs).backward()  # type: ignore[no-untyped-call]
        total += sums
        if should_stop():
            return None
    return total


def update(model: Encoder, optimizer: torch.optim.Optimizer, *, learning_rate: float, clip: float) -> Tensor:
    """Clip, step, clear; returns the norm of the gradient before clipping, on the device. ``clip`` 0: none."""
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf"))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm
