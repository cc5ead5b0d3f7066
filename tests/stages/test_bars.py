"""Progress bars: what a training run writes beside one, in a terminal and in a log file."""

from __future__ import annotations

import io

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
