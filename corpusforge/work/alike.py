"""How alike two items are: spans or documents that `near.SignWork` signed.

Comes in: rows of two units. Goes out: the Jaccard similarity of each pair. The one decision: it is the true one, of the
two sets of shingles, which are stored; a signature of 64 values is off by 0.05 at a threshold of 0.8 and loses a sixth
of all repeats (benchmarks/near_span_recall.py). Only of documents in an index nothing but signatures is known.
"""

from __future__ import annotations

import numpy as np

from corpusforge.arrays import F32, I64
from corpusforge.dedupe.jaccard import jaccard
from corpusforge.dedupe.lsh import similarity
from corpusforge.work.items import UnitItems

SIGNATURES_AT_ONCE = 1 << 16
"""16 MiB each side at 64 permutations."""


def alike(items: UnitItems, rows: I64, others: UnitItems, other_rows: I64, permutations: int) -> F32:
    """The similarity of ``rows`` of one unit and ``other_rows`` of another, pair by pair."""
    found = np.zeros(len(rows), np.float32)
    known = np.zeros(len(rows), np.bool_)
    for part, mine in items.by_part(rows):
        for other, both in others.by_part(other_rows[mine]):
            chosen = mine[both]
            left, right = part.sets(rows[chosen] - part.first), other.sets(other_rows[chosen] - other.first)
            has = (left.stops > left.starts) & (right.stops > right.starts)
            found[chosen[has]] = jaccard(left.take(has), right.take(has))
            known[chosen[has]] = True
    signed = np.flatnonzero(~known)
    for chosen in np.split(signed, np.arange(SIGNATURES_AT_ONCE, len(signed), SIGNATURES_AT_ONCE)):
        theirs = others.signatures(other_rows[chosen], permutations)
        found[chosen] = similarity(items.signatures(rows[chosen], permutations), theirs)
    return found
