"""The trials of langdetect: the language probabilities of many documents, side by side.

For every document the probabilities are those that langdetect 1.0.9 gives with seed 0, to the bit. The package draws
n-grams one after another and multiplies 55 probabilities a draw, until one language has nearly all; seven times, each
with another smoothing, and takes the mean (``detector.py``, `_detect_block`). Every detector starts from the same seed,
so there is one stream of random words for all documents; a document is a position in it, and hundreds of documents draw
at the same time.

The order of floating-point operations is that of the package under Python 3.11. (Since 3.12 Python's own ``sum`` rounds
better, and the package's last bits depend on the Python that runs it; ours do not.)
"""

from __future__ import annotations

import math
import random
from functools import cache
from typing import NamedTuple

import numpy as np

from corpusforge.arrays import F64, I64, U32
from corpusforge.clean.langdetect_profiles import NGrams, Profiles

TRIALS = 7
DRAWS = 5
MAX_DRAWS = 1000
SURE = 0.99999
ALPHA, ALPHA_WIDTH, BASE_FREQUENCY = 0.5, 0.05, 10_000
"""``detector.py``: n_trial; draws between two looks; ITERATION_LIMIT; CONV_THRESHOLD; ALPHA_DEFAULT and ALPHA_WIDTH,
the smoothing and its deviation, in units of 1 / BASE_FREQ."""

LANES = 512
"""Documents that draw side by side: their factors and probabilities (5 MB) are near a core."""
MANY, FEW, TAIL = 4, 8, 64
"""Looks at a time: `MANY` while more than `TAIL` lanes are busy, else `FEW`. Draws after the one that made a language
certain are thrown away, but a look costs less where more are made at once. No result depends on it."""
_WINDOW = 256  # random words read ahead for a lane. Half or more are taken: the 45 that are needed are always there.


class Stream(NamedTuple):
    """Random words of a seed, and what `random.gauss` makes of the four at a position: a value, and its second."""

    words: U32
    gauss: F64


@cache
def stream(seed: int, length: int) -> Stream:
    """The first words that ``random.Random(seed)`` gives, and the normal numbers from every position."""
    source = random.Random(seed)
    words = [source.getrandbits(32) for _ in range(length)]
    # Python's own mathematics, in its order (``random.py``, `gauss`), a few thousand times a process.
    pairs = np.zeros((length, 2))
    for k in range(length - 3):
        first, second = (
            ((words[j] >> 5) * 67108864.0 + (words[j + 1] >> 6)) * (1.0 / 9007199254740992.0) for j in (k, k + 2)
        )
        turn, radius = first * 2.0 * math.pi, math.sqrt(-2.0 * math.log(1.0 - second))
        pairs[k] = math.cos(turn) * radius, math.sin(turn) * radius
    return Stream(np.array(words, np.uint32), pairs)


def probabilities(ngrams: NGrams, table: Profiles, seed: int) -> F64:
    """One row a document, one column a language; zeros for a document without n-grams ("No features in text")."""
    found = np.zeros((len(ngrams.offsets) - 1, len(table.languages)))
    waiting = np.flatnonzero(np.diff(ngrams.offsets))
    lanes = _Lanes(ngrams, table, seed, waiting[:LANES])
    waiting = waiting[LANES:]
    while lanes.busy:
        looks = MANY if lanes.busy > TAIL else FEW
        lanes.read_ahead(DRAWS * looks + 5)
        lanes.begin()
        over = lanes.go_on(looks)
        if len(over):
            found[lanes.documents[over]] += lanes.chances[over] / TRIALS
            ended = lanes.count(over)
            lanes.replace(ended, waiting[: len(ended)])
            waiting = waiting[len(ended) :]
    return found


