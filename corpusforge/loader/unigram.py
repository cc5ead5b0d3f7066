"""The unigram loss: that of a model that has learned only unigram frequencies, which every other model has to beat.

A large corpus is sampled by the keys of its instances, so that the loss does not depend on how they lie in shards.
"""

from __future__ import annotations

import numpy as np

from corpusforge import errors, seeds
from corpusforge.arrays import I64
from corpusforge.instances.masking import Specials
from corpusforge.loader.corpus import Corpus, flat_positions

COUNTED_TOKENS = 50_000_000
"""Training tokens counted for the unigram loss; of a larger corpus a share of the instances, chosen by hash."""


def unigram_entropy(counts: I64, specials: Specials) -> float:
    """Entropy, in nats, of the counted words (specials left out). ``counts``: ``[size]``."""
    words = counts[specials.words()]
    shares = words[words > 0] / max(int(words.sum()), 1)
    return float(-(shares * np.log(shares)).sum()) if len(shares) else 0.0


def unigram_loss(counts: I64, label_counts: I64, specials: Specials) -> float:
    """Mean loss, in nats, of always predicting word frequencies, add-one smoothed over all ids that are words.

    ``counts``, ``label_counts``: how often each id occurs in training, and is to be predicted, ``[size]``.

    >>> specials = Specials(6, 0, 1, 2, 3, 4)
    >>> unigram_loss(np.array([9, 9, 9, 9, 9, 5]), np.array([0, 0, 0, 0, 0, 3]), specials)
    0.0
    """
    words = specials.words().astype(np.int64)
    smoothed = np.zeros(specials.size, np.float64)
    smoothed[words] = counts[words] + 1
    shares = smoothed / smoothed.sum()
    labels = np.flatnonzero(label_counts)
    return float(np.abs(np.average(np.log(shares[labels]), weights=label_counts[labels])))


def token_counts(corpus: Corpus, size: int, limit: int = COUNTED_TOKENS) -> I64:
    """How often each id occurs in about ``limit`` tokens of the instances, stored masks undone: ``[size]``.

    Specials are counted too. Raises `errors.StageMismatch` for ids that the vocabulary does not have.
    """
    rows = sampled_rows(corpus, limit)
    counts = np.zeros(size, np.int64)
    windows = np.cumsum(corpus.lengths[rows], dtype=np.int64) >> 20
    for window in np.split(rows, np.flatnonzero(np.diff(windows)) + 1):
        counts += _counts_of(corpus, window, size)
    return counts


def sampled_rows(corpus: Corpus, limit: int) -> I64:
    """Instances of about ``limit`` tokens: all, or a share of them chosen by hash."""
    rows = np.flatnonzero(corpus.copies == 0)
    total = int(corpus.lengths[rows].sum(dtype=np.int64))
    if total <= limit:
        return rows
    return rows[seeds.uniforms(0, "unigram", corpus.keys[rows]) < limit / total]


def _counts_of(corpus: Corpus, rows: I64, size: int) -> I64:
    lengths = corpus.lengths[rows]
    within, owner = flat_positions(lengths)
    ids = corpus.ids.take(rows, within, owner).astype(np.int64)
    if corpus.masked_positions is not None and corpus.masked_labels is not None:
        nth, row = flat_positions(corpus.masked_positions.count[rows])
        begins = np.cumsum(lengths, dtype=np.int64) - lengths
        at = begins[row] + corpus.masked_positions.take(rows, nth, row)
        ids[at] = corpus.masked_labels.take(rows, nth, row)
    if len(ids) and ids.max() >= size:
        what = f"the instances hold id {ids.max()}, and the vocabulary has {size}"
        raise errors.StageMismatch("instances", what, "name the vocabulary they were built with")
    return np.bincount(ids, minlength=size)
