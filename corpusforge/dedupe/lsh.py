"""Find the pairs of signatures that are worth comparing: bands of a signature, and candidate pairs of a bucket.

A signature of b bands of r positions meets another of Jaccard similarity s in at least one band with a probability of
``1 - (1 - s^r)^b`` (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4).

In a bucket of m rows not all m^2 / 2 pairs are candidates. In the order of kept copies, which is one of content, each
row is paired with the `NEIGHBORS` rows before it and with the first `NEIGHBORS` of the bucket. These are all pairs of
small buckets, the work grows linearly with the size of large ones, and the pairs do not depend on the order in which
rows arrive.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpusforge import seeds
from corpusforge.arrays import F32, F64, I64, U32, U64, repeated_rows, run_starts
from corpusforge.dedupe.spans import pack_by_unit, unpack

NEIGHBORS = 4
"""A row is compared with this many rows before it and this many first rows of its bucket: all pairs of buckets of up to
nine rows. Rows of equal shingles never share a bucket (`pairs`), and a row has a bucket in every band."""

WEIGHTS = (0.05, 0.95)
"""Weights of a pair below the threshold that meets, and of a pair above it that does not. Pairs that meet are compared,
so the former cost time and only the latter are errors. At datatrove's 112 permutations and a threshold of 0.8 these
weights give the 14 bands of 8 rows that it uses (datatrove, pipeline/dedup/minhash.py, MinhashConfig)."""


_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd, so that no position of a band is lost in 64 bits
_ROWS = 4096  # signatures at once: a megabyte of 64 permutations


class Bands(NamedTuple):
    """A signature is split into ``bands`` runs of ``rows`` positions; the remaining positions are not used."""

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
    """The bands of the least weighted share of pairs below the threshold that meet and pairs above it that do not.

    The same as datasketch's ``MinHashLSH`` chooses for these weights (``datasketch.lsh._optimal_param``), of equals the
    fewest bands, without an import of a quarter of a second: the curve is a polynomial, which this many nodes of Gauss
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
    """The hash of every band of every signature, ``uint64[n, bands]``; it covers the number of the band."""
    hashes = np.empty((len(signatures), bands.bands), np.uint64)
    numbers = np.arange(1, bands.bands + 1, dtype=np.uint64)[:, None]
    for start in range(0, len(signatures), _ROWS):
        block = np.ascontiguousarray(signatures[start : start + _ROWS, : bands.bands * bands.rows].T)
        columns = block.reshape(bands.bands, bands.rows, -1)
        mixed = np.repeat(numbers, columns.shape[2], axis=1)
        for k in range(bands.rows):
            mixed *= _BASE
            mixed += columns[:, k]
        hashes[start : start + _ROWS] = mixed.T
    return seeds.mix(hashes)


def similarity(left: U32, right: U32) -> F32:
    """The share of equal positions of two signatures, row by row.

    >>> similarity(np.array([[1, 2, 3, 4]], np.uint32), np.array([[1, 2, 3, 5]], np.uint32)).tolist()
    [0.75]
    """
    return np.asarray(np.mean(left == right, axis=1, dtype=np.float32))


def count_pairs(sizes: I64) -> int:
    """The number of pairs that `bucket_pairs` gives of buckets of these sizes.

    >>> count_pairs(np.array([1, 2, 3, 100]))
    768
    """
    whole = 2 * NEIGHBORS
    small = np.minimum(sizes, whole)
    return int((small * (small - 1) // 2 + (sizes - small) * whole).sum())


def bucket_pairs(buckets: U64, order: tuple[npt.NDArray[np.generic], ...]) -> I64:
    """Candidate pairs of rows, ``int64[m, 2]``, the earlier row first; a pair that meets in two bands is given once.

    ``buckets``: the band hash of each row (fewer than 2^32 rows); ``order``: columns of a total order of content, the
    first weighs most.

    >>> bucket_pairs(np.array([7, 8, 7], np.uint64), (np.array([2, 1, 0]),)).tolist()
    [[2, 0]]
    """
    by_bucket = np.lexsort((*order[::-1], buckets))
    ordered = buckets[by_bucket]
    count = len(ordered)
    fresh = run_starts(ordered)
    first = np.flatnonzero(fresh)[np.cumsum(fresh) - 1] if count else np.zeros(0, np.int64)
    rank = np.arange(count) - first
    left, right = [], []
    for k in range(1, NEIGHBORS + 1):
        here = np.flatnonzero(rank >= k)
        far = np.flatnonzero(rank >= NEIGHBORS + k)
        left += [here - k, first[far] + k - 1]
        right += [here, far]
    pairs = by_bucket[np.concatenate(left)] << 32 | by_bucket[np.concatenate(right)]
    pairs.sort()
    fresh = run_starts(pairs)
    return np.stack([pairs[fresh] >> 32, pairs[fresh] & 0xFFFFFFFF], 1)


def candidate_pairs(blocks: Iterable[bytes], *, ordered: bool = False) -> list[tuple[int, bytes]]:
    """Pairs of items that meet in a band, as packed places of the later and the earlier for each unit of the later.

    ``blocks``: packed columns of band hashes, document keys, places and, where they are ``ordered``, of the order that
    has precedence over the keys; of any units in any order, but with all items of equal hashes among them.
    """
    hashes, keys, places, *orders = unpack(blocks, 4 if ordered else 3)
    chosen = repeated_rows(hashes)
    first = [column[chosen].view(np.int64) for column in orders]
    pairs = bucket_pairs(hashes[chosen], (*first, keys[chosen], places[chosen]))
    return pack_by_unit(places[chosen[pairs[:, 1]]], places[chosen[pairs[:, 0]]])


def unpack_pairs(blocks: Iterable[bytes]) -> tuple[U64, U64]:
    """Pairs from any number of packed blocks, each once, ascending by the later and then the earlier place."""
    later, earlier = unpack(blocks, 2)
    order = np.lexsort((earlier, later))
    later, earlier = later[order], earlier[order]
    fresh = run_starts(later, earlier)
    return later[fresh], earlier[fresh]


class Shared(NamedTuple):
    """Which band hashes of a range occur more than once. ``bits``: one for each value of the first bits of a mark."""

    bits: bytes
    hashes: int  # the number with their bit set
    pairs: int  # the most pairs that they give


def find_shared(marks: Iterable[bytes], width: int) -> Shared:
    """Find marks that occur more than once. ``marks``: the last 32 bits of all band hashes of a range, little-endian.

    >>> find_shared([np.array([7, 9 << 24, 7], "<u4").tobytes()], 8)
    Shared(bits=b'\\x01\\x00...', hashes=2, pairs=1)
    """
    ascending = np.sort(np.frombuffer(b"".join(marks), "<u4"))
    fresh = np.flatnonzero(run_starts(ascending))
    sizes = np.diff(np.append(fresh, len(ascending)))
    is_set = np.zeros(1 << width, np.bool_)
    is_set[ascending[fresh[sizes > 1]] >> np.uint32(32 - width)] = True
    passing = np.count_nonzero(is_set[ascending >> np.uint32(32 - width)])
    return Shared(np.packbits(is_set, bitorder="little").tobytes(), int(passing), count_pairs(sizes))
