"""Pairs of neighbouring pieces with their likelihood scores, and the best of them at any time.

In: how often pieces and pairs occur, and changes of that. Out: the pair to merge next. The score of a pair is
count(ab) / (count(a) * count(b)): how much more often the two stand together than pieces of their frequency would by
chance. A merge of a and b lowers their counts and so raises the scores of all other pairs that they are in; a heap that
checks what it pops would miss those. So every pair with a piece whose count changed is scored again, in columns: a few
thousand pairs a merge. The maximum is kept for blocks of pairs, and only the maxima are searched.

Scores are floats of 64 bits, one multiplication and one division: the same on every machine, and equal where the exact
values are and count(a) * count(b) is below 2**53. Of equal scores, the more frequent pair is better, then the one whose
left and then right piece was made first.
"""

from __future__ import annotations

from array import array

import numpy as np

from corpusforge.arrays import I32, I64

_BLOCK = 1024
"""Pairs that share a maximum: from 256 to 16,384 learning takes the same time, with 64 a third more (29,544 merges)."""

_SHIFT = 32
_MASK = (1 << _SHIFT) - 1


class PairScores:
    """Counts of ``pieces`` pieces at most, by id, and of pairs; pairs seen less than ``least`` times have no score."""

    def __init__(self, pieces: int, least: int) -> None:
        self.counts = np.zeros(pieces, np.int64)
        self.least = least
        self._slots: dict[int, int] = {}
        self._keys = self._pairs = np.empty(0, np.int64)
        self._scores = np.empty(0)
        self._tops = np.empty(0)
        self._used = 0
        self._touching = [array("q") for _ in range(pieces)]

    def add(self, left: I32, right: I32, changes: I64) -> None:
        """Change the counts of pairs; a pair may stand there often. Scores follow with `rescore`."""
        keys, places = np.unique(left.astype(np.int64) << _SHIFT | right, return_inverse=True)
        sums = np.zeros(len(keys), np.int64)
        np.add.at(sums, places, changes)
        keys, sums = keys[sums != 0], sums[sums != 0]
        # Python lists with a reason: one look-up for each distinct pair that a merge changes, some dozens.
        texts = keys.tolist()
        slots = np.array([self._slots.get(key, -1) for key in texts], np.int64)
        fresh = np.flatnonzero(slots < 0)
        slots[fresh] = self._insert([texts[at] for at in fresh.tolist()])
        self._pairs[slots] += sums
        for at in np.flatnonzero(self._pairs[slots] == 0).tolist():
            del self._slots[texts[at]]  # the slot stays behind, without a score

    def rescore(self, pieces: list[int]) -> None:
        """Score all pairs with one of these pieces again: their counts, or those of their pairs, changed."""
        found = []
        for piece in pieces:
            slots = np.array(self._touching[piece], np.int64)
            alive = slots[self._pairs[slots] > 0]
            if 2 * len(alive) < len(slots):
                self._touching[piece] = array("q", alive.tobytes())
            found.append(slots)
        self._score(np.concatenate([np.empty(0, np.int64), *found]))

    def lower(self, least: int) -> None:
        """Give pairs a score that are seen ``least`` times or more."""
        self.least = least
        self._score(np.arange(self._used))

    def most(self) -> int:
        """Occurrences of the most frequent pair."""
        return int(self._pairs.max(initial=0))

    def _score(self, slots: I64) -> None:
        keys, pairs = self._keys[slots], self._pairs[slots]
        products = self.counts[keys >> _SHIFT].astype(np.float64) * self.counts[keys & _MASK].astype(np.float64)
        scores = np.zeros(len(slots))
        np.divide(pairs.astype(np.float64), products, out=scores, where=pairs >= self.least)
        self._scores[slots] = scores
        blocks = np.unique(slots // _BLOCK)
        self._tops[blocks] = self._scores.reshape(-1, _BLOCK)[blocks].max(axis=1)

    def best(self) -> tuple[int, int] | None:
        """The pair of the highest score; None where none is frequent enough."""
        top = self._tops.max(initial=0.0)
        if top <= 0:
            return None
        blocks = np.flatnonzero(self._tops == top)
        slots = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        slots = slots[self._scores[slots] == top]
        slots = slots[self._pairs[slots] == self._pairs[slots].max()]
        key = int(self._keys[slots].min())
        return key >> _SHIFT, key & _MASK

    def _insert(self, keys: list[int]) -> I64:
        first = self._used
        self._used += len(keys)
        if self._used > len(self._keys):
            self._grow(max(self._used, 2 * len(self._keys)))
        self._keys[first : self._used] = keys
        for slot, key in enumerate(keys, first):
            self._slots[key] = slot
            self._touching[key >> _SHIFT].append(slot)
            self._touching[key & _MASK].append(slot)
        return np.arange(first, self._used)

    def _grow(self, wanted: int) -> None:
        blocks = -(-wanted // _BLOCK)
        more = blocks * _BLOCK - len(self._keys)
        self._keys, self._pairs = (np.append(column, np.zeros(more, np.int64)) for column in (self._keys, self._pairs))
        self._scores = np.append(self._scores, np.zeros(more))
        self._tops = np.append(self._tops, np.zeros(blocks - len(self._tops)))
