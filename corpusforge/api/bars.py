"""Progress bars where the user is: widgets in a notebook that has ipywidgets, else lines of a terminal."""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

from corpusforge.progress import Progress


class LazyBars:
    """Progress bars that import what draws them when the first one is drawn: an error before that shows sooner."""

    @functools.cached_property
    def _bars(self) -> Progress:
        if in_notebook():
            try:
                import ipywidgets  # noqa: F401
            except ImportError:
                pass
            else:
                return WidgetBars()
        from corpusforge.terminal import Bars

        return Bars()

    def start(self, label: str, total: int, unit: str) -> None:
        """Begin a bar."""
        self._bars.start(label, total, unit)

    def advance(self, amount: int) -> None:
        """Move the bar."""
        self._bars.advance(amount)

    def finish(self) -> None:
        """Close the bar."""
        self._bars.finish()

    def note(self, text: str) -> None:
        """Show a few words beside the bar."""
        self._bars.note(text)

    def say(self, line: str) -> None:
        """Show a line of text."""
        self._bars.say(line)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, rather than a terminal or a script."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


DRAW_SECONDS = 0.1
"""Time between two messages to the notebook's page."""


class WidgetBars:
    """A `corpusforge.progress.Progress` of ipywidgets, one bar after another."""

    def __init__(self) -> None:
        self._box: Any = None
        self._shown: Any = None
        self._done, self._total, self._unit, self._label, self._note = 0, 0, "", "", ""
        self._began = self._drawn = 0.0

    def start(self, label: str, total: int, unit: str) -> None:
        """Begin a bar."""
        import ipywidgets
        from IPython.display import display

        self.finish()
        self._done, self._total, self._unit, self._label, self._note = 0, total, unit, label, ""
        self._began, self._drawn = time.monotonic(), 0.0
        self._bar = ipywidgets.FloatProgress(0.0, min=0.0, max=1.0, bar_style="" if total else "info")
        self._text = ipywidgets.Label("")
        self._box = ipywidgets.HBox([ipywidgets.Label(label), self._bar, self._text])
        self._shown = display(self._box, display_id=True)

    def advance(self, amount: int) -> None:
        """Move the bar."""
        self._done += amount
        if self._box is not None and time.monotonic() - self._drawn > DRAW_SECONDS:
            self._draw()

    def _draw(self) -> None:
        from corpusforge.terminal import progress_parts

        self._drawn = time.monotonic()
        passed = self._drawn - self._began
        speed = self._done / passed if passed > 0 else None
        parts = progress_parts(self._done, self._total or None, self._unit, speed, passed)
        self._bar.value = self._done / self._total if self._total else 1.0
        self._text.value = " · ".join([*parts, *([self._note] if self._note else [])])

    def finish(self) -> None:
        """Replace the bar by one line, which stays where notebooks are saved and shown without widgets."""
        if self._box is None:
            return
        from corpusforge.report.plain import seconds

        line = f"{self._label}: {seconds(time.monotonic() - self._began)}"
        self._shown.update({"text/plain": line}, raw=True)
        for widget in (*self._box.children, self._box):
            widget.close()
        self._box = None

    def note(self, text: str) -> None:
        """Show a few words after the bar."""
        self._note = text

    def say(self, line: str) -> None:
        """Print a line."""
        print(line)
