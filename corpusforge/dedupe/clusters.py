"""Groups of documents that hang together: connected components of pairs.

Comes in: pairs of row numbers. Goes out: for each row the smallest number of its component.

Decision: labels run towards the smallest: every root takes the smallest root next to it, then all rows take their
root's root until nothing moves. A root with a smaller one next to it is gone after one round and its neighbours
after the next, so rounds grow with the logarithm of the number of rows, also for chains and stars. The result does not
depend on the order of the pairs.

Memory: 16 bytes a pair and 8 a row, and about twice as much again while a round runs. Ten million random pairs of ten
million rows peak at 0.6 GB and take 2.5 s on one core, so 10^8 pairs need 6 GB; beyond that the pairs of a corpus must
be cut down first, as by `lsh.bucket_pairs`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusforge.arrays import I64, U64


def components(pairs: I64, count: int) -> I64:
    """The smallest row of the component of each of ``count`` rows. ``pairs``: ``int64[m, 2]``.

    >>> components(np.array([[1, 3], [4, 3]]), 5).tolist()
    [0, 1, 2, 1, 1]
    """
    labels = np.arange(count)
    left, right = pairs[:, 0], pairs[:, 1]
    while len(left):
        left, right = labels[left], labels[right]
        apart = left != right
        left, right = left[apart], right[apart]
        np.minimum.at(labels, np.maximum(left, right), np.minimum(left, right))
        labels = _shortened(labels)
    return labels


def _shortened(labels: I64) -> I64:
    """Every row points to the root of its tree."""
    while True:
        next_labels = labels[labels]
        if np.array_equal(next_labels, labels):
            return labels
        labels = next_labels


# MERGED DOCSTRING of corpusforge.dedupe.groups:
# Groups of documents that resemble each other, and the one of each that stays.
#
# Comes in: pairs of places of documents, and what orders them. Goes out: for each place its group's survivor and size.
# The one decision: a group is a connected component of the pairs, so two of its documents may be less alike than the
# threshold asks for where others lead from one to the other; the survivor depends on the group alone.


class Grouped(NamedTuple):
    """Documents that are in a group of two or more, ascending by place."""

    places: U64
    survivors: U64  # place of the one that stays, for itself its own
    sizes: I64  # documents of the group


def places_of(earlier: U64, later: U64) -> U64:
    """All places that are in a pair, ascending."""
    return np.unique(np.concatenate([earlier, later]))


def group(earlier: U64, later: U64, places: U64, order: tuple[I64, U64, I64]) -> Grouped:
    """Components of the pairs. ``places``: `places_of` them; ``order``: columns, the first weighs most, for each place.

    >>> pairs = np.array([7, 8], np.uint64), np.array([8, 9], np.uint64)
    >>> ranks = np.array([1, 0, 0]), np.array([5, 6, 4], np.uint64), np.zeros(3, np.int64)
    >>> group(*pairs, places_of(*pairs), ranks).survivors.tolist()
    [9, 9, 9]
    """
    pairs = np.stack([np.searchsorted(places, earlier), np.searchsorted(places, later)], 1)
    labels = components(pairs.astype(np.int64), len(places))
    by_rank = np.lexsort((places, *order[::-1], labels))
    fresh = np.ones(len(places), np.bool_)
    fresh[1:] = labels[by_rank[1:]] != labels[by_rank[:-1]]
    survivor = np.zeros(len(places), np.int64)
    survivor[labels[by_rank[fresh]]] = by_rank[fresh]
    sizes = np.bincount(labels, minlength=len(places))
    return Grouped(places, places[survivor[labels]], sizes[labels])
