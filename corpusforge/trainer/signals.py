"""Asked to stop: SIGTERM and SIGINT become a flag that the loop looks at between micro-steps.

Decision: the first signal is polite, the second is the system's own (the old handlers are back in place).
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGTERM, signal.SIGINT)


class Interrupted(SystemExit):
    """A run was asked to stop and has written a checkpoint. ``code``: 128 + the signal, as shells have it."""

    def __init__(self, number: int, step: int, checkpoint: str) -> None:
        super().__init__(128 + number)
        self.step, self.checkpoint = step, checkpoint

    def __str__(self) -> str:
        return f"stopped behind step {self.step}; {self.checkpoint} is complete, the same command goes on from it"


class StopFlag:
    """Watches the signals while its block runs. Only the main thread can: elsewhere nothing is ever asked."""

    def __init__(self) -> None:
        self.number = 0  # of the signal; 0: none came
        self._old: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self.number != 0

    def join(self, number: int) -> None:
        """Another process of the run got a signal, which counts here too; 0: none did, and what came here stays."""
        if number:
            self.number = number

    def __enter__(self) -> StopFlag:
        if threading.current_thread() is threading.main_thread():
            self._old = {number: signal.signal(number, self._asked) for number in WATCHED}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._put_back()

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old = {}
