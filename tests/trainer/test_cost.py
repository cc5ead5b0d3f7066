"""The estimate of a run: what it counts, and that it is that of all ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusforge.sections import Pretrain
from corpusforge.trainer.cost import PROCESS_BYTES, estimate, memory_bytes, parameters
from corpusforge.trainer.prepare import prepare
from tests.made_up_instances import Data
from tests.trainer.training_runs import train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]


def test_the_plan_writes_nothing_and_counts(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data()
    before = sorted(tmp_path.rglob("*"))
    found = estimate(data.instances, small_run, vocab_folder=data.vocabulary)
    assert sorted(tmp_path.rglob("*")) == before
    assert (found["steps"], found["tokens"]) == (10, 3200)
    a_step = memory_bytes(prepare(data.instances, small_run, vocab_folder=data.vocabulary).shape, small_run, half=False)
    assert found["device"] != "cpu" or found["memory_bytes"] == a_step + PROCESS_BYTES
    assert str(found["part_1"]).startswith("6 steps of 320 tokens at length 24: 1.")
    parts = [str(found[f"part_{number}"]) for number in (1, 2)]
    assert found["epochs"] == pytest.approx(sum(float(part.split(": ")[1].split()[0]) for part in parts), abs=0.01)
    assert float(found["seconds"]) == pytest.approx(3200 / float(found["tokens_per_second"]))
    facts = train(data, tmp_path / "out", small_run)
    assert facts["parameters"] == found["parameters"]
    assert abs(facts["tokens"] - 3200) < 48


def test_the_plan_of_several_ranks_is_that_of_all(
    make_data: MakeData, small_run: Pretrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, shape = make_data(), dataclasses.replace(small_run, preset="bert-base", micro_batch_tokens=64)
    sharded = dataclasses.replace(small_run, sharding="fsdp")
    alone = estimate(data.instances, sharded, vocab_folder=data.vocabulary)
    assert (alone["ranks"], alone["memory_bytes"]) == (1, plan_of(data, small_run)["memory_bytes"])
    assert "rank alone" in str(alone["sharding"])
    for name, value in (("WORLD_SIZE", "4"), ("RANK", "0")):
        monkeypatch.setenv(name, value)
    several = plan_of(data, sharded)
    assert (several["ranks"], several["sharding"]) == (4, "fsdp")
    assert {k: several[k] for k in ("tokens", "steps", "flops")} == {k: alone[k] for k in ("tokens", "steps", "flops")}
    assert plan_of(data, small_run)["memory_bytes"] == alone["memory_bytes"]  # whole on every rank
    job = prepare(data.instances, shape, vocab_folder=data.vocabulary)
    of = {n: memory_bytes(job.shape, dataclasses.replace(shape, sharding="fsdp"), half=True, ranks=n) for n in (1, 8)}
    whole = 16 * parameters(job.shape)
    assert of[1] - of[8] == whole - whole // 8 - 8 * parameters(dataclasses.replace(job.shape, layers=1))
    assert of[8] < 0.3 * of[1]


def plan_of(data: Data, settings: Pretrain) -> dict[str, Any]:
    return estimate(data.instances, settings, vocab_folder=data.vocabulary)
