"""Log lines: their fields, and the trackers that receive them."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusforge import errors
from corpusforge.sections import Pretrain
from tests.made_up_instances import Data
from tests.trainer.training_runs import stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]

FIELDS = (
    *("step", "tokens", "loss", "mlm_loss", "mlm_accuracy", "pair_loss", "pair_accuracy", "unigram", "lr", "grad_norm"),
    *("tokens_per_second", "mfu", "data_wait", "memory", "padding"),
)


@pytest.mark.parametrize("pairs", [False, True])
def test_a_line_has_every_field(make_data: MakeData, small_run: Pretrain, tmp_path: Path, pairs: bool) -> None:
    train(make_data(pairs=pairs), tmp_path / "out", dataclasses.replace(small_run, log_steps=1))
    lines = [json.loads(line) for line in (tmp_path / "out/log.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "mlm_loss" in line]
    assert [line["step"] for line in steps] == list(range(1, 11))
    for line in steps:
        assert set(FIELDS) <= set(line)
        empty = {"mfu"} if pairs else {"mfu", "pair_loss", "pair_accuracy"}
        assert all(line[name] is not None for name in set(FIELDS) - empty)


class FakeRun:
    def __init__(self, number: str) -> None:
        self.id, self.logged, self.is_over = number, [], False  # type: ignore[var-annotated]

    def log(self, values: dict[str, Any], *, step: int) -> None:
        self.logged.append((step, values))

    def finish(self) -> None:
        self.is_over = True


def fake_wandb(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], FakeRun]]:
    runs: list[tuple[dict[str, Any], FakeRun]] = []

    def init(**how: Any) -> FakeRun:
        runs.append((how, FakeRun(how["id"] or f"run-{len(runs)}")))
        return runs[-1][1]

    module = types.ModuleType("wandb")
    module.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return runs


def test_wandb_gets_every_line_and_a_resumed_run_goes_on_with_it(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, data = fake_wandb(monkeypatch), make_data()
    settings = dataclasses.replace(small_run, wandb="corpus", log_steps=1)
    stop_at(data, tmp_path / "out", settings, 3)
    train(data, tmp_path / "out", settings, resume=True)
    assert [how["project"] for how, _ in runs] == ["corpus", "corpus"]
    assert [how["id"] for how, _ in runs] == [None, "run-0"]
    assert all(run.is_over for _, run in runs)
    losses = [step for _, run in runs for step, values in run.logged if "mlm_loss" in values]
    assert losses == list(range(1, 11))
    assert all(isinstance(v, int | float) for _, run in runs for _, values in run.logged for v in values.values())
    assert any("heldout_loss" in values for _, run in runs for _, values in run.logged)


def test_wandb_is_imported_only_when_asked_for(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)  # importing it fails
    data, short = make_data(), dataclasses.replace(small_run, steps=2)
    train(data, tmp_path / "out", short)
    with pytest.raises(errors.ExtraMissing, match="pip install wandb"):
        train(data, tmp_path / "other", dataclasses.replace(short, wandb="corpus"))
