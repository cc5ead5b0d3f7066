"""Spikes: who is one, what is done about it, and that a resumed run does the same."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from corpusforge import errors
from corpusforge.sections import Pretrain
from corpusforge.trainer import checkpoint, loss_monitor, run
from corpusforge.trainer.loss_monitor import DECAY, MOST_IN_A_ROW, QUIET_STEPS, Spikes
from tests.made_up_instances import Data
from tests.oracles.running import running
from tests.trainer.training_runs import assert_equal_runs, stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]


@given(st.lists(st.floats(0, 12), min_size=1, max_size=80))
def test_mean_and_deviation_are_those_of_weighted_values(values: list[float]) -> None:
    found = Spikes(1e9)
    for value in values:
        assert found.judge(value, 1.0, 0) is None
    mean, deviation = running(values, DECAY)
    assert found.mean == pytest.approx(mean, abs=1e-9)
    assert math.sqrt(found.variance) == pytest.approx(deviation, abs=1e-6)


def test_a_leap_is_a_spike_and_teaches_nothing() -> None:
    judge = Spikes(6.0)
    for step in range(QUIET_STEPS):
        assert judge.judge(3.0 + 0.1 * (step % 2), 1.0, 0) is None
    before = dataclasses.asdict(judge)
    assert "above" in (judge.judge(3.05 + 0.05 * 7, 1.0, 0) or "")
    assert dataclasses.asdict(judge) == before
    assert judge.judge(3.05 + 0.05 * 5, 1.0, 0) is None
    assert "finite" in (judge.judge(math.nan, 1.0, 0) or "")
    assert "finite" in (judge.judge(3.0, math.inf, 0) or "")


def test_another_length_is_listened_to_anew() -> None:
    judge = Spikes(6.0)
    for _ in range(QUIET_STEPS):
        judge.judge(3.0, 1.0, 0)
    assert judge.judge(9.0, 1.0, 1) is None
    assert judge.judge(8.0, 1.0, 1) is None
    assert (judge.seen, judge.part) == (2, 1)


def test_too_many_in_a_row() -> None:
    judge = Spikes(6.0)
    assert [judge.skip(step) for step in range(MOST_IN_A_ROW + 1)] == [False] * MOST_IN_A_ROW + [True]
    judge.judge(1.0, 1.0, 0)
    assert judge.in_a_row == 0


def leaping(monkeypatch: pytest.MonkeyPatch, steps: tuple[int, ...], factor: float = 1e3) -> None:
    """Losses of some steps (from 0) leap: their gradient is too large by as much."""
    really = run.gradients
    monkeypatch.setattr(loss_monitor, "QUIET_STEPS", 2)

    def gradients(model: Any, batches: Any, **more: Any) -> Any:
        sums = really(model, batches, **more)
        if more["step"] in steps and sums is not None:
            sums[0] *= factor
            for weight in model.parameters():
                weight.grad *= factor
        return sums

    monkeypatch.setattr(run, "gradients", gradients)


def told(run: Path, name: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, (run / "log.jsonl").read_text().splitlines()) if name in line]


@pytest.mark.parametrize("factor", [1e3, math.nan])
def test_skipped_steps_are_recorded_and_skipped_again(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    data, settings = make_data(), dataclasses.replace(small_run, on_spike="skip", log_steps=1, short_share=0.0)
    leaping(monkeypatch, (4, 7, 8), factor)
    facts = train(data, tmp_path / "straight", settings)
    stop_at(data, tmp_path / "stopped", settings, 5)
    train(data, tmp_path / "stopped", settings, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")
    assert facts["skipped_steps"] == 3
    assert [line["step"] for line in told(tmp_path / "straight", "skipped")] == [5, 8, 9]
    assert [line["step"] for line in told(tmp_path / "straight", "mlm_loss")] == [1, 2, 3, 4, 6, 7, 10]
    newest = checkpoint.all_folders(tmp_path / "straight")[0]
    assert load_file(newest / checkpoint.MOMENTS)[checkpoint.STEPS].tolist() == [7.0]
    assert json.loads((newest / checkpoint.STATE).read_text())["spikes"]["skipped"] == [5, 8, 9]
    assert all(torch.isfinite(w).all() for w in load_file(newest / "model.safetensors").values())


def test_a_run_stops_behind_a_checkpoint_of_the_step_before(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, settings = make_data(), dataclasses.replace(small_run, on_spike="stop", short_share=0.0)
    with monkeypatch.context() as patch:
        leaping(patch, (6,))
        with pytest.raises(errors.TrainingStopped, match=r"step 7: loss .* is above .*--on-spike skip"):
            train(data, tmp_path / "out", settings)
    assert checkpoint.all_folders(tmp_path / "out")[0].name == "step-000006"
    assert "0.input_ids" in load_file(tmp_path / "out/bad-step-000007.safetensors")
    monkeypatch.setattr(loss_monitor, "QUIET_STEPS", 2)
    assert train(data, tmp_path / "out", dataclasses.replace(settings, on_spike="skip"), resume=True)["steps"] == 10


def test_a_loss_that_is_gone_for_good_ends_the_run(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_monitor, "MOST_IN_A_ROW", 3)
    leaping(monkeypatch, tuple(range(3, 10)))
    settings = dataclasses.replace(small_run, on_spike="skip", short_share=0.0)
    with pytest.raises(errors.TrainingStopped, match="the 3 steps before were skipped too"):
        train(make_data(), tmp_path / "out", settings)


def test_judging_changes_nothing_where_there_is_no_spike(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    data = make_data()
    train(data, tmp_path / "plain", small_run)
    train(data, tmp_path / "judged", dataclasses.replace(small_run, on_spike="skip"))
    assert_equal_runs(tmp_path / "plain", tmp_path / "judged")
