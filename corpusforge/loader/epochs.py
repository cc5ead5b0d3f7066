"""Which instances a batch holds: a function of (seed, position), and the position is one integer.

Comes in: the lengths of all instances and the settings of batches. Goes out: for any position its instances. Decision:
what a batch looks like (how many instances of which lengths) is found once, from the lengths; an epoch only draws who
takes which place among instances of the same length, and in which order batches come. So every epoch has equally many
batches, any position is found without making those before it, and it does not matter who else reads.

Padded batches: instances of a *bin* (of one padded length) are together, and what is left of a bin goes to the next
shorter one. Packed: `packing`.
"""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpusforge import errors, seeds
from corpusforge.arrays import I32, I64, offsets_of
from corpusforge.loader.corpus import Corpus
from corpusforge.loader.order import order_of
from corpusforge.loader.packing import BYTES_OF_PACKS, pack

BYTES_OF_BATCHES = 12
"""Held for each instance by `Epochs`: its place 4 and the order of two epochs 4 each (two, as threads may stand on both
sides of a seam); `BYTES_OF_PACKS` more if packed. Sorting an epoch takes 32 for a moment."""
BYTES_A_UNIT = 20
"""Held for each batch, or packed row: where it ends 8, its width 4, the order of two epochs 4 each."""

__all__ = ["BYTES_A_UNIT", "BYTES_OF_BATCHES", "BYTES_OF_PACKS", "BatchSettings", "Chosen", "Epochs", "Extent"]


