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
from corpusforge.arrays import F32, F64, I64, U32, U64

NEIGHBOURS = 4
"""Rows before it, and first rows of its bucket, that a row is compared with: buckets of up to nine rows are complete.
Rows of the same shingles are not in a bucket together (`near`), and a row has a bucket in every band."""

WEIGHTS = (0.05, 0.95)
"""What a pair below the threshold that meets weighs, and a pair above it that does not. Pairs that meet are compared,
so the first cost time and only the second are errors. At datatrove's 112 permutations and a threshold of 0.8 these
weights give the 14 bands of 8 rows that it uses (datatrove, pipeline/dedup/minhash.py, MinhashConfig)."""


_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd, so no position of a band is lost in 64 bits
_ROWS = 4096  # signatures at once: a megabyte of 64 permutations


class Bands(NamedTuple):
    """How a signature is cut: ``bands`` runs of ``rows`` positions; what is left over is not used."""

    bands: int
    rows: int

    def recall(self, similarity: float | F64) -> F64:
        """The probability that two sets of this similarity meet in a band.

        >>> Bands(9, 7).recall(np.array([0.5, 0.8])).round(2).tolist()
        [0.07, 0.88]
        """
        return np.asarray(1 - (1 - np.asarray(similarity) ** self.rows) ** self.bands)


@functools.cache
def bands_for(threshold: float, permutations: int) -> Bands:
    """The bands at which pairs below the threshold that meet and pairs above it that do not weigh the least.

    The same as datasketch's ``MinHashLSH`` finds for these weights (``datasketch.lsh._optimal_param``), of equals the
    fewest bands, without an import of a quarter of a second: the curve is a polynomial, which so many nodes of Gauss
    and Legendre integrate exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(permutations // 2 + 1)
    nodes, weights = (nodes + 1) / 2, weights / 2
    below, above = nodes * threshold, threshold + nodes * (1 - threshold)
    best, least = Bands(1, 1), np.inf
    for bands in range(1, permutations + 1):
        rows = np.arange(1, permutations // bands + 1)[:, None]
        met = (1 - (1 - below**rows) ** bands) @ weights * threshold
        missed = (1 - above**rows) ** bands @ weights * (1 - threshold)
        errors = WEIGHTS[0] * met + WEIGHTS[1] * missed
        if errors.min() < least:
            best, least = Bands(bands, int(errors.argmin()) + 1), errors.min()
    return best


def band_hashes(signatures: U32, bands: Bands) -> U64:
    """A hash of every band of every signature, ``uint64[n, bands]``; the number of the band is part of it."""
    found = np.empty((len(signatures), bands.bands), np.uint64)
    numbers = np.arange(1, bands.bands + 1, dtype=np.uint64)[:, None]
    for start in range(0, len(signatures), _ROWS):
        block = np.ascontiguousarray(signatures[start : start + _ROWS, : bands.bands * bands.rows].T)
        columns = block.reshape(bands.bands, bands.rows, -1)
        mixed = np.repeat(numbers, columns.shape[2], axis=1)
        for k in range(bands.rows):
            mixed *= _BASE
            mixed += columns[:, k]
        found[start : start + _ROWS] = mixed.T
    return seeds.mix(found)


def similarity(left: U32, right: U32) -> F32:
    """The share of equal positions of two signatures, row by row.

    >>> similarity(np.array([[1, 2, 3, 4]], np.uint32), np.array([[1, 2, 3, 5]], np.uint32)).tolist()
    [0.75]
    """
    return np.asarray(np.mean(left == right, axis=1, dtype=np.float32))


def count_pairs(sizes: I64) -> int:
    """How many pairs `bucket_pairs` gives of buckets of so many rows.

    >>> count_pairs(np.array([1, 2, 3, 100]))
    768
    """
    whole = 2 * NEIGHBOURS
    small = np.minimum(sizes, whole)
    return int((small * (small - 1) // 2 + (sizes - small) * whole).sum())


def bucket_pairs(buckets: U64, order: tuple[npt.NDArray[np.generic], ...]) -> I64:
    """Candidate pairs of rows, ``int64[m, 2]``, the earlier one first; a pair that meets in two bands comes once.

    ``buckets``: the band hash of each row (fewer than 2^32 rows); ``order``: columns of a total order of content, the
    first weighs most.

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
    pairs = by_bucket[np.concatenate(left)] << 32 | by_bucket[np.concatenate(right)]
    pairs.sort()
    fresh = np.ones(len(pairs), np.bool_)
    fresh[1:] = pairs[1:] != pairs[:-1]
    return np.stack([pairs[fresh] >> 32, pairs[fresh] & 0xFFFFFFFF], 1)
