"""Packing: which instances share a row, decided by their lengths alone.

Comes in: lengths in descending order, and the tokens a row holds. Goes out: `Packs`, rows as lists of *ranks* (places
in that order). The one decision: whoever has a rank in an epoch is drawn later, among instances of that length. So
the rows are found once, there are equally many in every epoch, and any position is reached without packing what lies
before it. (Packing the histogram of lengths: Krell et al. 2021, arXiv 2107.02027, section 3.)

Rows of many instances are *dealt*: lengths go round by round, the longest of a round to the emptiest row, so every row
gets its share of every length and almost the same load. Best-fit-decreasing would put long ones with long ones; it is
for where dealing takes more rows, as where a row holds two or three instances.
"""

from __future__ import annotations

import bisect
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpusforge.arrays import I32, I64, offsets_of

DEALT_FILLS = (0.999, 0.995, 0.99)
"""Shares of a row that dealing tries to fill, one after the other."""

DEALT_ROWS = 1.01
"""How many times the rows of best fit dealing may take: a hundredth more padding for rows that are alike."""

BYTES_OF_PACKS = 4
"""Held for each packed instance: its rank. Finding rows takes 48 for a moment."""


class Packs(NamedTuple):
    """Row k holds ``ranks[offsets[k]:offsets[k + 1]]``; every rank is in one row."""

    ranks: I32
    offsets: I64

    def __len__(self) -> int:
        return len(self.offsets) - 1


def pack(lengths: npt.NDArray[np.integer], room: int) -> Packs:
    """Rows of at most ``room`` tokens for instances of these lengths, descending, none longer than ``room``.

    >>> packs = pack(np.array([9, 7, 4, 3, 1]), 12)
    >>> [packs.ranks[a:b].tolist() for a, b in zip(packs.offsets, packs.offsets[1:])]
    [[0, 3], [1, 2, 4]]
    """
    tight = best_fit(lengths, room)
    total = int(lengths.sum(dtype=np.int64))
    for fill in DEALT_FILLS:
        rows = min(len(lengths), int(np.ceil(total / (room * fill))))
        if rows > DEALT_ROWS * len(tight):
            break
        dealt = _deal(lengths, rows, room)
        if dealt is not None:
            return dealt
    return tight


def _deal(lengths: npt.NDArray[np.integer], rows: int, room: int) -> Packs | None:
    """Deal into ``rows`` rows; None where one of them would hold more than ``room``."""
    loads, row_of = np.zeros(rows, np.int64), np.empty(len(lengths), np.int32)
    for begin in range(0, len(lengths), rows):  # a round for each instance of a row
        some = lengths[begin : begin + rows]
        emptiest = np.argsort(loads, kind="stable")[: len(some)]
        loads[emptiest] += some
        row_of[begin : begin + rows] = emptiest
        if int(loads[emptiest].max()) > room:
            return None
    ranks = np.argsort(row_of, kind="stable").astype(np.int32)
    return Packs(ranks, offsets_of(np.bincount(row_of, minlength=rows)))


def best_fit(lengths: npt.NDArray[np.integer], room: int) -> Packs:
    """Best-fit-decreasing: each instance, the longest first, goes to the fullest row that has room for it.

    Rows that hold the same lengths are handled as one, so the cost is of different lengths, not of instances.
    """
    groups = _Groups(room)
    values, firsts = np.unique(-lengths.astype(np.int64), return_index=True)
    for length, count in zip((-values).tolist(), np.diff(firsts, append=len(lengths)).tolist(), strict=True):
        groups.place(length, count)
    next_rank = dict(zip((-values).tolist(), firsts.tolist(), strict=True))
    ranks, sizes = [], []
    for rows, content in groups.contents():  # some three groups a length
        columns = []
        for length, each in content:
            first = next_rank[length]
            columns.append(np.arange(first, first + rows * each, dtype=np.int32).reshape(rows, each))
            next_rank[length] = first + rows * each
        block = np.concatenate(columns, 1)
        ranks.append(block.ravel())
        sizes.append(np.full(rows, block.shape[1], np.int64))
    return Packs(np.concatenate(ranks), offsets_of(np.concatenate(sizes)))


Content = tuple["Content | None", int, int]
"""What each row of a group holds: what it held before, a length, and how many of it."""


class _Groups:
    """Groups of rows with equal content, by the room left in them."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._by_left: dict[int, list[tuple[int, Content]]] = {}  # room left: (rows, content)
        self._lefts: list[int] = []  # its keys, ascending

    def place(self, length: int, count: int) -> None:
        """Place ``count`` instances of a length that is not above those placed before."""
        while count:
            at = bisect.bisect_left(self._lefts, length)
            if at == len(self._lefts):
                count = self._fill(count, self._room, length, count, None)
                continue
            left = self._lefts[at]
            rows, content = self._by_left[left].pop()
            if not self._by_left[left]:
                del self._by_left[left], self._lefts[at]
            count = self._fill(rows, left, length, count, content)

    def _fill(self, rows: int, left: int, length: int, count: int, content: Content | None) -> int:
        """Fill ``rows`` rows with ``left`` tokens of room one after the other; gives how many find no place."""
        each = left // length
        full = min(rows, count // each)
        if full:
            self._add(full, left - each * length, (content, length, each))
        rest = count - full * each
        if full < rows and rest:
            self._add(1, left - rest * length, (content, length, rest))
            full, rest = full + 1, 0
        if full < rows and content is not None:
            self._add(rows - full, left, content)
        return rest

    def _add(self, rows: int, left: int, content: Content) -> None:
        if left not in self._by_left:
            self._by_left[left] = []
            bisect.insort(self._lefts, left)
        self._by_left[left].append((rows, content))

    def contents(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """For each group its rows, and what each of them holds as (length, how many), the longest first."""
        found = []
        for groups in self._by_left.values():
            for rows, content in groups:
                held: list[tuple[int, int]] = []
                link: Content | None = content
                while link is not None:
                    link, length, each = link
                    held.append((length, each))
                found.append((rows, held[::-1]))
        return found
