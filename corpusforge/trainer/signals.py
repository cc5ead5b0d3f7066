"""Signals to stop: SIGTERM and SIGINT set a flag that the training loop checks between micro-batches.

After the first signal the old handlers are restored, so a second one has the system's own effect.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGTERM, signal.SIGINT)


class Interrupted(SystemExit):
    """A run received a signal to stop and has written a checkpoint. ``code``: 128 + the signal, as in shells."""

    def __init__(self, number: int, step: int, checkpoint: str) -> None:
        super().__init__(128 + number)
        self.step, self.checkpoint = step, checkpoint

    def __str__(self) -> str:
        return f"stopped after step {self.step}; {self.checkpoint} is complete, the same command resumes from it"


class StopFlag:
    """Watches the signals while its block runs. Only the main thread can; elsewhere the flag is never set."""

    def __init__(self) -> None:
        self.number = 0  # of the signal; 0: none
        self._old: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self.number != 0

    def join(self, number: int) -> None:
        """Take over a signal that another process of the run received; 0: none, and a signal of this process stays."""
        if number:
            self.number = number

    def __enter__(self) -> StopFlag:
        if threading.current_thread() is threading.main_thread():
            self._old = {number: signal.signal(number, self._receive) for number in WATCHED}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old = {}
