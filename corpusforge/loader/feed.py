"""The feed: makes what comes next in threads while the model computes.

Comes in: a function of a number (a step, a position). Goes out: its results in order. Decision: threads and no worker
processes. The shards hold token ids already, so a batch costs NumPy, which lets other threads run, a few milliseconds;
and because everything is a function of its number there is no state to lose, and no way for threads to change it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")

AHEAD = 2
"""Results prepared in advance by one thread."""


class Feed(Generic[T]):
    """``make(start), make(start + 1), ...`` below ``stop`` (None: without end), in order. A context manager."""

    def __init__(
        self,
        make: Callable[[int], T],
        start: int,
        stop: int | None,
        *,
        threads: int = 1,
        ahead: int = AHEAD,
    ) -> None:
        self.waited = 0.0  # seconds the consumer stood still, all told
        self._make, self._number, self._stop = make, start, stop
        self._threads, self._ahead = threads, max(ahead, threads)
        self._waiting: deque[Future[T]] = deque()

    def __iter__(self) -> Iterator[T]:
        while self._waiting:
            yield self.next()

    def next(self) -> T:
        """The next result, IndexError behind the last one; raises what making it raised."""
        began = time.perf_counter()
        try:
            return self._waiting.popleft().result()
        finally:
            self.waited += time.perf_counter() - began
            self._submit()

    @property
    def next_number(self) -> int:
        """The first number that nobody has begun to make."""
        return self._number

    def _submit(self) -> None:
        while len(self._waiting) < self._ahead and (self._stop is None or self._number < self._stop):
            self._waiting.append(self._pool.submit(self._make, self._number))
            self._number += 1

    def __enter__(self) -> Feed[T]:
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="feed")
        self._submit()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
