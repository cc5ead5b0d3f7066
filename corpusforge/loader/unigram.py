"""The unigram line: the loss of a model that knows how often words are, and nothing else.

Comes in: instances. Goes out: counts of ids, and the entropy of their distribution in nats. Decision: a large corpus is
sampled by the keys of its instances, so that the line does not depend on how they lie in shards.
"""

from __future__ import annotations

import numpy as np

from corpusforge import errors, seeds
from corpusforge.instances.masking import Specials
from corpusforge.loader.corpus import Corpus, Ints, flat_positions

SAMPLED_TOKENS = 4_000_000
"""Training tokens counted for the line in the log: an entropy of 10^4 words from so many is off by under 0.01."""


def unigram_entropy(corpus: Corpus, specials: Specials, limit: int = SAMPLED_TOKENS) -> float:
    """Entropy, in nats, of the words of a corpus (specials left out), from about ``limit`` tokens of it."""
    counts = count_ids(corpus, sampled_rows(corpus, limit), specials.size)[specials.words()]
    shares = counts[counts > 0] / max(int(counts.sum()), 1)
    return float(-(shares * np.log(shares)).sum()) if len(shares) else 0.0


def sampled_rows(corpus: Corpus, limit: int) -> Ints:
    """Instances of about ``limit`` tokens: all, or a share of them chosen by hash."""
    rows = np.flatnonzero(corpus.copies == 0)
    total = int(corpus.lengths[rows].sum(dtype=np.int64))
    if total <= limit:
        return rows
    return rows[seeds.uniforms(0, "unigram", corpus.keys[rows]) < limit / total]


def count_ids(corpus: Corpus, rows: Ints, size: int) -> Ints:
    """How often each id stands in some instances, stored masks undone: ``[size]``. Specials are counted too.

    Raises `errors.StageMismatch` for ids that the vocabulary does not have.
    """
    counts = np.zeros(size, np.int64)
    windows = np.cumsum(corpus.lengths[rows], dtype=np.int64) >> 20
    for some in np.split(rows, np.flatnonzero(np.diff(windows)) + 1):
        counts += _counts_of(corpus, some, size)
    return counts


def _counts_of(corpus: Corpus, rows: Ints, size: int) -> Ints:
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
