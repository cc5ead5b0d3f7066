"""Spikes are detected and skipped, or end the run, also a resumed one; the plateau gives a warning."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from corpusforge import errors
from corpusforge.loader.corpus import Corpus
from corpusforge.loader.unigram import sampled_rows, token_counts, unigram_entropy
from corpusforge.sections import Pretrain
from corpusforge.trainer import checkpoint, loss_monitor, run
from corpusforge.trainer.loss_monitor import DECAY, MOST_IN_A_ROW, QUIET_STEPS, Plateau, Spikes
from corpusforge.trainer.prepare import Job, prepare
from tests.made_up_instances import Data
from tests.oracles.running import running
from tests.trainer.training_runs import RecordedProgress, assert_equal_runs, logged, stop_at, train

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
    """Losses of some steps (from 0) spike: their gradient is larger by the same factor."""
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_judging_changes_nothing_where_there_is_no_spike(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    data = make_data()
    train(data, tmp_path / "plain", small_run)
    train(data, tmp_path / "judged", dataclasses.replace(small_run, on_spike="skip"))
    assert_equal_runs(tmp_path / "plain", tmp_path / "judged")


def job_of(data: Data, settings: Pretrain) -> Job:
    return prepare(data.instances, settings, vocab_folder=data.vocabulary)


def slow_entropy(corpus: Corpus, words: set[int]) -> float:
    counts: Counter[int] = Counter()
    for row in range(len(corpus)):
        if corpus.copies[row] == 0:
            ids = corpus.ids.whole([row]).tolist()  # type: ignore[arg-type]
            if corpus.masked_positions is not None and corpus.masked_labels is not None:
                at, labels = corpus.masked_positions.whole([row]), corpus.masked_labels.whole([row])  # type: ignore[arg-type]
                for position, label in zip(at.tolist(), labels.tolist(), strict=True):
                    ids[position] = label
            counts.update(number for number in ids if number in words)
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values())


@pytest.mark.parametrize("copies", [0, 2])
def test_the_line_is_the_entropy_of_the_words(make_data: MakeData, small_run: Pretrain, copies: int) -> None:
    job = job_of(make_data(copies=copies), small_run)
    words = set(job.specials.words().tolist())
    counts = token_counts(job.corpus, job.specials.size)
    assert unigram_entropy(counts, job.specials) == pytest.approx(slow_entropy(job.corpus, words), rel=1e-12)


def test_a_sample_does_not_depend_on_shards(make_data: MakeData, small_run: Pretrain) -> None:
    one, five = (job_of(make_data(files=n, name=str(n)), small_run) for n in (1, 5))
    for limit in (100, 500):
        found = [sorted(job.corpus.keys[sampled_rows(job.corpus, limit)].tolist()) for job in (one, five)]
        assert found[0] == found[1]
        rows = sampled_rows(one.corpus, limit)
        assert 0.4 * limit < one.corpus.lengths[rows].sum() < 2 * limit


def lines(losses: list[float], every: int = 100) -> list[dict[str, Any]]:
    return [{"step": every * (k + 1), "mlm_loss": loss} for k, loss in enumerate(losses)]


def warned(losses: list[float], warmup: int = 0) -> list[int]:
    watch = Plateau(7.0)
    return [
        values["step"]
        for values in lines(losses)
        if watch.watch(values, values["step"] / 1000, is_warming_up=values["step"] < warmup)
    ]


def test_a_run_that_stays_is_warned_once() -> None:
    assert warned([9.0, *[7.02] * 9]) == [200]
    assert warned([9.0, *[7.02] * 9], warmup=350) == [400]


def test_a_run_that_has_been_below_is_not() -> None:
    assert warned([6.5, *[7.1] * 9]) == []
    assert warned([9.0, 6.5, *[7.1] * 8]) == []
    assert warned([9.0, 6.95, 6.95]) == [200]  # within the noise of the line


def test_the_warning_names_causes() -> None:
    watch = Plateau(7.0)
    words = [watch.watch(values, values["step"] / 1000, is_warming_up=False) for values in lines([7.1, 7.0, 7.0])][1]
    assert words is not None
    for cause in ("deduplicated", "vocabulary", "learning rate", "7.00"):
        assert cause in words


@pytest.mark.slow
def test_a_run_says_and_logs_it_and_a_resumed_one_does_not_say_it_twice(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_monitor, "LEAST_STEPS", 3)
    data, recorded = make_data(), RecordedProgress()
    still = dataclasses.replace(small_run, learning_rate=1e-9, log_steps=1)
    train(data, tmp_path / "straight", still, progress=recorded)
    assert sum("unigram entropy" in line for line in recorded.lines) == 1
    assert recorded.noted[-1].startswith("loss ")
    assert "unigram" in recorded.noted[-1]
    stop_at(data, tmp_path / "stopped", still, 5)
    train(data, tmp_path / "stopped", still, resume=True)
    assert logged(tmp_path / "straight") == logged(tmp_path / "stopped")
    told = [json.loads(line) for line in (tmp_path / "straight/log.jsonl").read_text().splitlines()]
    assert sum("warning" in line for line in told) == 1
