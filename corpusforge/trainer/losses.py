"""Losses of one batch: masked tokens, and segment pairs where the model has the head for them.

Losses are sums, not means: who asks divides by the number of masked positions of the whole step (and of pairs), so a
step means the same however it is cut into micro-batches.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from corpusforge.trainer.batches import Batch


def batch_losses(
    model: torch.nn.Module, batch: Batch, dtype: torch.dtype | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """One forward pass: `log.FIELDS`' first six as sums [6] float64, and the MLM and pair losses, summed, with graphs.

    ``dtype``: of autocast; None: the weights' own.
    """
    device = batch.input_ids.device
    with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
        logits, pair_logits, _ = model(batch.input_ids, batch.segment_ids, batch.is_real, batch.masked)
    mlm = F.cross_entropy(logits.float(), batch.labels, reduction="sum")
    hits = (logits.detach().argmax(-1) == batch.labels).sum()
    zero = torch.zeros((), device=device)
    pair, pair_hits, pairs = None, zero, 0
    if pair_logits is not None and batch.pair_labels is not None:
        pair = F.cross_entropy(pair_logits.float(), batch.pair_labels, reduction="sum")
        pair_hits, pairs = (pair_logits.detach().argmax(-1) == batch.pair_labels).sum(), len(batch.pair_labels)
    counted = [mlm.detach(), hits, zero + len(batch.labels), zero if pair is None else pair.detach(), pair_hits]
    sums = torch.stack([value.double() for value in [*counted, zero + pairs]])
    return sums, mlm, pair
