"""Terminal output: progress bars with an ETA, and tables.

On a terminal a bar takes one line, whatever its width. In a log file long work prints a line every minute, later less
often, and each bar one line with the time it took.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.table import Column, Table
from rich.text import Text

from corpusforge.report.plain import seconds

console = Console(stderr=True, highlight=False, markup=False)

SPEED_WINDOW = 1800.0
"""Seconds over which the speed is averaged, so that steps of minutes have an ETA too. Own choice."""
QUIET_SECONDS, QUIET_SHARE = 60.0, 0.02
"""Time between two lines of a log file: at least these seconds, and this share of the time so far. Own choice."""
LEAST_BAR = 6
"""Characters of the bar below which words are left out."""


def progress_parts(done: float, total: float | None, unit: str, speed: float | None, passed: float) -> list[str]:
    """Amount, speed, time passed and ETA, those that are known.

    >>> progress_parts(25, 100, "steps", 2.5, 10)
    ['25/100 steps', '2.5/s', '0:10', 'eta 0:30']
    >>> progress_parts(1.5e6, None, "bytes", 1e6, 3700)
    ['1.5 MB', '1.0 MB/s', '1:01:40']
    >>> progress_parts(1, 4, "steps", 1 / 40, 40)
    ['1/4 steps', '40.0 s each', '0:40', 'eta 2:00']
    """
    is_bytes = unit == "bytes"
    scale, name, digits = (1e6, "MB", 1) if is_bytes else (1.0, unit, 0)
    whole = f"/{total / scale:,.{digits}f}" if total else ""
    parts = [f"{done / scale:,.{digits}f}{whole} {name}"]
    if speed and unit != "seconds":
        each = f"{1 / speed:,.1f} s each" if speed < 0.5 else f"{speed:,.{0 if speed >= 100 else 1}f}/s"
        parts.append(f"{speed / scale:,.1f} MB/s" if is_bytes else each)
    parts.append(_clock(passed))
    if total:
        parts.append(f"eta {_clock(max(total - done, 0) / speed) if speed else '-:--'}")
    return parts


def _clock(amount: float) -> str:
    """
    >>> _clock(9.4), _clock(3700), _clock(200_000)
    ('0:09', '1:01:40', '2 d 07 h')
    """
    minutes, rest = divmod(round(amount), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24:02d} h"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def fit(parts: Sequence[str], width: int) -> str:
    """The parts in ``width`` characters: time passed and speed are left out first, then the end is truncated.

    >>> fit(["25/100 steps", "2.5/s", "0:10", "eta 0:30"], 60)
    '25/100 steps 2.5/s 0:10 eta 0:30'
    >>> fit(["25/100 steps", "2.5/s", "0:10", "eta 0:30"], 27)
    '25/100 steps 2.5/s eta 0:30'
    """
    kept = list(parts)
    for least in (2, 1):  # time passed, then speed
        if len(" ".join(kept)) > width and len(kept) > least + 1:
            del kept[least]
    return " ".join(kept)[: max(width, 0)]


class _Parts(ProgressColumn):
    """`progress_parts` and the note, in the rest of the line."""

    def render(self, task: Task) -> Text:
        parts = progress_parts(task.completed, task.total, str(task.fields["unit"]), task.speed, task.elapsed or 0.0)
        parts += [str(task.fields["note"])] if task.fields["note"] else []
        # 7: the percentage, and spaces between columns
        return Text(fit(parts, console.width - len(task.description) - LEAST_BAR - 7), no_wrap=True)


class Bars:
    """A `corpusforge.progress.Progress` that draws one bar after another on stderr."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._label, self._began, self._reported = "", 0.0, 0.0

    def start(self, label: str, total: int, unit: str) -> None:
        """Begin a bar."""
        self.finish()
        self._label, self._began = label, time.monotonic()
        self._reported = self._began
        columns = (
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(),
            TaskProgressColumn(table_column=Column(no_wrap=True)),
            _Parts(table_column=Column(no_wrap=True)),
        )
        self._progress = Progress(*columns, console=console, transient=True, speed_estimate_period=SPEED_WINDOW)
        self._progress.add_task(label, total=total or None, unit=unit, note="")
        if console.is_terminal:
            self._progress.start()

    def advance(self, amount: int) -> None:
        """Move the bar."""
        if self._progress is not None:
            self._progress.advance(self._progress.tasks[0].id, amount)
            self._report()

    def _report(self) -> None:
        """In a log file: print a line if the last one was printed long ago."""
        now = time.monotonic()
        if console.is_terminal or now - self._reported < max(QUIET_SECONDS, QUIET_SHARE * (now - self._began)):
            return
        assert self._progress is not None
        self._reported, task = now, self._progress.tasks[0]
        parts = progress_parts(task.completed, task.total, str(task.fields["unit"]), task.speed, now - self._began)
        share = [f"{task.percentage:.0f}%"] if task.total else []
        parts = [*share, *parts, str(task.fields["note"])]
        console.print(f"  {self._label}: {', '.join(part for part in parts if part)}", soft_wrap=True)

    def finish(self) -> None:
        """Close the bar and print one line."""
        if self._progress is None:
            return
        if console.is_terminal:
            self._progress.stop()
        self._progress = None
        console.print(f"  {self._label}: {seconds(time.monotonic() - self._began)}")

    def note(self, text: str) -> None:
        """Show a few words after the bar."""
        if self._progress is not None:
            self._progress.update(self._progress.tasks[0].id, note=text)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        console.print(line)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: bool = False) -> Table:
    """A table whose columns after the first hold numbers, flush right, or ``words``."""
    drawn = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for number, column in enumerate(columns):
        justify: JustifyMethod = "left" if number == 0 or words else "right"
        drawn.add_column(column, justify=justify, overflow="fold")  # a truncated name is useless
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def show(*renderables: object) -> None:
    """Print tables and text to stdout."""
    Console(highlight=False, markup=False, file=sys.stdout).print(*renderables, sep="\n")
