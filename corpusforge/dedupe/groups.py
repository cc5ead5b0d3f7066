"""Groups of documents that resemble each other, and the one of each that stays.

Comes in: pairs of places of documents, and what orders them. Goes out: for each place its group's survivor and size.
The one decision: a group is a connected component of the pairs, so two of its documents may be less alike than the
threshold asks for where others lead from one to the other; the survivor depends on the group alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusforge.arrays import I64, U64
from corpusforge.dedupe.clusters import components


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
