"""The feed: prepares the batches of coming steps in a thread while the model computes.

Decision: one thread and no worker processes. The shards hold token ids already, so a step costs NumPy a few
milliseconds, and because every step is a function of its number there is no state to lose.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from corpusforge.trainer.batches import Batch

AHEAD = 2
"""Steps prepared in advance."""


class Feed:
    """Batches of steps ``start, start + 1, ... stop - 1`` in order. Use as a context manager."""

    def __init__(self, make: Callable[[int], list[Batch]], start: int, stop: int) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=AHEAD)
        self._closed = threading.Event()
        self.waited = 0.0  # seconds the consumer stood still, all told
        self._thread = threading.Thread(target=self._work, args=(make, start, stop), daemon=True)

    def _work(self, make: Callable[[int], list[Batch]], start: int, stop: int) -> None:
        try:
            for step in range(start, stop):
                if self._closed.is_set():
                    return
                self._put(make(step))
        except BaseException as error:
            self._put(error)

    def _put(self, item: Any) -> None:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def next(self) -> list[Batch]:
        """The batches of the next step; raises what preparing them raised."""
        began = time.perf_counter()
        item = self._queue.get()
        self.waited += time.perf_counter() - began
        if isinstance(item, BaseException):
            raise item
        return list(item)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()
