"""Packed rows: what is shuffled, as bytes.

Comes in: columns of 64-bit words, packed one behind the other, little-endian. Goes out: the columns of many such blocks
together, or pairs of places cut by the unit of the first. The one decision: a block says nothing about itself; who
packed it knows how many columns it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from corpusforge.arrays import U64


def pack(*columns: U64) -> bytes:
    """Columns of one length as bytes.

    >>> pack(np.array([1], np.uint64), np.array([2], np.uint64)).hex()
    '01000000000000000200000000000000'
    """
    return np.stack(columns).astype("<u8").tobytes()


def unpack(blocks: Iterable[bytes], columns: int) -> list[U64]:
    """The columns of any number of blocks, one behind the other."""
    parts = [np.frombuffer(block, "<u8").reshape(columns, -1) for block in blocks]
    if not parts:
        return [np.zeros(0, np.uint64)] * columns
    return [np.concatenate([part[k] for part in parts]).astype(np.uint64, copy=False) for k in range(columns)]


def by_unit(places: U64, others: U64, shift: int) -> list[tuple[int, bytes]]:
    """Packed pairs of places for each unit of the first (``place >> shift``), ascending."""
    order = np.argsort(places)
    places, others = places[order], others[order]
    units, first = np.unique(places >> np.uint64(shift), return_index=True)
    bounds = itertools.pairwise([*first.tolist(), len(places)])
    return [(int(unit), pack(places[a:b], others[a:b])) for unit, (a, b) in zip(units, bounds, strict=True)]
