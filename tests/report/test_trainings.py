"""Trainings side by side: curves over tokens read, and the settings that differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corpusforge import errors
from corpusforge.cli import cli
from corpusforge.report.figures import losses_figure
from corpusforge.report.trainings import curve, write_trainings
from corpusforge.shards import Manifest
from tests.report.handmade_run import write_stage

pytest.importorskip("plotly")


def trained(folder: Path, rate: float, batch: int, *, is_finished: bool = True, data: str = "d") -> str:
    """The folder of a training of three log lines."""
    lines: list[dict[str, Any]] = [
        {"step": k, "tokens": k * batch, "mlm_loss": 9 - k * rate, "unigram": 6.75, "lr": rate / k} for k in (1, 2, 3)
    ]
    lines.append({"step": 3, "heldout_loss": 8.5})
    folder.mkdir(parents=True, exist_ok=True)
    if is_finished:
        manifest = write_stage(folder, "pretrain", {}, statistics={"mlm_loss": 9 - 3 * rate, "unigram": 6.75})
        settings = {"pretrain": {"learning_rate": rate, "batch_tokens": batch, "preset": "bert-tiny"}, "seed": 0}
        values = {**vars(manifest), "recipe": settings, "upstream": {"instances": data}}
        Manifest(**values).save(str(folder))
    else:
        (folder / "run.json").write_text(json.dumps({"stage": "pretrain"}))
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(folder)


def test_curves_are_over_tokens_read() -> None:
    log = [{"step": 1, "tokens": 7, "mlm_loss": 9.0}, {"step": 2, "heldout_loss": 8.0}, {"step": 1, "warning": "x"}]
    assert curve(log) == {"mlm_loss": [(7, 9.0)], "heldout_loss": [], "lr": []}
    drawn = losses_figure({"a": {"mlm_loss": [(7, 9.0)]}, "b": {"mlm_loss": [(5, 8.0)], "lr": [(5, 0.1)]}}, {6.75})
    assert [trace.name for trace in drawn.data] == ["a", "b", "b, learning rate"]
    assert drawn.data[0].line.color != drawn.data[1].line.color


def test_a_page_of_three_shows_their_differences(tmp_path: Path) -> None:
    a, b = trained(tmp_path / "runs/a", 0.1, 100), trained(tmp_path / "runs/b", 0.5, 100)
    c = trained(tmp_path / "runs/c/pretrain", 0.5, 100, is_finished=False)
    result = CliRunner().invoke(cli, ["report", a, "--against", b, "--against", str(Path(c).parent)])
    assert result.exit_code == 0, result.output
    page = Path(result.output.strip()).read_text()
    assert "<h1>a against b against c/pretrain</h1>" in page
    inner = page[page.index("Settings that differ") :]
    assert "learning rate" in inner and "batch tokens" not in inner and "c/pretrain: not finished" in inner
    assert "They read different instances" not in page


def test_different_instances_are_noted(tmp_path: Path) -> None:
    a, b = trained(tmp_path / "a", 0.1, 100), trained(tmp_path / "b", 0.1, 100, data="e")
    page = Path(write_trainings([a, b], str(tmp_path / "page.html"))).read_text()
    assert "They read different instances" in page and "None." in page


def test_folders_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    a, b = trained(tmp_path / "a", 0.1, 100), trained(tmp_path / "b", 0.5, 100)
    (tmp_path / "b/log.jsonl").write_text("")
    with pytest.raises(errors.InputMissing, match="no loss yet"):
        write_trainings([a, b], str(tmp_path / "page.html"))
    write_stage(tmp_path / "clean", "clean", {})
    clean = str(tmp_path / "clean")
    result = CliRunner().invoke(cli, ["report", a, "--against", clean, "--against", clean])
    assert result.exit_code == 2 and "two at a time" in result.output
