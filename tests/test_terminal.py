"""Progress bars in a terminal and in a log file, with the notes of a training run."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from corpusforge import terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_shows_the_note_and_an_eta(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=is_terminal, width=160, highlight=False, markup=False)
    monkeypatch.setattr(terminal, "console", console)
    bars = terminal.Bars()
    bars.note("before any bar")
    bars.start("pretrain", 10, "steps")
    bars.advance(4)
    bars.note("loss 6.123 (unigram 6.95)")
    assert bars._progress is not None
    bars._progress.refresh()
    bars.say("warning: a line above")
    bars.finish()
    text = shown.getvalue()
    assert "warning: a line above" in text
    assert "pretrain: " in text
    if is_terminal:
        assert "loss 6.123 (unigram 6.95)" in text
        assert "eta" in text
        assert "4/10 steps" in text


def _shown_at(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of a long run's bar as drawn once."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=width, color_system=None, highlight=False, markup=False)
    monkeypatch.setattr(terminal, "console", console)
    bars = terminal.Bars()
    bars.start("pretrain", 1_000_000, "steps")
    assert bars._progress is not None
    for _ in range(3):
        bars.advance(150_000)
        time.sleep(0.002)
    bars.note("loss 2.345 (unigram 6.87)")
    bars._progress.stop()  # the bar is drawn once from here on
    console.file = drawn = io.StringIO()
    console.print(bars._progress.get_renderable())
    return drawn.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_a_bar_of_a_long_run_stays_on_one_line(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    (line,) = _shown_at(width, monkeypatch)
    assert len(line) <= width
    assert "pretrain" in line and "45%" in line
    if width >= 80:
        assert "450,000/1,000,000 steps" in line and "eta" in line and "loss 2.345 (unigram 6.87)" in line


def test_a_log_file_gets_lines_of_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, clock = io.StringIO(), 1000.0
    monkeypatch.setattr(terminal, "console", Console(file=shown, width=60, highlight=False, markup=False))
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    bars = terminal.Bars()
    bars.start("pretrain", 1000, "steps")
    for _ in range(100):
        clock += 1.5
        bars.advance(1)
        bars.note("loss 6.123 (unigram 6.95)")
    lines = shown.getvalue().splitlines()
    assert len(lines) == 2  # after 60 and 120 of 150 seconds
    assert lines[1].startswith("  pretrain: 8%, 80/1,000 steps, ") and lines[1].endswith("loss 6.123 (unigram 6.95)")
    clock += 1e6
    bars.advance(1)
    clock += 600
    bars.advance(1)
    assert len(shown.getvalue().splitlines()) == 3  # rarely in a long run
    bars.finish()
