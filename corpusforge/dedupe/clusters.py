"""Group documents that resemble each other, and choose the copy of each group that is kept.

A group is a connected component of the pairs of similar documents. So two documents of a group may be less similar than
the threshold if others connect them. The kept copy depends on the content of the group alone.

Components are found by label propagation: every root takes the smallest root next to it, then all rows take their
root's root until nothing changes. A root with a smaller neighbor disappears within one round, so the number of rounds
grows with the logarithm of the number of rows, also for chains and stars. The order of the pairs does not matter.

Memory: 16 bytes per pair and 8 per row, and about twice as much again during a round. Ten million random pairs of ten
million rows peak at 0.6 GB and take 2.5 s on one core, so 10^8 pairs need 6 GB. `lsh.bucket_pairs`
keeps their number linear in that of the rows.
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
        while not np.array_equal(shorter := labels[labels], labels):  # until every row points to the root of its tree
            labels = shorter
    return labels


class Grouped(NamedTuple):
    """Documents that are in a group of two or more, ascending by place."""

    places: U64
    kept: U64  # place of the copy that is kept; for that copy its own
    sizes: I64  # documents of the group


def places_of(earlier: U64, later: U64) -> U64:
    """All places that are in a pair, ascending."""
    return np.unique(np.concatenate([earlier, later]))


def group(earlier: U64, later: U64, places: U64, order: tuple[I64, U64, I64]) -> Grouped:
    """Group pairs of places. ``places``: `places_of` them; ``order``: columns of a total order of the places, the first
    weighs most; the smallest of each group is kept.

    >>> pairs = np.array([7, 8], np.uint64), np.array([8, 9], np.uint64)
    >>> ranks = np.array([1, 0, 0]), np.array([5, 6, 4], np.uint64), np.zeros(3, np.int64)
    >>> group(*pairs, places_of(*pairs), ranks).kept.tolist()
    [9, 9, 9]
    """
    pairs = np.stack([np.searchsorted(places, earlier), np.searchsorted(places, later)], 1)
    labels = components(pairs.astype(np.int64), len(places))
    by_rank = np.lexsort((places, *order[::-1], labels))
    fresh = np.ones(len(places), np.bool_)
    fresh[1:] = labels[by_rank[1:]] != labels[by_rank[:-1]]
    kept = np.zeros(len(places), np.int64)
    kept[labels[by_rank[fresh]]] = by_rank[fresh]
    sizes = np.bincount(labels, minlength=len(places))
    return Grouped(places, places[kept[labels]], sizes[labels])
