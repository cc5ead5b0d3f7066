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
from corpusforge.trainer.ranks import Agreed, Ranks
from corpusforge.trainer.sharding import whole_tensor


def gradients(
    model: torch.nn.Module,
    batches: list[Batch],
    *,
    seed: int,
    step: int,
    device: torch.device,
    dtype: torch.dtype | None,
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Ranks | None = None,
    agreed: Agreed | None = None,
) -> Tensor | None:
    """Add the gradient of a step to the weights; returns `log.FIELDS`' first nine [9], on the device.

    None where ``should_stop`` said so between two micro-batches; the gradient is then not complete. ``ranks``: these
    are one rank's micro-batches, and the gradient and the sums are those of all; ``agreed``: what they agreed on.
    """
    ranks = ranks or Ranks()
    agreed = agreed or ranks.agree(batches)
    masked, pairs = max(1, agreed.masked), max(1, agreed.pairs)
    scale = ranks.count if ranks.is_sharded else 1  # sharded gradients are means over ranks
    total = torch.zeros(SUMS, dtype=torch.float64, device=device)
    for number, batch in zip(ranks.numbers(len(batches)), batches, strict=True):
        torch.manual_seed(seeds.stage_key(seed, f"dropout/{step}/{number}") >> 1)
        sums, losses = batch_losses(model, batch.to(device), dtype)
        (losses.mean(masked, pairs) * scale).backward()  # type: ignore[no-untyped-call]
        total += sums
        if ranks.count == 1 and should_stop():  # several stop together, between steps
            return None
    ranks.sum_gradients(model)
    return ranks.total(total)


def update(
    model: Encoder,
    optimizer: torch.optim.Optimizer,
    *,
    learning_rate: float,
    clip: float,
    should_skip: Callable[[Tensor], bool] | None = None,
) -> Tensor:
    """Clip, step, clear; returns the norm of the gradient before clipping, on the device. ``clip`` 0: none.

    ``should_skip`` is asked with the norm whether no step should be taken.
    """
    norm = whole_tensor(torch.nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf")))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    if should_skip is None or not should_skip(norm):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm
