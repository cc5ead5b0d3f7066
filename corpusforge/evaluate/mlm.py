"""Held-out MLM loss, next to the line it has to cross: what guessing by word frequency alone would lose.

Comes in: an encoder, held-out instances with frozen masks, training instances. Goes out: loss, accuracy and
perplexity, and the unigram loss on the very same labels, from add-one smoothed counts of the training tokens. A model
that stays at the unigram line (often near 7) has learned frequencies and no language.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from corpusforge import errors
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.loader.corpus import Corpus, Ints, flat_positions
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.heldout import frozen_batches, measure
from corpusforge.trainer.model import Encoder

COUNTED_TOKENS = 50_000_000
"""Training tokens counted for the unigram line; of a larger corpus evenly spread instances."""


def heldout_loss(
    model: Encoder,
    heldout: Corpus,
    train: Corpus | None,
    specials: Specials,
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
) -> dict[str, Any]:
    """Loss in nats over the masked positions of all held-out instances, and the unigram line if ``train`` is given.

    Raises `errors.StageMismatch` where instances are longer than the model's positions, `errors.TrainingStopped`
    where nothing is held out.
    """
    room = model.shape.longest
    if heldout.longest > room:
        what = f"held-out instances have {heldout.longest} tokens, and the model {room} positions"
        raise errors.StageMismatch("heldout", what, "evaluate on the instances the model was trained for")
    masker = Masker(specials, MaskSettings(), 0)  # for held-out instances without masks stored with them
    segments, padding_id = model.shape.segments > 1, model.shape.padding_id
    label_counts = np.zeros(specials.size, np.int64)

    def counted() -> Iterator[Batch]:
        for batch in frozen_batches(heldout, masker, heldout.longest, batch_tokens, padding_id, segments=segments):
            np.add.at(label_counts, batch.labels.numpy(), 1)
            yield batch

    found = measure(model, counted(), device, dtype)
    if found is None:
        raise errors.TrainingStopped("heldout", "no masked position is held out", "raise instances.heldout")
    result: dict[str, Any] = dataclasses.asdict(found)
    if train is not None:
        line = unigram_loss(token_counts(train, specials.size), label_counts, specials)
        result |= {"unigram_loss": line, "below_unigram": line - found.loss}
    return result


def token_counts(corpus: Corpus, size: int, limit: int = COUNTED_TOKENS) -> Ints:
    """How often each id stands in the instances, stored masks undone: ``[size]``. Specials are counted too."""
    rows = np.flatnonzero(corpus.copies == 0)
    total = int(corpus.lengths[rows].sum())
    if total > limit:
        rows = rows[np.linspace(0, len(rows) - 1, len(rows) * limit // total).astype(np.int64)]
    counts = np.zeros(size, np.int64)
    windows = np.cumsum(corpus.lengths[rows]) >> 20
    for some in np.split(rows, np.flatnonzero(np.diff(windows)) + 1):
        counts += _counts_of(corpus, some, size)
    return counts


def _counts_of(corpus: Corpus, rows: Ints, size: int) -> Ints:
    lengths = corpus.lengths[rows]
    within, owner = flat_positions(lengths)
    ids = corpus.ids.take(rows, within, owner).astype(np.int64)
    if corpus.masked_positions is not None and corpus.masked_labels is not None:
        nth, row = flat_positions(corpus.masked_positions.count[rows])
        begins = np.cumsum(lengths) - lengths
        at = begins[row] + corpus.masked_positions.take(rows, nth, row)
        ids[at] = corpus.masked_labels.take(rows, nth, row)
    if len(ids) and ids.max() >= size:
        what = f"the instances hold id {ids.max()}, and the vocabulary has {size}"
        raise errors.StageMismatch("instances", what, "name the vocabulary they were built with")
    return np.bincount(ids, minlength=size)


def unigram_loss(counts: Ints, label_counts: Ints, specials: Specials) -> float:
    """Mean loss, in nats, of always predicting word frequencies, add-one smoothed over all ids that are words.

    ``counts``, ``label_counts``: how often each id stands in training, and was to be predicted, ``[size]``.

    >>> specials = Specials(6, 0, 1, 2, 3, 4)
    >>> unigram_loss(np.array([9, 9, 9, 9, 9, 5]), np.array([0, 0, 0, 0, 0, 3]), specials)
    0.0
    """
    words = specials.words().astype(np.int64)
    smoothed = np.zeros(specials.size, np.float64)
    smoothed[words] = counts[words] + 1
    shares = smoothed / smoothed.sum()
    asked = np.flatnonzero(label_counts)
    return float(np.abs(np.average(np.log(shares[asked]), weights=label_counts[asked])))
