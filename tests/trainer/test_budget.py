"""A time budget: plans fit it, however wrong the first estimate; and a run is a function of its plans."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusforge import errors
from corpusforge.sections import Pretrain
from corpusforge.trainer import budget as budget_module
from corpusforge.trainer import checkpoint, cost, run
from corpusforge.trainer.budget import Budget
from corpusforge.trainer.cost import estimate as plan_of
from corpusforge.trainer.prepare import Job, prepare
from corpusforge.trainer.training_plan import Mark, TrainingPlan, training_plan
from tests.made_up_instances import Data
from tests.trainer.training_runs import RecordedProgress, stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]


def under(budget: str, small_run: Pretrain, **more: Any) -> Pretrain:
    return dataclasses.replace(small_run, steps=0, budget=budget, warmup_steps=-1, **more)


class Clock:
    """Stands for `time` where the budget reads it."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def simulate(job: Job, monkeypatch: pytest.MonkeyPatch, seconds: float, *, guess: float, extra: float) -> Job:
    """A run whose tokens cost 1 ms (2 ms after the switch), ``guess`` times less at first sight; each tenth step
    there is something that takes ``extra``, and once more at the end."""
    clock = Clock()
    monkeypatch.setattr(budget_module, "time", clock)
    monkeypatch.setattr(cost, "flops_per_second", lambda job: 1.0)
    per_token = {24: 1e-3, 47: 2e-3}
    monkeypatch.setattr(cost, "step_flops_per_token", lambda stream, job: per_token[stream.part.length] / guess)
    budget = Budget(seconds, 0.0, 0.0)
    budget.guess(job)
    job, done = job.marked(budget.mark(job, 0, 0)), 0
    while done < job.plan.steps:
        part = job.plan.part_of(done)
        tokens = sum(batch.tokens for batch in job.batches(done))
        clock.now += tokens * 1e-3 * (1 + part)
        done += 1
        budget.count(tokens, part)
        if budget.is_due:
            job = job.marked(budget.mark(job, done, done + 2))
        if done % 10 == 0:
            clock.now += extra
            budget.took("evaluate", extra)
    clock.now += extra
    assert clock.now == pytest.approx(seconds, rel=0.05)
    return job


