"""The unigram line, and the warning of a run that does not leave it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusforge.loader.corpus import Corpus
from corpusforge.loader.unigram import sampled_rows, token_counts, unigram_entropy
from corpusforge.sections import Pretrain
from corpusforge.trainer import loss_monitor
from corpusforge.trainer.loss_monitor import Plateau
from corpusforge.trainer.prepare import Job, prepare
from tests.made_up_instances import Data
from tests.trainer.training_runs import Said, logged, stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]


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


def test_a_run_says_and_logs_it_and_a_resumed_one_does_not_say_it_twice(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_monitor, "LEAST_STEPS", 3)
    data, said = make_data(), Said()
    still = dataclasses.replace(small_run, learning_rate=1e-9, log_steps=1)
    train(data, tmp_path / "straight", still, progress=said)
    assert sum("unigram entropy" in line for line in said.lines) == 1
    assert said.noted[-1].startswith("loss ")
    assert "unigram" in said.noted[-1]
    stop_at(data, tmp_path / "stopped", still, 5)
    train(data, tmp_path / "stopped", still, resume=True)
    assert logged(tmp_path / "straight") == logged(tmp_path / "stopped")
    told = [json.loads(line) for line in (tmp_path / "straight/log.jsonl").read_text().splitlines()]
    assert sum("warning" in line for line in told) == 1
