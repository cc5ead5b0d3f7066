"""Which instances share a micro-batch, and which share a row of it, decided by their lengths alone.

Padded: rows are sorted by length inside the step and never across steps, so a step stays a uniform sample of the epoch
whatever its micro-batches are. Packed: instances are dealt out by length, one long row without padding a micro-batch,
so every micro-batch gets its share of every length and as many tokens as the others: ranks that compute at the same
time end at the same time. Packed in rows of a set length: the instances of the step are dealt to rows, or, where that
takes more rows, placed by best-fit-decreasing (Krell et al. 2021, arXiv 2107.02027, section 3).
"""

from __future__ import annotations

import bisect
import dataclasses
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpusforge import errors
from corpusforge.arrays import I32, I64, offsets_of

ROUND_TO = 8
"""Rows are padded to a multiple of this, which tensor cores want (NVIDIA, mixed precision training guide)."""

SIZES_STEP = 256
"""Fixed shapes: positions of a packed batch are a multiple of this. Steps differ by one instance at most, so there are
one or two shapes; filling up costs 1 % of 16,384 tokens."""

DEALT_FILLS = (0.999, 0.995, 0.99)
"""Shares of a row that dealing tries to fill, one after another."""

DEALT_ROWS = 1.01
"""How many times the rows of best fit dealing may take: a hundredth more padding for rows with similar loads."""


