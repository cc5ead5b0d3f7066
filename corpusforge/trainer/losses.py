"""Losses of one batch: masked tokens, and segment pairs and spans where the model has the heads for them.

Losses are sums, not means: who asks divides by the number of masked positions of the whole step (and of pairs), so a
step means the same however it is cut into micro-batches.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from corpusforge.trainer.batches import NOTHING, Batch

SUMS = 9
"""How many of `log.FIELDS` come from here: loss, hits and number for masked tokens, for pairs, and for spans."""


class Losses(NamedTuple):
    """Summed losses with their graphs; None where the model has no such head or the batch nothing for it."""

    mlm: Tensor
    pair: Tensor | None
    span: Tensor | None

    def mean(self, masked: int | Tensor, pairs: int | Tensor) -> Tensor:
        """The loss of a step with so many masked tokens and pairs, of which this is a part.

        Spans are divided by masked tokens as well: SpanBERT adds both losses of a token (section 3.2, equation 3).
        """
        loss = self.mlm / masked
        if self.pair is not None:
            loss = loss + self.pair / pairs
        return loss if self.span is None else loss + self.span / masked


def batch_losses(model: torch.nn.Module, batch: Batch, dtype: torch.dtype | None) -> tuple[Tensor, Losses]:
    """One forward pass: `log.FIELDS`' first nine as sums [9] float64, and the losses.

    ``dtype``: of autocast; None: the weights' own.
    """
    device = batch.input_ids.device
    with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
        found = model(batch.input_ids, batch.segment_ids, batch.real, batch.masked, batch.spans)
    mlm, of_tokens = _head(found.masked, batch.labels)
    pair, of_pairs = _head(found.pairs, batch.pair_labels)
    span, of_spans = _head(found.spans, batch.span_labels)
    nothing = torch.zeros(3, dtype=torch.float64, device=device)
    sums = torch.cat([nothing if part is None else part for part in (of_tokens, of_pairs, of_spans)])
    assert mlm is not None  # there are always masked positions, be they none
    return sums, Losses(mlm, pair, span)


def _head(logits: Tensor | None, labels: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The loss of one head, summed, and [3]: that, hits, and how many there were; labels of -100 fill up shapes."""
    if logits is None or labels is None:
        return None, None
    loss = F.cross_entropy(logits.float(), labels, ignore_index=NOTHING, reduction="sum")
    hits = (logits.detach().argmax(-1) == labels).sum()
    count = (labels != NOTHING).sum()
    return loss, torch.stack([loss.detach().double(), hits.double(), count.double()])
