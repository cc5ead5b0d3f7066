"""Which signatures are worth comparing: bands of a signature, and pairs inside a bucket.

Comes in: MinHash signatures. Goes out: a hash a band, candidate pairs of rows whose hashes are equal in a band, and the
similarity of pairs by their signatures.

A signature of b bands of r positions meets another of Jaccard similarity s in at least one band with a probability of
``1 - (1 - s^r)^b`` (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4).

Decision: in a bucket of m rows not all m^2 / 2 pairs are candidates. In the order of survivors, which is one of
content, each row is paired with the `NEIGHBOURS` rows before it and with the first `NEIGHBOURS` of the bucket: all
pairs of small buckets, work that grows as the bucket does in large ones, and the same pairs in whatever order rows
arrive.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpusforge import seeds
from corpusforge.dedupe.minima import U32
from corpusforge.seeds import U64
from corpusforge.text import I64

NEIGHBOURS = 4
"""Rows before it, and first rows of its bucket, that a row is compared with: buckets of up to nine rows are complete.
Rows of one and the same signature are not in a bucket together (`near`), and a row has a bucket in every band."""

WEIGHTS = (0.05, 0.95)
"""What a pair below the threshold that meets weighs, and a pair above it that does not. Pairs that meet are compared,
so the first cost time and only the second are errors. At datatrove's 112 permutations and a threshold of 0.8 these
weights give the 14 bands of 8 rows that it uses (datatrove, pipeline/dedup/minhash.py, MinhashConfig)."""


class Bands(NamedTuple):
    """How a signature is cut: ``bands`` runs of ``rows`` positions; what is left over is not used."""

    bands: int
    rows: int

    def recall(self, similarity: float) -> float:
        """The probability that two sets of this similarity meet in a band.

        >>> round(Bands(9, 7).recall(0.8), 2)
        0.88
        """
        return float(1 - (1 - similarity**self.rows) ** self.bands)


@functools.cache
def bands_for(threshold: float, permutations: int) -> Bands:
    """The bands at which pairs below the threshold that meet and pairs above it that do not weigh the least.

    Computed by datasketch (``datasketch.lsh._optimal_param``) with `WEIGHTS`.
    """
    from datasketch.lsh import _optimal_param

    bands, rows = _optimal_param(threshold, permutations, *WEIGHTS)
    return Bands(int(bands), int(rows))


def band_hashes(signatures: U32, bands: Bands) -> U64:
    """A hash of every band of every signature; the number of the band is part of it."""
    found = np.zeros((len(signatures), bands.bands), np.uint64)
    for band in range(bands.bands):
        mixed = np.full(len(signatures), band, np.uint64)
        for k in range(band * bands.rows, (band + 1) * bands.rows):
            mixed = seeds.mix(mixed ^ signatures[:, k])
        found[:, band] = mixed
    return found


def similarity(left: U32, right: U32) -> npt.NDArray[np.float32]:
    """The share of equal positions of two signatures, row by row.

    >>> similarity(np.array([[1, 2, 3, 4]], np.uint32), np.array([[1, 2, 3, 5]], np.uint32)).tolist()
    [0.75]
    """
    return np.asarray(np.mean(left == right, axis=1, dtype=np.float32))


def bucket_pairs(buckets: U64, order: tuple[npt.NDArray[np.generic], ...]) -> I64:
    """Candidate pairs of rows, ``int64[m, 2]``, the earlier one first; a pair that meets in two bands comes once.

    ``buckets``: the band hash of each row; ``order``: columns of a total order of content, the first weighs most.

    >>> bucket_pairs(np.array([7, 8, 7], np.uint64), (np.array([2, 1, 0]),)).tolist()
    [[2, 0]]
    """
    by_bucket = np.lexsort((*order[::-1], buckets))
    ordered = buckets[by_bucket]
    count = len(ordered)
    fresh = np.ones(count, np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    first = np.flatnonzero(fresh)[np.cumsum(fresh) - 1] if count else np.zeros(0, np.int64)
    rank = np.arange(count) - first
    left, right = [], []
    for k in range(1, NEIGHBOURS + 1):
        here = np.flatnonzero(rank >= k)
        far = np.flatnonzero(rank >= NEIGHBOURS + k)
        left += [here - k, first[far] + k - 1]
        right += [here, far]
    pairs = np.stack([by_bucket[np.concatenate(left)], by_bucket[np.concatenate(right)]], 1)
    return np.unique(pairs, axis=0)