class _Lanes:
    """Documents in their trials. A lane is a document, its trial, and the n-grams that it will draw.

    Of every lane the n-grams that its next words draw are known: ``rows``, and after which word each is drawn:
    ``ends``. The first column is none: there ``ends`` is where the window starts. ``last`` is the last that is used.
    """

    def __init__(self, ngrams: NGrams, table: Profiles, seed: int, documents: I64) -> None:
        self._ngrams, self._table, self._seed = ngrams, table, seed
        self._stream = stream(seed, 4096)
        self.busy = len(documents)
        self.documents = documents.copy()
        self._trials = np.zeros(self.busy, np.int64)
        self._draws = np.zeros(self.busy, np.int64)
        self._fresh = np.arange(self.busy)
        self._seconds, self._weights = np.zeros(self.busy), np.zeros(self.busy)
        self.chances = np.empty((self.busy, len(table.languages)))
        self._rows = np.zeros((self.busy, _WINDOW + 1), np.int32)
        self._ends = np.zeros((self.busy, _WINDOW + 1), np.int32)
        self._last, self._ready = np.zeros(self.busy, np.int64), np.zeros(self.busy, np.int64)

    def read_ahead(self, draws: int) -> None:
        """Prepare this many draws in every lane."""
        left = self._ready - self._last
        if left.min() >= draws:
            return
        lanes = np.flatnonzero(left < 2 * draws)
        starts = self._ends[lanes, self._last[lanes]]
        if (needed := int(starts.max()) + _WINDOW) > len(self._stream.words):
            self._stream = stream(self._seed, 1 << needed.bit_length())
        first = self._ngrams.offsets[self.documents[lanes]]
        count = (self._ngrams.offsets[self.documents[lanes] + 1] - first).astype(np.uint32)
        # `random.choice`: as many bits of a word as the count has, the next word where they make no less than it.
        unused = (32 - np.frexp(count)[1]).astype(np.uint32)
        values = np.lib.stride_tricks.sliding_window_view(self._stream.words, _WINDOW)[starts] >> unused[:, None]
        taken = values < count[:, None]
        ready = taken.sum(axis=1)
        places = np.repeat(lanes * (_WINDOW + 1) + 1 - np.cumsum(ready) + ready, ready)
        places += np.arange(len(places))
        words = np.flatnonzero(taken)
        chosen = np.repeat(first, ready) + values.reshape(-1)[words]
        self._rows.reshape(-1)[places] = self._ngrams.rows(chosen, self._table)
        self._ends.reshape(-1)[places] = np.repeat(starts + 1 - np.arange(len(lanes)) * _WINDOW, ready) + words
        self._ends[lanes, 0] = starts
        self._last[lanes], self._ready[lanes] = 0, ready

    def begin(self) -> None:
        """Start the trials of lanes that are new or through with one: smoothing, equal chances, one draw.

        No look after it at whether a language is certain: no single n-gram makes one so.
        """
        lanes = self._fresh
        if not len(lanes):
            return
        even = lanes[self._trials[lanes] % 2 == 0]
        values = self._seconds.copy()
        here = self._ends[even, self._last[even]]
        values[even], self._seconds[even] = self._stream.gauss[here].T
        # A pair of normal numbers takes four words; those that would have drawn are no draws.
        ends = self._ends[even[:, None], self._last[even, None] + np.arange(1, 5)]
        self._last[even] += (ends <= here[:, None] + 4).sum(axis=1)
        self._weights[lanes] = (ALPHA + values[lanes] * ALPHA_WIDTH) / BASE_FREQUENCY
        self._draws[lanes] = 0
        self._last[lanes] += 1
        rows = self._rows[lanes, self._last[lanes]]
        chances = (1.0 / len(self._table.languages)) * (self._weights[lanes, None] + self._table.probabilities[rows])
        self.chances[lanes] = chances / _sums(chances)[0][:, None]

    def go_on(self, looks: int) -> I64:
        """Five draws in every lane, again and again; the lanes whose trial is over."""
        lanes = np.arange(self.busy)
        drawn = (self._last + 1 + np.arange(looks * DRAWS)[:, None]) + lanes * (_WINDOW + 1)
        history, best = np.empty((looks, *self.chances.shape)), np.empty((looks, self.busy))
        chances = self.chances
        for look in range(looks):
            rows = self._rows.reshape(-1)[drawn[look * DRAWS : (look + 1) * DRAWS]]
            factors = np.take(self._table.probabilities, rows, axis=0, mode="clip")
            factors += self._weights[:, None]
            chances = np.multiply(chances, factors[0], out=factors[0])
            for factor in factors[1:]:
                chances *= factor
            sums, most = _sums(chances)
            chances = np.divide(chances, sums[:, None], out=history[look])
            best[look] = most / sums
        sure = best > SURE
        sure |= self._draws + (np.arange(looks)[:, None] + 1) * DRAWS >= MAX_DRAWS
        over = sure.any(axis=0)
        used = np.where(over, sure.argmax(axis=0) + 1, looks)
        self.chances = history[used - 1, lanes]
        self._draws += used * DRAWS
        self._last += used * DRAWS
        self._fresh = np.flatnonzero(over)
        return self._fresh

    def count(self, over: I64) -> I64:
        """Count the trials that are over; the lanes whose document is through with all."""
        self._trials[over] += 1
        return np.asarray(over[self._trials[over] == TRIALS])

    def replace(self, ended: I64, documents: I64) -> None:
        """Give ended lanes to new documents; take out those that none is left for."""
        lanes, finished = ended[: len(documents)], ended[len(documents) :]
        self.documents[lanes] = documents
        self._trials[lanes] = self._last[lanes] = self._ready[lanes] = self._ends[lanes, 0] = 0
        if not len(finished):
            return
        stays = np.ones(self.busy, bool)
        stays[finished] = False
        self._fresh = (np.cumsum(stays) - 1)[self._fresh[stays[self._fresh]]]
        for name in ("documents", "_trials", "_draws", "_seconds", "_weights", "chances", "_rows", "_ends", "_last",
                     "_ready"):  # fmt: skip
            setattr(self, name, getattr(self, name)[stays])
        self.busy = len(self.documents)


def _sums(chances: F64) -> tuple[F64, F64]:
    """Sum and greatest of every row. Added from the left, one by one: along rows NumPy adds in another order, so they
    are columns here (of one column it would make a row)."""
    columns = np.ascontiguousarray(chances.T)
    if len(chances) == 1:
        return np.add.accumulate(chances, axis=1)[:, -1], columns.max(axis=0)
    return np.add.reduce(columns, axis=0), columns.max(axis=0)