def padded_length(longest: int, multiple: int = ROUND_TO) -> int:
    """Positions of a batch whose longest row has ``longest`` tokens.

    >>> padded_length(1021)
    1024
    """
    return -(-longest // multiple) * multiple


class Group(NamedTuple):
    """A micro-batch: numbers of its instances in order, how many each row holds (None: one), and its positions."""

    rows: I64
    members: I64 | None
    width: int

    @property
    def size(self) -> int:
        """Tokens with padding."""
        return self.width * len(self.rows if self.members is None else self.members)


@dataclass(frozen=True)
class BatchSettings:
    """What steps and their micro-batches look like.

    ``batch_tokens``: of a step, padding not counted. ``micro_batch_tokens``: the budget of a micro-batch, padding
    counted (packed: give or take an instance). ``length``: longer instances are cut (0: none is).

    ``multiple``: padded rows are as long as a multiple of it.

    ``packing``: several instances per row: one row per micro-batch, as long as its instances; ``row_length``: rows of
    this length instead; ``fixed``: one row is filled up, so that shapes hardly change; ``ranks``: the micro-batches of
    a step are a multiple of this number. ``bits``: of the integers, 32 or 64.
    """

    batch_tokens: int = 131_072
    micro_batch_tokens: int = 16_384
    length: int = 0
    multiple: int = ROUND_TO
    packing: bool = False
    row_length: int = 0
    fixed: bool = False
    ranks: int = 1
    bits: int = 64

    def resolved(self, longest: int) -> BatchSettings:
        """The settings with their length filled in. ``longest``: tokens of the longest instance.

        Raises `errors.RecipeInvalid` if they contradict each other, or a batch would not hold one instance.
        """
        if self.multiple < 1 or self.bits not in (32, 64):
            what = f"multiple {self.multiple}, bits {self.bits}"
            raise errors.RecipeInvalid("BatchSettings", what, "set multiple to 1 or more, and bits to 32 or 64")
        if self.length and self.length < 8:
            what = f"instances cut to {self.length} tokens"
            raise errors.RecipeInvalid("BatchSettings.length", what, "set it to 8 or more, or 0 to cut none")
        longest = min(self.length or longest, longest)
        rooms = {"micro_batch_tokens": self.micro_batch_tokens, "batch_tokens": self.batch_tokens}
        if self.packing and self.row_length:
            rooms = {"row_length": self.row_length} | rooms
        for name, room in rooms.items():
            if room < longest:
                what = f"{room} tokens do not hold an instance of {longest}"
                raise errors.RecipeInvalid(f"BatchSettings.{name}", what, f"set it to {longest} or more")
        if self.packing and self.micro_batch_tokens < self.row_length:
            what = f"{self.micro_batch_tokens} tokens do not hold a row of {self.row_length}"
            raise errors.RecipeInvalid("BatchSettings.micro_batch_tokens", what, f"set it to {self.row_length} or more")
        return dataclasses.replace(self, length=longest)

    def groups(self, lengths: I64) -> list[Group]:
        """The micro-batches of a step whose instances have these lengths."""
        if not self.packing:
            widths = -(-lengths // self.multiple) * self.multiple
            groups = cut_by_length(lengths, widths, self.micro_batch_tokens)
            return [Group(rows, None, int(widths[rows[0]])) for rows in groups]
        if self.row_length:
            order = np.argsort(-lengths, kind="stable")
            packs, each = pack(lengths[order], self.row_length), self.micro_batch_tokens // self.row_length
            cuts = [*range(0, len(packs), each), len(packs)]
            edges = [packs.offsets[a : b + 1] for a, b in pairwise(cuts)]
            return [Group(order[packs.ranks[e[0] : e[-1]]], np.diff(e), self.row_length) for e in edges]
        dealt = deal(lengths, self.micro_batch_tokens, self.ranks)
        sizes = [int(lengths[rows].sum()) for rows in dealt]
        width = padded_length(max(sizes), SIZES_STEP)
        return [
            Group(rows, np.array([len(rows)]), width if self.fixed else size)
            for rows, size in zip(dealt, sizes, strict=True)
        ]


def cut_by_length(lengths: I64, widths: I64 | I32, budget: int) -> list[I64]:
    """Row numbers of each micro-batch: the longest rows first, at most ``budget`` tokens with padding.

    ``widths``: what rows of these lengths are padded to.

    A micro-batch also ends where that saves padding worth an eighth of the budget; more, smaller ones cost a GPU more
    than the padding does.

    >>> [rows.tolist() for rows in cut_by_length(*[np.array([8, 16, 8, 16])] * 2, 32)]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(-lengths, kind="stable")
    sizes = widths[order]
    groups, at = [], 0
    while at < len(order):  # a handful of micro-batches a step
        end = min(len(order), at + max(1, budget // int(sizes[at])))
        while True:  # the rest after a cut may be worth another
            saved = (sizes[at] - sizes[at:end]) * (end - np.arange(at, end))
            best = int(saved.argmax())
            if saved[best] * 8 < budget:
                break
            end = at + best
        groups.append(order[at:end])
        at = end
    return groups


def deal(lengths: I64, budget: int, multiple: int = 1) -> list[I64]:
    """Row numbers of each micro-batch, its longest row first; as few micro-batches as hold ``budget`` tokens each,
    give or take an instance, or a multiple of ``multiple``.

    >>> [rows.tolist() for rows in deal(np.array([8, 16, 8, 16]), 24)]
    [[1, 2], [3, 0]]
    """
    room = max(budget, 1)
    count = padded_length(max(1, -(-(int(lengths.sum()) - int(lengths.max()) + 1) // room)), multiple)
    count = min(len(lengths), count)
    order = np.argsort(-lengths, kind="stable")
    rounds, seats = np.divmod(np.arange(len(order)), count)
    group = np.where(rounds % 2 == 0, seats, count - 1 - seats)  # there and back: the longest with the shortest
    return [order[group == number] for number in range(count)]


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
        dealt = lengths[begin : begin + rows]
        emptiest = np.argsort(loads, kind="stable")[: len(dealt)]
        loads[emptiest] += dealt
        row_of[begin : begin + rows] = emptiest
        if int(loads[emptiest].max()) > room:
            return None
    ranks = np.argsort(row_of, kind="stable").astype(np.int32)
    return Packs(ranks, offsets_of(np.bincount(row_of, minlength=rows)))


def best_fit(lengths: npt.NDArray[np.integer], room: int) -> Packs:
    """Best-fit-decreasing: each instance, the longest first, goes to the fullest row that has room for it.

    Rows that hold the same lengths are handled as one, so the cost grows with the number of different lengths, not of
    instances.
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
        """Fill ``rows`` rows with ``left`` tokens of room one after another; returns how many instances do not fit."""
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
        contents = []
        for groups in self._by_left.values():
            for rows, content in groups:
                lengths: list[tuple[int, int]] = []
                link: Content | None = content
                while link is not None:
                    link, length, each = link
                    lengths.append((length, each))
                contents.append((rows, lengths[::-1]))
        return contents
