"""Progress reporting, independent of how it is shown.

A stage gets a `Progress`; the command line passes one that draws bars with an ETA, everyone else the silent one.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """One bar at a time: start it, advance it, finish it."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Begin work of ``total`` units (``"bytes"``, ``"steps"``, ``"documents"``); 0: length unknown."""

    def advance(self, amount: int) -> None:
        """``amount`` more units are done."""

    def finish(self) -> None:
        """End the work begun last."""

    def note(self, text: str) -> None:
        """Show a few words beside the bar, replacing the previous ones."""

    def say(self, line: str) -> None:
        """Show one line of text above the bar."""


class Silent:
    """A Progress that shows nothing."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Nothing."""

    def advance(self, amount: int) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""