@dataclass(frozen=True)
class BatchSettings:
    """What batches look like.

    ``tokens``: the budget of a batch, padding counted. ``multiple``: rows are padded to a multiple of it. ``bins``: to
    these lengths only, ascending (few shapes, as compiled models want them); (): every multiple. ``packing``: several
    instances a row, in rows of ``row_length`` tokens (0: the budget). ``bits``: of the integers handed out, 32 or 64.
    """

    tokens: int = 16_384
    multiple: int = 8
    bins: tuple[int, ...] = ()
    packing: bool = False
    row_length: int = 0
    bits: int = 64

    def resolved(self, longest: int) -> BatchSettings:
        """With the length of packed rows filled in. ``longest``: tokens of the longest instance.

        Raises `errors.RecipeInvalid` where a batch would not hold one instance.
        """
        if self.multiple < 1 or self.bits not in (32, 64) or list(self.bins) != sorted({b for b in self.bins if b > 0}):
            what = f"multiple {self.multiple}, bins {self.bins}, bits {self.bits}"
            raise errors.RecipeInvalid("BatchSettings", what, "multiple from 1, bins ascending, bits 32 or 64")
        if self.bins and self.bins[-1] < longest:
            what = f"the longest bin is {self.bins[-1]}, and an instance has {longest} tokens"
            raise errors.RecipeInvalid("BatchSettings.bins", what, f"add a bin of {longest} or more")
        row = (self.row_length or self.tokens) if self.packing else int(self.widths(np.array([longest]))[0])
        if row < longest:
            what = f"a row of {row} tokens does not hold an instance of {longest}"
            raise errors.RecipeInvalid("BatchSettings.row_length", what, f"set it to {longest} or more")
        if self.tokens < row:
            what = f"{self.tokens} tokens do not hold a row of {row}"
            raise errors.RecipeInvalid("BatchSettings.tokens", what, f"set it to {row} or more")
        return dataclasses.replace(self, row_length=row)

    def widths(self, lengths: npt.NDArray[np.integer]) -> I32:
        """What instances of these lengths are padded to."""
        if self.bins:
            return np.array(self.bins, np.int32)[np.searchsorted(self.bins, lengths)]
        return (-(-lengths // self.multiple) * self.multiple).astype(np.int32)


class Chosen(NamedTuple):
    """What one batch holds: instances row by row, how many of them each row holds, and the length of a row."""

    epoch: int
    instances: I32
    members: I64
    width: int


class Extent(NamedTuple):
    """How much an epoch is. ``size``: tokens with padding."""

    batches: int
    instances: int
    tokens: int
    size: int

    @property
    def padding(self) -> float:
        """Share of padding."""
        return 1 - self.tokens / self.size


@dataclass(frozen=True)
class _Copy:
    """The batches of one copy of the corpus. ``instances``: of the copy, the longest first; ranks are places in it."""

    instances: I32
    ranks: I32 | None  # unit by unit; None: they are 0, 1, 2, ...
    ends: I64  # unit k, a batch or a packed row, has ``ranks[ends[k]:ends[k + 1]]``
    widths: I32  # of each unit
    units_a_batch: int

    @property
    def batches(self) -> int:
        return -(-len(self.widths) // self.units_a_batch)

    def ranks_of(self, units: I32) -> I32:
        parts = [np.arange(a, b, dtype=np.int32) for a, b in zip(self.ends[units], self.ends[units + 1], strict=True)]
        places = np.concatenate(parts)  # one unit, or the packed rows of a batch
        return places if self.ranks is None else self.ranks[places]


class Epochs:
    """All batches of a corpus, endlessly. ``batches``: of each copy, which epochs take in turn."""

    def __init__(self, corpus: Corpus, settings: BatchSettings, seed: int) -> None:
        self.settings, self.seed = settings.resolved(corpus.longest), seed
        self._corpus = corpus
        self._copies = [self._plan(copy) for copy in range(corpus.copy_count)]
        self._before = offsets_of(np.array([copy.batches for copy in self._copies]))
        self._orders: dict[int, tuple[I32, I32]] = {}
        self._lock = threading.Lock()

    def locate(self, position: int) -> tuple[int, int]:
        """The epoch of a position, and the number of its batch in that epoch."""
        rounds, rest = divmod(position, int(self._before[-1]))
        copy = int(np.searchsorted(self._before, rest, side="right")) - 1
        return rounds * len(self._copies) + copy, rest - int(self._before[copy])

    def begin(self, epoch: int) -> int:
        """The position of the first batch of an epoch."""
        rounds, copy = divmod(epoch, len(self._copies))
        return int(rounds * self._before[-1] + self._before[copy])

    def extent(self, epoch: int = 0) -> Extent:
        """How much an epoch is: the same for all, unless masks are duplicated and pairs redrawn."""
        copy = self._copies[epoch % len(self._copies)]
        tokens = int(self._corpus.lengths[copy.instances].sum(dtype=np.int64))
        rows = np.ones(len(copy.widths), np.int64) if self.settings.packing else np.diff(copy.ends)
        return Extent(copy.batches, len(copy.instances), tokens, int((rows * copy.widths).sum()))

    def choose(self, position: int) -> Chosen:
        """What the batch at a position holds."""
        epoch, number = self.locate(position)
        copy = self._copies[epoch % len(self._copies)]
        order, units = self._order(epoch)
        mine = units[number * copy.units_a_batch : (number + 1) * copy.units_a_batch]
        instances = order[copy.ranks_of(mine)]
        members = np.ones(len(instances), np.int64)
        if self.settings.packing:
            members = copy.ends[mine + 1] - copy.ends[mine]
        return Chosen(epoch, instances, members, int(copy.widths[mine[0]]))

    def _plan(self, copy: int) -> _Copy:
        lengths = self._corpus.lengths
        instances = np.flatnonzero(self._corpus.copies == copy).astype(np.int32)
        instances = instances[np.argsort(-self._classes(lengths[instances]), kind="stable")]
        lengths = lengths[instances]
        if self.settings.packing:
            row = self.settings.row_length
            packs = pack(lengths, row)
            widths = np.full(len(packs), row, np.int32)
            return _Copy(instances, packs.ranks, packs.offsets, widths, self.settings.tokens // row)
        widths = self.settings.widths(lengths)
        ends = cut_bins(widths, self.settings.tokens)
        return _Copy(instances, None, ends, widths[ends[:-1]], 1)

    def _classes(self, lengths: I32) -> I32:
        """Instances of the same class take each other's places."""
        return lengths if self.settings.packing else self.settings.widths(lengths)

    def _order(self, epoch: int) -> tuple[I32, I32]:
        """Who has which rank in an epoch, and the order of its units."""
        with self._lock:  # threads that need the same epoch wait for one of them
            if epoch not in self._orders:
                kept = {e: order for e, order in self._orders.items() if abs(e - epoch) == 1}
                self._orders = dict(list(kept.items())[:1])
                self._orders[epoch] = self._shuffled(epoch)
            return self._orders[epoch]

    def _shuffled(self, epoch: int) -> tuple[I32, I32]:
        copy = self._copies[epoch % len(self._copies)]
        classes = self._classes(self._corpus.lengths[copy.instances])
        number = np.cumsum(np.diff(classes, prepend=classes[:1]) != 0).astype(np.uint64)
        bits = np.uint64(64 - int(number[-1]).bit_length())
        # The class above, random bits below: one sort of one word. Ties (2^-50) fall to the place in the shards.
        sort_by = seeds.words(self.seed, "batches", self._corpus.keys[copy.instances], epoch)
        if number[-1]:
            sort_by = (sort_by >> (np.uint64(64) - bits)) | (number << bits)
        order = copy.instances[order_of(sort_by)]
        units = seeds.words(self.seed, "batch-order", np.arange(len(copy.widths), dtype=np.uint64), epoch)
        return order, order_of(units).astype(np.int32)


def cut_bins(widths: I32, budget: int) -> I64:
    """Where batches end in rows of these widths, descending: as many rows as the budget holds of the widest one.

    >>> cut_bins(np.array([16, 16, 16, 8, 8, 8, 8]), 32).tolist()
    [0, 2, 4, 7]
    """
    ends = np.append(np.flatnonzero(np.diff(widths)) + 1, len(widths))  # of runs of equal width
    found, at = [np.zeros(1, np.int64)], 0
    while at < len(widths):  # some two steps a bin
        rows = budget // int(widths[at])
        end = int(ends[np.searchsorted(ends, at, side="right")])
        full = (end - at) // rows
        cuts = at + rows * np.arange(1, full + 1) if full else np.array([min(at + rows, len(widths))])
        found.append(cuts)
        at = int(cuts[-1])
    return np.concatenate(found)
