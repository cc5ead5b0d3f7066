"""What a person sees in a terminal: progress bars with an ETA, and tables.

On a terminal bars are drawn; in a log file each piece of work says when it began and what it took.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from corpusforge.progress import Silent
from corpusforge.report.plain import seconds

console = Console(stderr=True, highlight=False, markup=False)


class _Amount(ProgressColumn):
    """``12.3/45.6 MB at 7.8 MB/s``."""

    def render(self, task: Task) -> Text:
        unit = str(task.fields["unit"])
        scale, name = (1e6, "MB") if unit == "bytes" else (1.0, unit)
        digits = 1 if unit == "bytes" else 0
        total = f"/{task.total / scale:,.{digits}f}" if task.total else ""
        speed = f" at {task.speed / scale:,.1f} {name}/s" if task.speed else ""
        return Text(f"{task.completed / scale:,.{digits}f}{total} {name}{speed}")


class Bars:
    """A `corpusforge.progress.Progress` that draws one bar after another on stderr."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._label, self._began = "", 0.0

    def start(self, label: str, total: int, unit: str) -> None:
        """Begin a bar."""
        self.finish()
        self._label, self._began = label, time.monotonic()
        columns = (
            TextColumn("{task.description:24}"),
            BarColumn(),
            TaskProgressColumn(),
            _Amount(),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._progress.add_task(label, total=total or None, unit=unit, note="")
        if console.is_terminal:
            self._progress.start()

    def advance(self, amount: int) -> None:
        """Move the bar."""
        if self._progress is not None:
            self._progress.advance(self._progress.tasks[0].id, amount)

    def finish(self) -> None:
        """Close the bar and leave one line behind."""
        if self._progress is None:
            return
        if console.is_terminal:
            self._progress.stop()
        self._progress = None
        console.print(f"  {self._label}: {seconds(time.monotonic() - self._began)}")

    def note(self, text: str) -> None:
        """Words behind the bar."""
        if self._progress is not None:
            self._progress.update(self._progress.tasks[0].id, note=text)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        console.print(line)


def progress(*, quiet: bool) -> Bars | Silent:
    """Bars, or nothing."""
    return Silent() if quiet else Bars()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: bool = False) -> Table:
    """A table whose columns after the first hold numbers, flush right, or ``words``."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for number, column in enumerate(columns):
        justify: JustifyMethod = "left" if number == 0 or words else "right"
        made.add_column(column, justify=justify, overflow="fold")  # a name that is cut is no name
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def show(*renderables: object) -> None:
    """Print tables and text to stdout."""
    Console(highlight=False, markup=False, file=sys.stdout).print(*renderables, sep="\n")