@pytest.mark.parametrize("guess", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("ramp", [1.0, 0.3])
def test_a_run_ends_with_its_budget(
    make_data: MakeData, small_run: Pretrain, monkeypatch: pytest.MonkeyPatch, guess: float, ramp: float
) -> None:
    data = make_data()
    settings = under("60s", small_run, batch_ramp=ramp)
    job = prepare(data.instances, settings, vocab_folder=data.vocabulary)
    plan = simulate(job, monkeypatch, 60.0, guess=guess, extra=0.3).plan
    assert plan.parts[0].stop / plan.steps == pytest.approx(0.6, abs=0.05)
    assert len(plan.marks) < 120
    rates = [plan.learning_rate_at(step) for step in range(plan.steps)]
    top = rates.index(max(rates))
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[-1] < 0.05 * max(rates)


def test_steps_behind_a_plan_do_not_change_with_it(make_data: MakeData, small_run: Pretrain) -> None:
    """Steps already requested from the feed are the same under a new plan."""
    data = make_data()
    settings = under("60s", small_run, mask_rate_start=0.3, mask_rate_end=0.15, batch_ramp=0.5)
    job = prepare(data.instances, settings, vocab_folder=data.vocabulary)
    job = job.marked(Mark(0, 0.0, 40, 24, 0.0))
    later = job.marked(Mark(17, job.plan.progress(17), 70, 42, 20.0))
    for step in (0, 3, 16):
        assert job.plan.learning_rate_at(step) == later.plan.learning_rate_at(step)
        for mine, theirs in zip(job.batches(step), later.batches(step), strict=True):
            assert mine.tensors().keys() == theirs.tensors().keys()
            assert all((mine.tensors()[k] == theirs.tensors()[k]).all() for k in mine.tensors())
    assert (later.plan.part_of(41), later.plan.part_of(42)) == (0, 1)
    assert later.plan.progress(17) == job.plan.progress(17)  # no leap where the plans meet
    assert job.plan.learning_rate_at(30) != later.plan.learning_rate_at(30)


def test_warm_up_in_steps_stays_in_steps() -> None:
    plan = training_plan(Pretrain(preset="roberta-tiny", budget="1m", warmup_steps=10, batch_tokens=512), 128)
    plan = plan.marked(Mark(0, 0.0, 100, 1, 0.0)).marked(Mark(50, 0.5, 400, 1, 30.0))
    assert plan.learning_rate_at(5) == pytest.approx(0.5 * plan.learning_rate)
    assert plan.learning_rate_at(10) == plan.learning_rate


def test_a_budget_and_steps_exclude_each_other(small_run: Pretrain) -> None:
    with pytest.raises(errors.RecipeInvalid, match="leave one of them out"):
        training_plan(dataclasses.replace(small_run, budget="1m"), 48)


class Impatient(RecordedProgress):
    """Sends SIGTERM after three seconds: the bar moves by seconds."""

    def advance(self, amount: int) -> None:
        self.done += amount
        if self.done >= 3 and self.lines[-1:] != ["asked"]:
            self.lines.append("asked")
            os.kill(os.getpid(), signal.SIGTERM)


def told_plans(run: Path) -> tuple[list[dict[str, Any]], list[Mark]]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    names = [field.name for field in dataclasses.fields(Mark)]
    return lines, [Mark(**{n: line[f"plan_{n}"] for n in names}) for line in lines if "plan_steps" in line]


def replayed(settings: Pretrain, marks: list[Mark]) -> TrainingPlan:
    plan = training_plan(settings, 48)
    for mark in marks:
        plan = plan.marked(mark)
    return plan


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock by which each step takes a tenth of a second, however busy the machine is."""
    clock, update = Clock(), run.update

    def updated(*positional: Any, **named: Any) -> Any:
        clock.now += 0.1
        return update(*positional, **named)

    for module in (budget_module, run):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(run, "update", updated)
    monkeypatch.setattr(cost, "flops_per_second", lambda job: 1e9)
    return clock


@pytest.mark.slow
def test_a_run_of_seconds_keeps_its_budget_and_its_log_holds_the_schedule(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, clock: Clock
) -> None:
    data, settings = make_data(), under("8s", small_run, log_steps=1, evaluate_steps=50)
    facts = train(data, tmp_path / "out", settings)
    assert clock.now == pytest.approx(8, rel=0.05)
    lines, marks = told_plans(tmp_path / "out")
    plan = replayed(settings, marks)
    assert plan.steps == facts["steps"] > 50
    rates = {line["step"]: line["lr"] for line in lines if "lr" in line}
    assert rates == {step: plan.learning_rate_at(step - 1) for step in rates}
    assert rates[facts["steps"]] < 0.05 * max(rates.values())


@pytest.mark.slow
def test_a_resumed_run_has_the_time_that_was_left(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, clock: Clock
) -> None:
    data, settings = make_data(), under("8s", small_run, log_steps=1, evaluate_steps=50)
    with pytest.raises(SystemExit):
        train(data, tmp_path / "out", settings, progress=Impatient())
    clock.now += 1  # between the two, which does not count
    train(data, tmp_path / "out", settings, resume=True)
    assert clock.now - 1 == pytest.approx(8, rel=0.05)
    lines, marks = told_plans(tmp_path / "out")
    rates = {line["step"]: line["lr"] for line in lines if "lr" in line}
    plan = replayed(settings, marks)
    assert rates == {step: plan.learning_rate_at(step - 1) for step in rates}
    again = train(data, tmp_path / "out", settings, resume=True)
    assert again["steps"] == plan.steps


def test_a_run_of_steps_does_not_go_on_under_a_budget(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data()
    stop_at(data, tmp_path / "out", small_run, 3)
    with pytest.raises(errors.StageMismatch, match="resume without a budget"):
        train(data, tmp_path / "out", under("8s", small_run), resume=True)
    assert checkpoint.all_folders(tmp_path / "out")[0].name == "step-000003"


def test_the_plan_of_a_budget_says_how_many_steps_fit(make_data: MakeData, small_run: Pretrain) -> None:
    data = make_data()
    found = plan_of(data.instances, under("1m", small_run), vocab_folder=data.vocabulary)
    assert float(found["seconds"]) == pytest.approx(60, rel=0.05)
    assert 10 < int(found["steps"]) < 500_000
