"""The trials of langdetect: the language probabilities of many documents, side by side.

For every document the probabilities are those that langdetect 1.0.9 gives with seed 0, to the bit. The package draws
n-grams one after another and multiplies 55 probabilities per draw, until one language has nearly all; it does so seven
times, each with another smoothing, and takes the mean (``detector.py``, `_detect_block`). Every detector starts from
the same seed, so all documents share one stream of random words; each has its position in it, and hundreds of documents
draw at the same time.

The order of floating-point operations is that of the package under Python 3.11. (Since 3.12 Python's own ``sum`` rounds
better, and the package's last bits depend on the version of Python; ours do not.)
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
"""``detector.py``: n_trial; draws between two checks; ITERATION_LIMIT; CONV_THRESHOLD; ALPHA_DEFAULT and ALPHA_WIDTH,
the smoothing and its deviation, in units of 1 / BASE_FREQ."""

LANES = 512
"""Documents that draw side by side: their factors and probabilities (5 MB) fit into a core's cache."""
BUSY_CHECKS, TAIL_CHECKS, TAIL = 4, 8, 64
"""Checks at once: `BUSY_CHECKS` while more than `TAIL` lanes are busy, else `TAIL_CHECKS`. Draws after the one that
made a language certain are discarded, but a check costs less where more are made at once. No result depends on it."""
_WINDOW = 256  # random words read ahead for a lane; half or more are used, so the 45 needed are always there


class Stream(NamedTuple):
    """Random words of a seed, and the two values that `random.gauss` computes from the four words at a position."""

    words: U32
    gauss: F64


@cache
def stream(seed: int, length: int) -> Stream:
    """The first words of ``random.Random(seed)``, and the normal numbers from every position."""
    source = random.Random(seed)
    words = [source.getrandbits(32) for _ in range(length)]
    # Python's own operations in its order (``random.py``, `gauss`), a few thousand times per process.
    pairs = np.zeros((length, 2))
    for k in range(length - 3):
        first, second = (
            ((words[j] >> 5) * 67108864.0 + (words[j + 1] >> 6)) * (1.0 / 9007199254740992.0) for j in (k, k + 2)
        )
        turn, radius = first * 2.0 * math.pi, math.sqrt(-2.0 * math.log(1.0 - second))
        pairs[k] = math.cos(turn) * radius, math.sin(turn) * radius
    return Stream(np.array(words, np.uint32), pairs)


def probabilities(ngrams: NGrams, table: Profiles, seed: int) -> F64:
    """A row for each document, a column for each language; zeros without n-grams ("No features in text")."""
    means = np.zeros((len(ngrams.offsets) - 1, len(table.languages)))
    waiting = np.flatnonzero(np.diff(ngrams.offsets))
    lanes = _Lanes(ngrams, table, seed, waiting[:LANES])
    waiting = waiting[LANES:]
    while lanes.busy:
        checks = BUSY_CHECKS if lanes.busy > TAIL else TAIL_CHECKS
        lanes.read_ahead(DRAWS * checks + 5)
        lanes.begin()
        over = lanes.draw(checks)
        if len(over):
            means[lanes.documents[over]] += lanes.chances[over] / TRIALS
            ended = lanes.count(over)
            lanes.replace(ended, waiting[: len(ended)])
            waiting = waiting[len(ended) :]
    return means


class _Lanes:
    """Documents in their trials. A lane is a document, its trial, and the n-grams that it will draw.

    For every lane the n-grams that its next words draw are computed: ``rows``, and the word after which each is drawn:
    ``ends``. The first column is not an n-gram: there ``ends`` is the start of the window. ``last`` is the last one
    used.
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
        # `random.choice`: as many bits of a word as the count has, and the next word where they are not below it.
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
        """Start a trial in lanes that are new or have ended one: smoothing, equal chances, one draw.

        No check follows: no single n-gram makes a language certain.
        """
        lanes = self._fresh
        if not len(lanes):
            return
        even = lanes[self._trials[lanes] % 2 == 0]
        values = self._seconds.copy()
        here = self._ends[even, self._last[even]]
        values[even], self._seconds[even] = self._stream.gauss[here].T
        # A pair of normal numbers takes four words, which then draw no n-grams.
        ends = self._ends[even[:, None], self._last[even, None] + np.arange(1, 5)]
        self._last[even] += (ends <= here[:, None] + 4).sum(axis=1)
        self._weights[lanes] = (ALPHA + values[lanes] * ALPHA_WIDTH) / BASE_FREQUENCY
        self._draws[lanes] = 0
        self._last[lanes] += 1
        rows = self._rows[lanes, self._last[lanes]]
        chances = (1.0 / len(self._table.languages)) * (self._weights[lanes, None] + self._table.probabilities[rows])
        self.chances[lanes] = chances / _sums(chances)[0][:, None]

    def draw(self, checks: int) -> I64:
        """Make five draws before each check, in every lane; returns the lanes whose trial is over."""
        lanes = np.arange(self.busy)
        drawn = (self._last + 1 + np.arange(checks * DRAWS)[:, None]) + lanes * (_WINDOW + 1)
        history, best = np.empty((checks, *self.chances.shape)), np.empty((checks, self.busy))
        chances = self.chances
        for check in range(checks):
            rows = self._rows.reshape(-1)[drawn[check * DRAWS : (check + 1) * DRAWS]]
            factors = np.take(self._table.probabilities, rows, axis=0, mode="clip")
            factors += self._weights[:, None]
            chances = np.multiply(chances, factors[0], out=factors[0])
            for factor in factors[1:]:
                chances *= factor
            sums, most = _sums(chances)
            chances = np.divide(chances, sums[:, None], out=history[check])
            best[check] = most / sums
        sure = best > SURE
        sure |= self._draws + (np.arange(checks)[:, None] + 1) * DRAWS >= MAX_DRAWS
        over = sure.any(axis=0)
        used = np.where(over, sure.argmax(axis=0) + 1, checks)
        self.chances = history[used - 1, lanes]
        self._draws += used * DRAWS
        self._last += used * DRAWS
        self._fresh = np.flatnonzero(over)
        return self._fresh

    def count(self, over: I64) -> I64:
        """Count the trials that are over; returns the lanes whose document has had all of them."""
        self._trials[over] += 1
        return np.asarray(over[self._trials[over] == TRIALS])

    def replace(self, ended: I64, documents: I64) -> None:
        """Give ended lanes to new documents; remove the lanes for which none is left."""
        lanes, finished = ended[: len(documents)], ended[len(documents) :]
        self.documents[lanes] = documents
        self._trials[lanes] = self._last[lanes] = self._ready[lanes] = self._ends[lanes, 0] = 0
        if not len(finished):
            return
        kept = np.ones(self.busy, bool)
        kept[finished] = False
        self._fresh = (np.cumsum(kept) - 1)[self._fresh[kept[self._fresh]]]
        for name in ("documents", "_trials", "_draws", "_seconds", "_weights", "chances", "_rows", "_ends", "_last",
                     "_ready"):  # fmt: skip
            setattr(self, name, getattr(self, name)[kept])
        self.busy = len(self.documents)


def _sums(chances: F64) -> tuple[F64, F64]:
    """Sum and maximum of every row. Values are added from the left, one by one: along rows NumPy adds in another order,
    so rows become columns (a single column would be treated as a row)."""
    columns = np.ascontiguousarray(chances.T)
    if len(chances) == 1:
        return np.add.accumulate(chances, axis=1)[:, -1], columns.max(axis=0)
    return np.add.reduce(columns, axis=0), columns.max(axis=0)
