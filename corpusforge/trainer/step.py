"""One optimizer step: losses of micro-batches, their gradients, and the update.

Losses are sums, divided by the masked positions (and pairs) of the whole step, so neither the number of micro-batches
nor their sizes change the gradient. Dropout draws from a generator seeded for each micro-batch, so a
checkpoint holds no random state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from corpusforge import seeds
from corpusforge.trainer.batches import IGNORED, Batch
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.ranks import Agreed, Ranks, full_tensor

SUMS = 9
"""Number of `log.FIELDS` computed here: loss, hits and count of masked tokens, of pairs, and of spans."""


class Losses(NamedTuple):
    """Summed losses with their graphs; None where the model lacks the head or the batch its labels."""

    mlm: Tensor
    pair: Tensor | None
    span: Tensor | None

    def mean(self, masked: int | Tensor, pairs: int | Tensor) -> Tensor:
        """This batch's part of the loss of a step with ``masked`` masked tokens and ``pairs`` pairs in total.

        Spans are divided by masked tokens too: SpanBERT adds both losses of a token (section 3.2, equation 3).
        """
        loss = self.mlm / masked
        if self.pair is not None:
            loss = loss + self.pair / pairs
        return loss if self.span is None else loss + self.span / masked


def batch_losses(model: torch.nn.Module, batch: Batch, dtype: torch.dtype | None) -> tuple[Tensor, Losses]:
    """One forward pass: the first nine of `log.FIELDS` as sums [9] float64, and the losses.

    ``dtype``: of autocast; None: the dtype of the weights.
    """
    device = batch.input_ids.device
    with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
        logits = model(batch.input_ids, batch.segment_ids, batch.real, batch.masked, batch.spans)
    mlm, of_tokens = _head(logits.masked, batch.labels)
    pair, of_pairs = _head(logits.pairs, batch.pair_labels)
    span, of_spans = _head(logits.spans, batch.span_labels)
    zeros = torch.zeros(3, dtype=torch.float64, device=device)
    sums = torch.cat([zeros if part is None else part for part in (of_tokens, of_pairs, of_spans)])
    assert mlm is not None  # every batch has this tensor, though it may be empty
    return sums, Losses(mlm, pair, span)


def _head(logits: Tensor | None, labels: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The summed loss of one head, and [3]: loss, hits, count. Labels of -100 are padding."""
    if logits is None or labels is None:
        return None, None
    loss = F.cross_entropy(logits.float(), labels, ignore_index=IGNORED, reduction="sum")
    hits = (logits.detach().argmax(-1) == labels).sum()
    count = (labels != IGNORED).sum()
    return loss, torch.stack([loss.detach().double(), hits.double(), count.double()])


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
    """Add the gradient of a step to the weights; returns the first nine of `log.FIELDS` [9], on the device.

    Returns None if ``should_stop`` became true between two micro-batches; the gradient is then incomplete. ``ranks``:
    ``batches`` are one rank's micro-batches, the gradient and the sums are of all ranks; ``agreed``: their counts.
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
        if ranks.count == 1 and should_stop():  # several ranks stop together, between steps
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
    """Clip the gradient, update the weights, clear the gradient; returns the norm before clipping, on the device.

    ``clip`` 0: no clipping. ``should_skip`` decides from the norm whether to leave the weights as they are.
    """
    norm = full_tensor(torch.nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf")))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    if should_skip is None or not should_skip(norm):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm


SHAPES = 64
"""Shapes compiled before torch falls back to eager mode: its default of 8 is too few for two lengths of training."""


def compiled(model: torch.nn.Module, *, fixed: bool, backend: str = "inductor") -> Any:
    """The same model, compiled to fused kernels: the same numbers up to rounding.

    ``fixed``: packed batches of a compiled run have few shapes (`batches.padded_shapes`), each compiled on its own;
    padded rows have as many shapes as lengths and are compiled for any. The CPU's attention kernels are not compiled:
    their calls differ from batch to batch.
    """
    import torch._dynamo  # imported here as it takes seconds

    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, SHAPES)
    return torch.compile(model, dynamic=not fixed, backend=backend)
