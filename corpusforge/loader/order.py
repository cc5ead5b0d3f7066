"""Which instances a step reads: a function of (seed, step), so the position in the data is one integer.

Every epoch is a permutation sorted by random words keyed by the instances themselves: the order does not depend on
how instances lie in shards. Epochs follow each other without a seam, and step k reads what begins in tokens
``[k B, (k + 1) B)`` of that endless sequence (with a `Ramp`, a sum for k B). In the short part of training an instance
longer than ``length`` becomes *pieces*: a single-segment one is cut into equal ones, each with the [CLS] and [SEP] of
the whole, so nothing goes unread; of a pair, A loses its front and B its end, the longer first, so that what is left
of B still follows A.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corpusforge import arrays, seeds
from corpusforge.arrays import I32, I64
from corpusforge.loader.corpus import Corpus

BYTES_A_PIECE = 32
"""Held for each piece of a part of training: row, length and shift 12, key 8 (both lie in the Corpus already where
nothing is cut), the order of one epoch 4 and its sums 8. Pairs: 4 more. Sorting an epoch takes 24 for a moment."""


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

    ``ramp``: of all steps of the run, which may end inside a part or behind it.
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


@dataclass(frozen=True)
class Pieces:
    """What a part of training can read. All arrays are one entry a piece.

    Token t of a piece is token 0 of its instance for t = 0, the instance's last for the piece's last, and token
    ``t + shift`` between.
    """

    rows: I32  # of the Corpus
    lengths: I32
    shifts: I32
    first_lengths: I32  # of segment A, as in Corpus
    keys: arrays.U64


def cut_pieces(corpus: Corpus, length: int) -> Pieces:
    """All instances, those longer than ``length`` cut or truncated."""
    if corpus.pair_labels is not None:
        return _truncated_pairs(corpus, length)
    if corpus.longest <= length:
        rows = np.arange(len(corpus), dtype=np.int32)
        return Pieces(rows, corpus.lengths, np.zeros_like(rows), corpus.lengths, corpus.keys)
    content, room = corpus.lengths - 2, length - 2
    counts = np.maximum(1, -(-content // room))
    rows = np.repeat(np.arange(len(corpus), dtype=np.int32), counts)
    piece = np.arange(len(rows), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = piece * content[rows] // counts[rows]
    end = (piece + 1) * content[rows] // counts[rows]
    keys = corpus.keys[rows]
    is_cut = counts[rows] > 1
    keys[is_cut] = seeds.instance_keys(keys[is_cut], (piece[is_cut] + 1).astype(np.uint64))
    lengths = (end - begin + 2).astype(np.int32)
    return Pieces(rows, lengths, begin.astype(np.int32), lengths, keys)


def _truncated_pairs(corpus: Corpus, length: int) -> Pieces:
    a, b = corpus.first_lengths - 2, corpus.lengths - corpus.first_lengths - 1
    room = length - 3
    kept_b = np.minimum(b, np.maximum(room - a, room // 2))
    kept_a = np.minimum(a, room - kept_b)
    rows = np.arange(len(corpus), dtype=np.int32)
    return Pieces(rows, kept_a + kept_b + 3, a - kept_a, kept_a + 2, corpus.keys)


def order_of(words: arrays.U64) -> I64:
    """What sorts random words, equal ones as they stand: the stable order.

    The other sort takes a quarter of the time, and its order is the stable one unless two words are equal.
    """
    order = np.argsort(words)
    ordered = words[order]
    if (ordered[1:] == ordered[:-1]).any():
        return np.argsort(words, kind="stable")
    return order


class Stream:
    """The endless sequence of one part of training, cut into steps."""

    def __init__(self, corpus: Corpus, part: Part, number: int, seed: int, first_epoch: int) -> None:
        self.pieces = cut_pieces(corpus, part.length)
        self.part, self.seed, self.first_epoch = part, seed, first_epoch
        self._stage = f"order/{number}"
        self._copies = corpus.copy_count
        self._copy_of = corpus.copies
        totals = [int(self.pieces.lengths[self._members(k)].sum()) for k in range(self._copies)]
        self._before = np.concatenate([[0], np.cumsum(totals)])  # tokens before copy k, from the first copy on
        # One is enough: a step on the seam asks for the old epoch first, and the next step for the new one only.
        self._order = functools.lru_cache(maxsize=1)(self._sorted)

    def step(self, step: int) -> list[tuple[int, I32]]:
        """What step ``step`` of the run reads: for each epoch it touches, numbers of pieces in order."""
        base = self._base(self.first_epoch)
        begin, end = base + self.part.tokens_before(step), base + self.part.tokens_before(step + 1)
        epoch, found = self._epoch_at(begin), []
        while self._base(epoch) < end:
            order, starts = self._order(epoch)
            low, high = np.searchsorted(starts, [begin - self._base(epoch), end - self._base(epoch)])
            if high > low:
                found.append((epoch, order[low:high]))
            epoch += 1
        return found

    def next_epoch(self) -> int:
        """Number of the first epoch that no step of this part touches."""
        return self._epoch_at(self._base(self.first_epoch) + self.part.tokens - 1) + 1

    def moved(self, part: Part, first_epoch: int) -> Stream:
        """The same pieces under another plan of steps."""
        other = copy.copy(self)
        other.part, other.first_epoch = part, first_epoch
        return other

    def epochs(self) -> float:
        """How often this part reads the data, in epochs."""
        return self.part.tokens * self._copies / float(self._before[-1])

    @functools.cached_property
    def effective_length(self) -> float:
        """Mean of squared lengths over the mean length: what attention costs a token."""
        lengths = self.pieces.lengths.astype(np.float64)
        return float(np.square(lengths).sum() / lengths.sum())

    def _base(self, epoch: int) -> int:
        """Tokens of all epochs before ``epoch``. Epoch e reads copy e mod the number of copies."""
        rounds, copy = divmod(epoch, self._copies)
        return int(rounds * self._before[-1] + self._before[copy])

    def _epoch_at(self, token: int) -> int:
        rounds, rest = divmod(token, int(self._before[-1]))
        return int(rounds * self._copies + np.searchsorted(self._before, rest, side="right") - 1)

    def _members(self, copy: int) -> I32:
        """Numbers of the pieces of a copy, ascending."""
        return np.flatnonzero(self._copy_of[self.pieces.rows] == copy).astype(np.int32)

    def _sorted(self, epoch: int) -> tuple[I32, I64]:
        """The permutation of an epoch, and the token of the epoch at which each of its pieces begins."""
        members = self._members(epoch % self._copies)
        words = seeds.words(self.seed, self._stage, self.pieces.keys[members], epoch)
        order = members[order_of(words)]  # ties fall to the piece's own number
        lengths = self.pieces.lengths[order]
        return order, np.cumsum(lengths) - lengths


def moved(found: Sequence[Stream], parts: Sequence[Part]) -> list[Stream]:
    """The streams of a run whose parts have moved; what the first one reads before its end stays as it was."""
    others: list[Stream] = []
    for stream, part in zip(found, parts, strict=True):
        others.append(stream.moved(part, others[-1].next_epoch() if others else 0))
    return others


def streams(corpus: Corpus, parts: Sequence[Part], seed: int) -> list[Stream]:
    """One stream for each part of a run; epochs are numbered on, so no mask is drawn twice."""
    found: list[Stream] = []
    for number, part in enumerate(parts):
        found.append(Stream(corpus, part, number, seed, found[-1].next_epoch() if found else 0))
    return found
