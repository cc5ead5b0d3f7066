"""Held-out MLM loss, beside the unigram loss it must beat: that of guessing by token frequency alone.

Both are measured on the same labels, in total and by length; the unigram loss comes from add-one smoothed counts of the
training tokens. A model whose loss stays at it (often near 7) has learned only unigram frequencies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from corpusforge import errors
from corpusforge.arrays import F64, I64
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.loader.corpus import Corpus
from corpusforge.loader.unigram import token_counts, unigram_loss
from corpusforge.progress import Progress, Silent
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.heldout import frozen_batches
from corpusforge.trainer.model import Encoder

EDGES = 2 ** np.arange(4, 17)
"""The most tokens of an instance of each length group: 16, 32, ... 65,536."""


def heldout_loss(
    model: Encoder,
    heldout: Corpus,
    train: Corpus | None,
    specials: Specials,
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Loss in nats over the masked positions of all held-out instances, and the unigram loss if ``train`` is given.

    Raises `errors.StageMismatch` if instances are longer than the model's positions, `errors.TrainingStopped` if
    nothing is held out.
    """
    positions = model.shape.longest
    if heldout.longest > positions:
        what = f"held-out instances have up to {heldout.longest} tokens, and the model {positions} positions"
        raise errors.StageMismatch("heldout", what, "evaluate on the instances the model was trained for")
    masker = Masker(specials, MaskSettings(), 0)  # for held-out instances without stored masks
    segments, padding_id = model.shape.segments > 1, model.shape.padding_id
    sums, shown = Sums(specials.size), progress or Silent()
    shown.start("held-out loss", int(heldout.lengths[heldout.copies == 0].sum()), "tokens")
    for batch in frozen_batches(heldout, masker, heldout.longest, batch_tokens, padding_id, segments=segments):
        sums.add(model, batch.to(device), dtype)
        shown.advance(batch.tokens)
    shown.finish()
    if not sums.tokens[:, MASKED].any():
        raise errors.TrainingStopped("heldout", "no masked position is held out", "raise instances.heldout")
    counts = None if train is None else token_counts(train, specials.size)
    return sums.figures(counts, specials)


INSTANCES, MASKED, LOSS, HITS = range(4)


class Sums:
    """Sums of losses by length of instance (up to 16 tokens, 32, 64, ...), and counts of masked tokens by label."""

    def __init__(self, size: int) -> None:
        self.tokens = np.zeros((len(EDGES), 4), np.float64)
        self.pairs = np.zeros(3, np.float64)  # loss, hits, pairs
        self.labels = np.zeros((len(EDGES), size), np.int64)

    @torch.no_grad()
    def add(self, model: Encoder, batch: Batch, dtype: torch.dtype | None) -> None:
        """Add a batch with one instance per row, on the model's device."""
        with torch.autocast(batch.input_ids.device.type, dtype=dtype, enabled=dtype is not None):
            logits = model(batch.input_ids, batch.segment_ids, batch.real, batch.masked)
        B, T = batch.input_ids.shape
        lengths = np.full(B, T) if batch.is_real is None else batch.is_real.sum(1).cpu().numpy()
        group = np.searchsorted(EDGES, lengths)
        of_token = group[batch.masked.cpu().numpy() // T]
        losses, hits = (part.cpu().numpy() for part in _losses(logits.masked, batch.labels))
        self.tokens[:, INSTANCES] += np.bincount(group, minlength=len(EDGES))
        for column, values in ((MASKED, None), (LOSS, losses), (HITS, hits)):
            self.tokens[:, column] += np.bincount(of_token, values, len(EDGES))
        np.add.at(self.labels, (of_token, batch.labels.cpu().numpy()), 1)
        if logits.pairs is not None and batch.pair_labels is not None:
            losses, hits = (part.cpu().numpy() for part in _losses(logits.pairs, batch.pair_labels))
            self.pairs += [losses.sum(), hits.sum(), len(losses)]

    def figures(self, counts: I64 | None, specials: Specials) -> dict[str, Any]:
        """The results in total and by length. ``counts``: of training tokens, for the unigram loss."""
        pair_loss, pair_hits, pairs = self.pairs.tolist()
        total = _means(self.tokens.sum(0), self.labels.sum(0), counts, specials)
        total |= {"pair_loss": pair_loss / pairs, "pair_accuracy": pair_hits / pairs} if pairs else {}
        groups = np.flatnonzero(self.tokens[:, MASKED])
        by_length = [
            {"longest": int(EDGES[n]), **_means(self.tokens[n], self.labels[n], counts, specials)} for n in groups
        ]
        return total | {"by_length": by_length}


def _losses(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each label in float64, and whether it had the highest score."""
    losses = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
    return losses.double(), (logits.argmax(-1) == labels).double()


def _means(sums: F64, labels: I64, counts: I64 | None, specials: Specials) -> dict[str, Any]:
    instances, masked, loss, hits = sums.tolist()
    values: dict[str, Any] = {"loss": loss / masked}
    if counts is not None:
        unigram = unigram_loss(counts, labels, specials)
        values |= {"unigram_loss": unigram, "below_unigram": unigram - loss / masked}
    values |= {"accuracy": hits / masked, "perplexity": math.exp(min(loss / masked, 700.0))}
    return values | {"masked": int(masked), "instances": int(instances)}
