"""The smallest hash of many ranges under many permutations at once.

Comes in: 32-bit hashes in a row, and ranges of them that may overlap. Goes out: for each range and permutation the
minimum of the permuted hashes.

A permutation is ``(multiplier * hash) mod 2^32`` with an odd multiplier: a bijection of 32-bit words.

Decision: permuted hashes are never reduced range by range. A table holds the minimum of the window of 2^k hashes from
each hash on; doubling the windows is one pass over it. A range of 2^k to 2^(k+1) hashes is covered by two windows, so
it costs two look-ups, however many ranges share its hashes. Longer ranges are cut into pieces of two of the widest
windows. The table is built block by block, small enough to stay in the processor's cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusforge.arrays import I64, U32

LEVELS = 5
"""Doublings: windows of up to 32 hashes, pieces of up to 64 (own measurement: the fastest for spans of 70 words)."""
TABLE_CELLS = 1 << 16
"""Cells of a table, two of which are in use: 256 KiB each, for a cache of 1 MiB (own measurement: of tables of 2^14 to
2^18 cells these are the fastest)."""

_PIECE = 2 << LEVELS


class _Pieces(NamedTuple):
    """Pieces of ranges, in the order of blocks and, inside a block, of levels."""

    rows: I64  # where the minima of each piece go
    starts: I64
    stops: I64
    bounds: I64  # run i of pieces of one block and level is bounds[i]:bounds[i + 1]
    blocks: I64  # of each run
    levels: I64


def range_minima(hashes: U32, multipliers: U32, starts: I64, stops: I64) -> U32:
    """For each range the minimum of ``multiplier * hash mod 2^32`` under each multiplier; no range is empty.

    >>> hashes, multipliers = np.array([9, 7, 5, 3], np.uint32), np.array([1, 2**32 - 1], np.uint32)
    >>> range_minima(hashes, multipliers, np.array([0, 1]), np.array([3, 4])).tolist()
    [[5, 4294967287], [3, 4294967289]]
    """
    if not len(starts):
        return np.zeros((0, len(multipliers)), np.uint32)
    block_size = max(_PIECE, TABLE_CELLS // len(multipliers))
    owners, low, high = _cut(starts, stops)
    pieces = _in_blocks(low, high, block_size)
    minima = np.empty((len(low), len(multipliers)), np.uint32)
    room = np.empty((2, block_size + _PIECE, len(multipliers)), np.uint32)
    block, level, table = -1, 0, room[0]
    for run in range(len(pieces.blocks)):
        if pieces.blocks[run] != block:
            block, level = int(pieces.blocks[run]), 0
            here = hashes[block * block_size : (block + 1) * block_size + _PIECE]
            table = np.multiply(here[:, None], multipliers, out=room[0, : len(here)])
        for now in range(level, int(pieces.levels[run])):
            shift = 1 << now
            table = np.minimum(table[:-shift], table[shift:], out=room[(now + 1) % 2, : len(table) - shift])
        level = int(pieces.levels[run])
        chosen = slice(pieces.bounds[run], pieces.bounds[run + 1])
        found = table.take(pieces.starts[chosen] - block * block_size, axis=0)
        last = table.take(pieces.stops[chosen] - (block * block_size + (1 << level)), axis=0)
        minima[pieces.rows[chosen]] = np.minimum(found, last, out=found)
    return _fold(minima, owners, len(starts))


def _cut(starts: I64, stops: I64) -> tuple[I64, I64, I64]:
    """Cut ranges into pieces: the range of each, where it starts and where it stops.

    The first piece of every range comes first, then all others. The last piece of a long range reaches back into the
    one before it, which changes no minimum.
    """
    more = (stops - starts - 1) // _PIECE
    owners = np.repeat(np.arange(len(starts)), more)
    number = np.arange(1, len(owners) + 1) - np.repeat(np.cumsum(more) - more, more)
    high = np.minimum(starts[owners] + (number + 1) * _PIECE, stops[owners])
    owners = np.concatenate([np.arange(len(starts)), owners])
    low = np.concatenate([starts, high - _PIECE])
    return owners, low, np.concatenate([np.minimum(stops, starts + _PIECE), high])


def _fold(minima: U32, owners: I64, count: int) -> U32:
    """The minima of ranges from those of their pieces, which are in the order of `_cut`."""
    found, others = minima[:count], owners[count:]
    if len(others):
        fresh = np.flatnonzero(np.concatenate([[True], others[1:] != others[:-1]]))
        rest = np.minimum.reduceat(minima[count:], fresh, axis=0) if len(fresh) < len(others) else minima[count:]
        rows = others[fresh]
        found[rows] = np.minimum(found[rows], rest)
    return found


def _in_blocks(low: I64, high: I64, block_size: int) -> _Pieces:
    """Sort pieces by the block they start in and the windows that cover them."""
    levels = np.minimum(np.frexp(high - low)[1] - 1, LEVELS)
    runs = low // block_size * (LEVELS + 1) + levels
    order = np.argsort(runs, kind="stable")
    runs = runs[order]
    bounds = np.flatnonzero(np.concatenate([[True], runs[1:] != runs[:-1], [True]]))
    blocks, run_levels = np.divmod(runs[bounds[:-1]], LEVELS + 1)
    return _Pieces(order, low[order], high[order], bounds, blocks, run_levels)
