"""A stage that took more memory than its budget reports it, on the terminal and in its timing."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusforge import shards
from corpusforge.progress import Silent
from corpusforge.stages.output_folder import TIMING, Claim
from corpusforge.stages.stage import Execution, timed


class Recorder(Silent):
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize(("budget", "over"), [(1 << 20, True), (1 << 50, False), (0, None)])
def test_a_peak_over_the_budget_is_reported(budget: int, over: bool | None, tmp_path: Path) -> None:
    recorder = Recorder()
    with timed(Claim(str(tmp_path), "dedupe", {}, {}), Execution(progress=recorder), budget) as measured:
        pass
    timing = shards.read_json(str(tmp_path / TIMING))
    assert timing.get("over_budget") is over
    assert timing.get("memory_budget", 0) == budget
    peak = f"warning: dedupe took {measured['peak_rss'] / 2**20:,.0f} MiB of memory, more than the budget of 1"
    assert recorder.lines == ([peak] if over else [])
