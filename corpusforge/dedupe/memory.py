"""Plan the memory of deduplication on one machine: workers, and rounds of comparison.

The result of a stage does not depend on any of this, so workers are reduced silently; a budget that is too small for
one process is an error.

Beam's local runner holds what it shuffles and never spills to disk, so a comparison runs in rounds over ranges of the
hash, as many as the budget demands. Other runners hold or spill what they shuffle themselves.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import errors, shards
from corpusforge.dedupe.job import SLICE_BYTES
from corpusforge.dedupe.spans import BLOCK_BYTES, PAIR_BYTES
from corpusforge.units import ShardUnit

# Measured (Python 3.11, Beam 2.77, pyarrow 25; resident memory summed over processes, 41 MB shards of Wikipedia):
# 204 MiB once everything is imported; with one worker, in the same process, 352 (exact-spans) to 370 (lines); with two,
# 285 (exact-spans) to 385 (near-spans) more per process.
MAIN_BYTES = 210 << 20
ALONE_BYTES = 190 << 20
WORKER_BYTES = 390 << 20

SMALLEST = MAIN_BYTES + ALONE_BYTES
"""What one process takes before it reads anything, and so the smallest budget."""

BYTES_OF_SPAN = 128
"""Bytes of text per span, for the estimate (41.4 MB of Wikipedia contain 321,277 spans)."""

SPAN_BYTES = 141
"""Memory that the comparison takes per span (`exact_bytes`)."""

LARGE_FACTOR = 24
"""Memory per byte of a document larger than a slice, at most (own measurement: near-spans, 20 MB of sentences of nine
bytes, on which it takes 460 MiB)."""

_SHUFFLE_FACTOR = 3.5
"""Memory of Beam's local runner per byte that it shuffles. Measured (Beam 2.77, 8 million spans, 90 % duplicates): 125
to 145 bytes per span, where this factor gives 141."""
_SORT_BYTES = 72
"""Memory per span while one partition is sorted: its block, its columns, an order and the ordered hashes."""
_MARK_SORT_BYTES = 16
"""The same per mark: its block, its column, what is shared."""


class Plan(NamedTuple):
    """``shuffle_bytes``: for one round of comparison. ``peak_bytes``: expected, of all processes together.

    ``large_bytes``: the part of the peak that the largest document takes at most, beyond the share of its worker.
    """

    workers: int
    shuffle_bytes: int
    spans: int
    peak_bytes: int
    rounds: int
    large_bytes: int = 0
    budget: int = 0

    def words(self, text_bytes: int) -> str:
        """The plan as a sentence."""
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''} of comparison"
        size = f"{text_bytes / 1e6:,.0f} MB" if text_bytes >= 1e6 else f"{text_bytes / 1e3:,.0f} kB"
        work = f"about {self.spans:,} spans in {size} of text"
        line = f"{work}: {workers}, {rounds}, an expected peak of {self.peak_bytes / 2**20:,.0f} MiB"
        if self.large_bytes:
            line += f", up to {self.large_bytes / 2**20:,.0f} MiB of it for the largest document"
        return f"{line}: more than --memory-budget" if self.peak_bytes > self.budget else line


def plan(budget: int, workers: int, text_bytes: int, largest_document: int = 0) -> Plan:
    """Divide a budget. ``largest_document``: bytes of text. Raises `errors.RecipeInvalid` with the smallest that works.

    A document is never split, so one that is too large for the budget is reported and processed all the same.

    >>> plan(2 << 30, 16, 10**9).workers, plan(2 << 30, 16, 10**9, 40 << 20).workers
    (4, 2)
    """
    if budget < SMALLEST:
        what = f"{budget >> 20} MB is too small: one process takes {SMALLEST >> 20} MB before it reads anything"
        where = "--memory-budget (dedupe.memory_megabytes)"
        raise errors.RecipeInvalid(where, what, f"set it to {SMALLEST >> 20} or more")
    large = LARGE_FACTOR * max(0, largest_document - SLICE_BYTES)
    workers = max(1, min(workers, (budget - MAIN_BYTES - large) // WORKER_BYTES))
    shuffle = budget - MAIN_BYTES
    spans = text_bytes // BYTES_OF_SPAN
    rounds = max(1, -(-spans * SPAN_BYTES // shuffle))
    working = large + (ALONE_BYTES if workers == 1 else workers * WORKER_BYTES)
    peak = MAIN_BYTES + max(working, min(spans * SPAN_BYTES, shuffle))
    return Plan(workers, shuffle, spans, peak, rounds, large, budget)


def exact_rounds(spans: int, memory_bytes: int, partitions: int) -> int:
    """The fewest rounds in which the shuffle of all hashes and the sorting of one partition fit the budget.

    >>> exact_rounds(10_000_000, 2 << 30, 16), exact_rounds(1_000_000_000, 2 << 30, 16)
    (1, 68)
    """
    return _rounds(exact_bytes(spans, 1, partitions), memory_bytes)


def exact_bytes(spans: int, rounds: int, partitions: int) -> int:
    """Memory that a round needs, beyond what the processes need anyway: every span, and at worst its pair."""
    per_span = (BLOCK_BYTES + PAIR_BYTES) * _SHUFFLE_FACTOR + _SORT_BYTES / partitions
    return int(spans / rounds * per_span)


def mark_rounds(hashes: int, memory_bytes: int, partitions: int) -> int:
    """The fewest rounds in which the shuffle of the marks of all band hashes fits.

    >>> mark_rounds(1_000_000, 2 << 30, 16), mark_rounds(1_000_000_000, 2 << 30, 16)
    (1, 7)
    """
    return _rounds(int(hashes * (4 * _SHUFFLE_FACTOR + _MARK_SORT_BYTES / partitions)), memory_bytes)


def pair_rounds(hashes: int, pairs: int, memory_bytes: int) -> int:
    """The fewest rounds in which the shuffle of shared band hashes and of the pairs that they give fits.

    >>> pair_rounds(10_000_000, 10_000_000, 2 << 30), pair_rounds(100_000_000, 400_000_000, 2 << 30)
    (1, 15)
    """
    return _rounds(int((hashes * BLOCK_BYTES + pairs * PAIR_BYTES) * _SHUFFLE_FACTOR), memory_bytes)


def _rounds(needed: int, memory_bytes: int) -> int:
    return max(1, -(-needed // max(1, memory_bytes)))


def largest_document(units: Sequence[ShardUnit]) -> int:
    """Bytes of text of the largest document of these shards, 0 where none is larger than a slice.

    Read from the footers of local files: tables are written in batches of about a slice, so a larger batch holds a
    document that is nearly as large.
    """
    largest = 0
    for unit in units:
        if not shards.is_remote(unit.path) and unit.path.endswith(".parquet"):
            footer = pq.read_metadata(unit.path)
            at = footer.schema.to_arrow_schema().names.index("text")
            sizes = (_text_bytes(footer.row_group(n), at) for n in range(footer.num_row_groups))
            largest = max(largest, *sizes, 0)
    return largest if largest > 2 * SLICE_BYTES else 0


def _text_bytes(group: Any, at: int) -> int:
    """Bytes of a row group's text column."""
    return int(group.column(at).total_uncompressed_size)


def give_back() -> None:
    """Return memory that allocators hold but do not use to the system, before another phase needs it."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone holds on to freed arrays, and has it
        if trim is not None:
            trim(0)
