"""How a budget of memory is spent by deduplication on one machine: workers, and what is left to compare hashes.

Comes in: a budget, the workers asked for, and the text there is. Goes out: how many workers fit, the bytes that a
round of comparison may take, and what is expected before anything is read. The one decision: the result of a stage does
not depend on any of it, so workers are taken away without asking; a budget too small for one is an error.
"""

from __future__ import annotations

from typing import NamedTuple

from corpusforge import errors

# Measured (Python 3.11, Beam 2.77, pyarrow 25; resident memory summed over processes, 41 MB shards of Wikipedia):
# 204 MiB once all is imported; with one worker, in the same process, 352 (exact-spans) to 370 (lines); with two, 285
# (exact-spans) to 385 (near-spans) more for each process.
MAIN_BYTES = 210 << 20
ALONE_BYTES = 190 << 20
WORKER_BYTES = 390 << 20

BYTES_OF_SPAN = 128
"""Text to a span, for the estimate (41.4 MB of Wikipedia hold 321,277 spans)."""

SPAN_BYTES = 141
"""Memory that comparing takes a span, as `work.dedupe.peak_bytes` has it."""


class Plan(NamedTuple):
    """``shuffle_bytes``: for one round of comparison. ``peak_bytes``: expected, of all processes together."""

    workers: int
    shuffle_bytes: int
    spans: int
    peak_bytes: int
    rounds: int

    def words(self, text_bytes: int) -> str:
        """For people, before the work begins."""
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''} of comparison"
        work = f"about {self.spans:,} spans in {text_bytes / 1e6:,.0f} MB of text"
        return f"{work}: {workers}, {rounds}, an expected peak of {self.peak_bytes / 2**20:,.0f} MiB"


def plan(budget: int, workers: int, text_bytes: int) -> Plan:
    """Spend a budget. Raises `errors.RecipeInvalid` with the smallest that works.

    >>> plan(2 << 30, 16, 10**9).workers
    4
    """
    smallest = MAIN_BYTES + ALONE_BYTES
    if budget < smallest:
        what = f"{budget >> 20} MB is too small: one process takes {smallest >> 20} MB before it reads anything"
        raise errors.RecipeInvalid("dedupe.memory_megabytes", what, f"set it to {smallest >> 20} or more")
    fit = (budget - MAIN_BYTES) // WORKER_BYTES
    workers = max(1, min(workers, fit))
    shuffle = budget - MAIN_BYTES
    spans = text_bytes // BYTES_OF_SPAN
    rounds = max(1, -(-spans * SPAN_BYTES // shuffle))
    working = ALONE_BYTES if workers == 1 else workers * WORKER_BYTES
    peak = MAIN_BYTES + max(working, min(spans * SPAN_BYTES, shuffle))
    return Plan(workers, shuffle, spans, peak, rounds)
