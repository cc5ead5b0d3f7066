"""The held-out loss: on instances that were set aside, under masks that never change.

Masks come from the shards if they are stored there, else they are those of epoch 0; the sample is taken in the order of
the instances' keys. So the same weights give the same loss whenever and wherever it is measured.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch

from corpusforge.arrays import I64
from corpusforge.instances.masking import Masker
from corpusforge.loader import batcher as loader
from corpusforge.loader.corpus import Corpus
from corpusforge.loader.unigram import unigram_loss
from corpusforge.trainer.batches import Batch, to_tensors
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.prepare import Job
from corpusforge.trainer.step import SUMS, batch_losses

HELDOUT_TOKENS = 131_072
"""Tokens of held-out instances on which the loss is measured during training."""


@dataclasses.dataclass(frozen=True)
class Loss:
    """Means over masked positions, in nats; the pair fields are None without pairs.

    ``unigram``: the loss of guessing by token frequencies on the same tokens; None if it was not computed.
    """

    loss: float
    unigram: float | None = dataclasses.field(default=None, kw_only=True)
    accuracy: float
    perplexity: float
    masked: int
    pair_loss: float | None
    pair_accuracy: float | None


def frozen_batches(
    corpus: Corpus, masker: Masker, length: int, budget: int, padding_id: int, *, segments: bool, tokens: int = 0
) -> Iterator[Batch]:
    """Micro-batches of ``budget`` tokens over instances truncated to ``length``; ``tokens``: stop after about this many
    (0: read all)."""
    for batch in loader.frozen_batches(corpus, masker, length, budget, padding_id, tokens=tokens):
        yield to_tensors(batch, segments=segments, pairs=True)


@torch.no_grad()
def measure(
    model: Encoder,
    batches: Iterator[Batch],
    device: torch.device,
    dtype: torch.dtype | None,
    unigram: Callable[[I64], float] | None = None,
) -> Loss | None:
    """The loss of a model over batches, without dropout; None if there was nothing to predict.

    ``unigram``: computes the unigram loss from how often each id is a label.
    """
    sums, labels = torch.zeros(SUMS, dtype=torch.float64), np.zeros(model.shape.vocabulary, np.int64)
    was_training = model.training
    model.eval()
    for batch in batches:
        labels += np.bincount(batch.labels.numpy(), minlength=len(labels))
        sums += batch_losses(model, batch.to(device), dtype)[0].cpu()
    model.train(was_training)
    mlm, hits, masked, pair, pair_hits, pairs, *_ = sums.tolist()
    if not masked:
        return None
    loss = mlm / masked
    perplexity = math.exp(min(loss, 700.0))
    with_pairs = (pair / pairs, pair_hits / pairs) if pairs else (None, None)
    return Loss(loss, hits / masked, perplexity, int(masked), *with_pairs, unigram=unigram(labels) if unigram else None)


def measure_job(job: Job, model: Encoder, part: int, counts: I64, should_stop: Callable[[], bool]) -> Loss | None:
    """The loss on a job's held-out sample at the length of one of its parts; None if nothing is held out.

    ``counts``: how often each id occurs in training. Once ``should_stop`` is true, the rest of the sample is left out.
    """
    if job.heldout is None:
        return None
    batches = frozen_batches(
        job.heldout,
        job.masker,
        job.plan.parts[part].length,
        job.settings.micro_batch_tokens,
        job.specials.pad,
        segments=job.shape.segments > 1,
        tokens=HELDOUT_TOKENS,
    )
    until = itertools.takewhile(lambda _: not should_stop(), batches)
    unigram = functools.partial(unigram_loss, counts, specials=job.specials)
    return measure(model, until, job.device, job.dtype, unigram)
