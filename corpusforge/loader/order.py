"""The order of the data: which instances a step reads, as a function of (seed, step).

Every epoch is a permutation sorted by random words keyed by the instances themselves, so the order does not depend on
how instances lie in shards. Epochs follow each other without a seam, and step k reads what begins in tokens
``[k B, (k + 1) B)`` of that endless sequence, padding not counted (under a `Ramp` k B is a sum). So the position in the
data is one integer.
"""

from __future__ import annotations

import bisect
import copy
import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import I32, I64, U64
from corpusforge.loader.corpus import Corpus, cut_to_length

BYTES_A_CHUNK = 32
"""Held for each chunk of a part of training: row, length and shift 12, key 8 (length and key are the Corpus's own where
nothing is cut), the order of one epoch 4 and its sums 8. Pairs: 4 more. Sorting an epoch takes 24 for a moment."""

ENDLESS = 1 << 40
"""Steps of a part that has no end."""


@dataclass(frozen=True)
class Ramp:
    """Batches that grow linearly: from ``first`` of their size at step 0 to all of it at step ``steps``."""

    first: float = 1.0
    steps: int = 0

    def before(self, step: int) -> float:
        """The sum of the shares of all steps before ``step``.

        >>> [Ramp(0.5, 2).before(step) for step in range(5)]
        [0.0, 0.5, 1.25, 2.25, 3.25]
        """
        n = min(step, self.steps)
        return step - n + (n * self.first + (1 - self.first) * n * (n - 1) / (2 * self.steps) if n else 0.0)


@dataclass(frozen=True)
class Part:
    """Steps ``[start, stop)`` of a run: instances at most ``length`` long, ``batch_tokens`` of them a step.

    ``ramp``: of all steps of the run, which may end inside a part or after it.
    """

    start: int
    stop: int
    length: int
    batch_tokens: int
    ramp: Ramp = Ramp()

    def tokens_before(self, step: int) -> int:
        """Tokens that the steps of this part before ``step`` read."""
        return round(self.batch_tokens * (self.ramp.before(step) - self.ramp.before(self.start)))

    @property
    def tokens(self) -> int:
        """Tokens of all its steps."""
        return self.tokens_before(self.stop)


def order_of(words: U64) -> I64:
    """The order that sorts random words, equal ones as they stand: the stable order.

    The default sort takes a quarter of the time, and its order is the stable one unless two words are equal.
    """
    order = np.argsort(words)
    ordered = words[order]
    if (ordered[1:] == ordered[:-1]).any():
        return np.argsort(words, kind="stable")
    return order


class Stream:
    """The endless sequence of one part of training, cut into steps."""

    def __init__(self, corpus: Corpus, part: Part, number: int, seed: int, first_epoch: int) -> None:
        self.chunks = cut_to_length(corpus, part.length)
        self.part, self.seed, self.first_epoch = part, seed, first_epoch
        self._stage = f"order/{number}"
        self._copies = corpus.copy_count
        self._copy_of = corpus.copies
        totals = [int(self.chunks.lengths[self._members(k)].sum()) for k in range(self._copies)]
        self._before = np.concatenate([[0], np.cumsum(totals)])  # tokens before copy k, from the first copy on
        self._lock = threading.Lock()
        # One is enough: a step on the seam reads the old epoch first, and the next step reads the new one only.
        self._order = functools.lru_cache(maxsize=1)(self._sorted)

    def step(self, step: int) -> list[tuple[int, I32]]:
        """The chunks that step ``step`` of the run reads: for each epoch it touches, their numbers in order."""
        base = self._base(self.first_epoch)
        begin, end = base + self.part.tokens_before(step), base + self.part.tokens_before(step + 1)
        epoch, reads = self._epoch_at(begin), []
        while self._base(epoch) < end:
            with self._lock:  # of several threads one sorts
                order, starts = self._order(epoch)
            low, high = np.searchsorted(starts, [begin - self._base(epoch), end - self._base(epoch)])
            if high > low:
                reads.append((epoch, order[low:high]))
            epoch += 1
        return reads

    def begin(self, epoch: int) -> int:
        """The step that reads the first token of an epoch, which may be the last step of the epoch before too."""
        target = self._base(epoch) - self._base(self.first_epoch)
        steps = range(self.part.start, self.part.stop)
        return self.part.start + bisect.bisect_right(steps, target, key=lambda step: self.part.tokens_before(step + 1))

    def size(self, epoch: int) -> tuple[int, int]:
        """Chunks and tokens of an epoch."""
        return len(self._members(epoch % self._copies)), self._base(epoch + 1) - self._base(epoch)

    def next_epoch(self) -> int:
        """Number of the first epoch that no step of this part touches."""
        return self._epoch_at(self._base(self.first_epoch) + self.part.tokens - 1) + 1

    def moved(self, part: Part, first_epoch: int) -> Stream:
        """The same chunks under another plan of steps."""
        other = copy.copy(self)
        other.part, other.first_epoch = part, first_epoch
        return other

    def epochs(self) -> float:
        """How many epochs this part reads."""
        return self.part.tokens * self._copies / float(self._before[-1])

    @functools.cached_property
    def effective_length(self) -> float:
        """Mean of squared lengths over the mean length: what attention costs a token."""
        lengths = self.chunks.lengths.astype(np.float64)
        return float(np.square(lengths).sum() / lengths.sum())

    def _base(self, epoch: int) -> int:
        """Tokens of all epochs before ``epoch``. Epoch e reads copy e mod the number of copies."""
        rounds, copy = divmod(epoch, self._copies)
        return int(rounds * self._before[-1] + self._before[copy])

    def _epoch_at(self, token: int) -> int:
        rounds, rest = divmod(token, int(self._before[-1]))
        return int(rounds * self._copies + np.searchsorted(self._before, rest, side="right") - 1)

    def _members(self, copy: int) -> I32:
        """Numbers of the chunks of a copy, ascending."""
        return np.flatnonzero(self._copy_of[self.chunks.rows] == copy).astype(np.int32)

    def _sorted(self, epoch: int) -> tuple[I32, I64]:
        """The permutation of an epoch, and the token of the epoch at which each of its chunks begins."""
        members = self._members(epoch % self._copies)
        words = seeds.words(self.seed, self._stage, self.chunks.keys[members], epoch)
        order = members[order_of(words)]  # ties fall to the chunk's own number
        lengths = self.chunks.lengths[order]
        return order, np.cumsum(lengths) - lengths


def streams(corpus: Corpus, parts: Sequence[Part], seed: int, before: Sequence[Stream] = ()) -> list[Stream]:
    """One stream for each part of a run; epochs are numbered through all parts, so no mask is drawn twice.

    ``before``: the streams of the same run under another plan of steps; their order is kept, and the steps of the first
    part that both plans have read the same.
    """
    planned: list[Stream] = []
    for number, part in enumerate(parts):
        first_epoch = planned[-1].next_epoch() if planned else 0
        if before:
            planned.append(before[number].moved(part, first_epoch))
        else:
            planned.append(Stream(corpus, part, number, seed, first_epoch))
    return planned
