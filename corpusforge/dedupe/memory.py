"""How a budget of memory is spent by deduplication on one machine: workers, and what is left to compare hashes.

Comes in: a budget, the workers asked for, and the text there is. Goes out: how many workers fit, the bytes that a
round of comparison may take, and what is expected before anything is read. The one decision: the result of a stage does
not depend on any of it, so workers are taken away without asking; a budget too small for one is an error.
"""

from __future__ import annotations

import ctypes
import sys
from typing import NamedTuple

import pyarrow as pa

from corpusforge import errors

# Measured (Python 3.11, Beam 2.77, pyarrow 25; resident memory summed over processes, 41 MB shards of Wikipedia):
# 204 MiB once all is imported; with one worker, in the same process, 352 (exact-spans) to 370 (lines); with two, 285
# (exact-spans) to 385 (near-spans) more for each process.
MAIN_BYTES = 210 << 20
ALONE_BYTES = 190 << 20
WORKER_BYTES = 390 << 20

SMALLEST = MAIN_BYTES + ALONE_BYTES
"""What one process takes before it reads anything, and so the least that the setting may be."""

BYTES_OF_SPAN = 128
"""Text to a span, for the estimate (41.4 MB of Wikipedia hold 321,277 spans)."""

SPAN_BYTES = 141
"""Memory that comparing takes a span, as `work.dedupe.peak_bytes` has it."""

SLICE_BYTES = 4 << 20
"""Text that a worker's memory above is for (`work.slices.SLICE_BYTES`): only one document alone may be larger."""
LARGE_FACTOR = 24
"""Memory to a byte of a larger document, at most (own measurement: near-spans, 20 MB of sentences of nine bytes, on
which it takes 460 MiB)."""


class Plan(NamedTuple):
    """``shuffle_bytes``: for one round of comparison. ``peak_bytes``: expected, of all processes together.

    ``large_bytes``: that the largest document may take of it, at most, beyond the share of its worker.
    """

    workers: int
    shuffle_bytes: int
    spans: int
    peak_bytes: int
    rounds: int
    large_bytes: int = 0
    budget: int = 0

    def words(self, text_bytes: int) -> str:
        """For people, before the work begins."""
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''} of comparison"
        work = f"about {self.spans:,} spans in {text_bytes / 1e6:,.0f} MB of text"
        said = f"{work}: {workers}, {rounds}, an expected peak of {self.peak_bytes / 2**20:,.0f} MiB"
        if self.large_bytes:
            said += f", up to {self.large_bytes / 2**20:,.0f} MiB of it for the largest document"
        return f"{said}: more than --memory-budget" if self.peak_bytes > self.budget else said


def plan(budget: int, workers: int, text_bytes: int, largest_document: int = 0) -> Plan:
    """Spend a budget. ``largest_document``: bytes of text. Raises `errors.RecipeInvalid` with the smallest that works.

    A document is never split, so one that is too large for the budget is said to be, and taken all the same.

    >>> plan(2 << 30, 16, 10**9).workers, plan(2 << 30, 16, 10**9, 40 << 20).workers
    (4, 2)
    """
    if budget < SMALLEST:
        what = f"{budget >> 20} MB is too small: one process takes {SMALLEST >> 20} MB before it reads anything"
        where = "--memory-budget (dedupe.memory_megabytes)"
        raise errors.RecipeInvalid(where, what, f"set it to {SMALLEST >> 20} or more")
    large = LARGE_FACTOR * max(0, largest_document - SLICE_BYTES)
    fit = (budget - MAIN_BYTES - large) // WORKER_BYTES
    workers = max(1, min(workers, fit))
    shuffle = budget - MAIN_BYTES
    spans = text_bytes // BYTES_OF_SPAN
    rounds = max(1, -(-spans * SPAN_BYTES // shuffle))
    working = large + (ALONE_BYTES if workers == 1 else workers * WORKER_BYTES)
    peak = MAIN_BYTES + max(working, min(spans * SPAN_BYTES, shuffle))
    return Plan(workers, shuffle, spans, peak, rounds, large, budget)


def give_back() -> None:
    """Give memory that is free but held by allocators back to the system, before much is asked for elsewhere."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone holds on to freed arrays, and has it
        if trim is not None:
            trim(0)
