"""Evaluations side by side: a table of checkpoints and figures, and which conditions differed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corpusforge import errors, shards
from corpusforge.cli import cli
from corpusforge.report.evaluation import show_side_by_side
from corpusforge.shards import Manifest
from tests.report.handmade_run import write_stage


def evaluated(folder: Path, checkpoint: str, tasks: dict[str, Any], settings: dict[str, Any], data: str = "d") -> str:
    """The folder of an evaluation."""
    manifest = write_stage(folder, "evaluate", {})
    names = {"mlm": "instances", "blimp": "blimp", "glue": "glue", "squad": "squad"}
    upstream = {"model": checkpoint} | {names[task]: data for task in tasks}
    values = {**vars(manifest), "recipe": {"evaluate": settings, "seed": 0}, "upstream": upstream}
    Manifest(**values).save(str(folder))
    shards.write_json(str(folder / "evaluation.json"), {"checkpoint": checkpoint, "tasks": tasks})
    return str(folder)


def mlm(loss: float) -> dict[str, Any]:
    return {"mlm": {"loss": loss, "unigram_loss": 7.0, "below_unigram": 7.0 - loss}}


def glue(**scores: float) -> dict[str, Any]:
    figures = {"main": ["accuracy"], "lowest": 0.1, "highest": 0.9, "examples": {"train": 5}, "runs": [1]}
    tasks = {name: {"score": score, "accuracy": score, **figures} for name, score in scores.items()}
    return {"glue": {"average": sum(scores.values()) / len(scores), "tasks": tasks}}


def lines(*paths: str) -> list[str]:
    """The lines that inspect prints, without borders."""
    result = CliRunner().invoke(cli, ["inspect", *paths])
    assert result.exit_code == 0, result.output
    rows = [" ".join(part.replace("┃", " ").split("│")) for part in result.output.splitlines()]
    return [" ".join(row.split()) for row in rows]


def test_one_row_per_checkpoint(tmp_path: Path) -> None:
    a, b, c = (evaluated(tmp_path / n, f"/runs/{n}/model", mlm(x), {}) for n, x in (("a", 6.5), ("b", 6.0), ("c", 5.0)))
    shown = lines(a, b, c)
    assert "held-out loss below unigram" in shown
    assert {"a 6.5 0.5", "b 6 1", "c 5 2"} <= set(shown)
    assert not any("not the same" in line for line in shown)


def test_tasks_of_a_checkpoint_are_merged_and_many_figures_transpose_the_table(tmp_path: Path) -> None:
    paths = [
        evaluated(tmp_path / "1", "/runs/a/model", mlm(6.5), {}),
        evaluated(tmp_path / "2", "/runs/a/model", glue(RTE=0.5, CoLA=0.25, mood=1.0), {"seeds": 1}),
        evaluated(tmp_path / "3", "/runs/b/checkpoints/step-000010", mlm(6.0), {}, data="other"),
        evaluated(tmp_path / "4", "/runs/b/checkpoints/step-000010", glue(RTE=0.7), {"seeds": 5}),
    ]
    shown = lines(*paths)
    assert "a b/checkpoints/step-000010" in shown
    at = [shown.index(line) for line in ("held-out loss 6.5 6", "GLUE average 58.3 70.0", "GLUE CoLA 25.0")]
    assert at == sorted(at)
    assert shown.index("GLUE CoLA 25.0") < shown.index("GLUE RTE 50.0 70.0") < shown.index("GLUE mood 100.0")
    assert "not the same for all: glue seeds: 1, 5" in shown and "not the same for all: mlm: other data" in shown


def test_the_last_result_of_a_task_counts(tmp_path: Path) -> None:
    first = evaluated(tmp_path / "1", "/runs/a/model", glue(RTE=0.5, CoLA=0.25), {})
    second = evaluated(tmp_path / "2", "/runs/a/model", glue(CoLA=0.5), {})
    shown = lines(first, second)
    assert "GLUE average 50.0" in shown and not any("RTE" in line for line in shown)


def test_one_evaluation_shows_its_tables(tmp_path: Path) -> None:
    shown = lines(evaluated(tmp_path / "1", "/runs/a/model", mlm(6.5), {}))
    assert "Held-out MLM" in shown and "unigram loss 7" in shown


def test_a_folder_without_evaluation_is_refused(tmp_path: Path) -> None:
    write_stage(tmp_path / "clean", "clean", {})
    with pytest.raises(errors.InputMissing, match="holds no evaluation"):
        show_side_by_side([str(tmp_path / "clean")] * 2)
    assert "--document is for one PATH" in CliRunner().invoke(cli, ["inspect", "a", "b", "--document", "9f"]).output
