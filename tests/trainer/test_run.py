"""Exactness of a run: resumed anywhere, it equals the run that was never stopped."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from corpusforge import errors, shards
from corpusforge.sections import Pretrain
from corpusforge.trainer import checkpoint, heldout, log, run
from corpusforge.trainer.hf_folder import load_model
from corpusforge.trainer.prepare import prepare
from tests.made_up_instances import Data, write_vocabulary
from tests.trainer.training_runs import RecordedProgress, assert_equal_runs, steady, stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dynamic", "pairs", "duplicated"])
@pytest.mark.parametrize("stop", [0, 3, 6, 7])  # primes on both sides of the switch behind step 6, and on it
def test_a_resumed_run_is_bit_equal(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, kind: str, stop: int
) -> None:
    data = make_data(pairs=kind == "pairs", copies=3 if kind == "duplicated" else 0)
    train(data, tmp_path / "straight", small_run)
    stop_at(data, tmp_path / "stopped", small_run, stop)
    train(data, tmp_path / "stopped", small_run, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")


@pytest.mark.slow
def test_the_same_run_twice_and_from_other_shards_is_bit_equal(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    train(make_data(files=1, name="one"), tmp_path / "one", small_run)
    train(make_data(files=5, name="five"), tmp_path / "five", small_run)
    assert_equal_runs(tmp_path / "one", tmp_path / "five")


@pytest.mark.slow
def test_two_threads_repeat_themselves(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data, settings = make_data(), dataclasses.replace(small_run, threads=2)
    train(data, tmp_path / "one", settings)
    train(data, tmp_path / "other", settings)
    assert_equal_runs(tmp_path / "one", tmp_path / "other")


@pytest.mark.slow
def test_bf16_stays_close(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data(pairs=True)
    losses = [
        train(data, tmp_path / precision, dataclasses.replace(small_run, precision=precision, dropout=0.0))["loss"]
        for precision in ("fp32", "bf16")
    ]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


@pytest.mark.slow
def test_a_killed_process_leaves_a_valid_checkpoint(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data, output = make_data(), tmp_path / "out"
    code = (
        "import sys; from corpusforge.trainer.run import pretrain; from corpusforge.sections import Pretrain\n"
        "settings = Pretrain(preset='bert-tiny', steps=100000, batch_tokens=320, short_length=24, threads=1,"
        " tensorboard=False, log_steps=1)\n"
        "data, output, vocabulary = sys.argv[1:]\n"
        "pretrain(data, output, settings, vocab_folder=vocabulary, manifest_digest='d', recipe={}, card={})"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, data.instances, str(output), data.vocabulary], env=environment
    )
    log = output / "log.jsonl"
    while process.poll() is None and not (log.exists() and log.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    newest = checkpoint.all_folders(output)[0]
    assert checkpoint.what_is_wrong(newest) is None
    assert load_model(output / "model").shape.layers == 2
    assert not list(output.rglob(".unfinished*"))


@pytest.mark.slow
@pytest.mark.parametrize("at", ["measure", "publish"])
def test_a_signal_behind_the_last_step_is_not_lost(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Otherwise `corpusforge run` would continue with the next stage despite the signal."""
    data, calls = make_data(), []
    straight = train(data, tmp_path / "straight", small_run)
    place: Any = heldout if at == "measure" else checkpoint
    really = getattr(place, at)

    def asked(*arguments: Any) -> Any:
        calls.append(at)
        if len(calls) == (2 if at == "measure" else 1):  # measured behind steps 5 and 10, published behind 10
            os.kill(os.getpid(), signal.SIGTERM)
        return really(*arguments)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stopped:
        patch.setattr(place, at, asked)
        train(data, tmp_path / "out", small_run)
    assert stopped.value.code == 143
    assert checkpoint.all_folders(tmp_path / "out")[0].name == "step-000010"
    assert steady(train(data, tmp_path / "out", small_run, resume=True)) == steady(straight)


@pytest.mark.slow
def test_a_broken_checkpoint_is_skipped(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data()
    often = dataclasses.replace(small_run, checkpoint_steps=2, keep_checkpoints=3)
    train(data, tmp_path / "straight", often)
    stop_at(data, tmp_path / "stopped", often, 5)
    newest = checkpoint.all_folders(tmp_path / "stopped")[0]
    with (newest / "optimizer.safetensors").open("r+b") as file:
        file.seek(200)
        file.write(b"\xff\xff\xff\xff")
    recorded = RecordedProgress()
    train(data, tmp_path / "stopped", often, resume=True, progress=recorded)
    assert any("skipping broken checkpoint step-000005" in line for line in recorded.lines)
    assert any("after step 4" in line for line in recorded.lines)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")
    names = [folder.name for folder in checkpoint.all_folders(tmp_path / "stopped")]
    assert names == ["step-000010", "step-000008", "step-000006"]


def test_no_valid_checkpoint_is_an_error_and_none_at_all_is_a_beginning(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    data = make_data()
    train(data, tmp_path / "out", small_run, resume=True)
    (tmp_path / "out/checkpoints/step-000010/digests.json").write_text("{")
    with pytest.raises(errors.TrainingStopped, match="none of its checkpoints is valid"):
        train(data, tmp_path / "out", small_run, resume=True)


def test_other_data_are_refused(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data()
    stop_at(data, tmp_path / "out", small_run, 3)
    with pytest.raises(errors.StageMismatch, match="--allow-new-data"):
        train(data, tmp_path / "out", small_run, resume=True, manifest_digest="another")
    with pytest.raises(errors.OutputTaken, match="--resume"):
        train(data, tmp_path / "out", small_run)
    with pytest.raises(errors.StageMismatch, match="bert-mini"):
        train(data, tmp_path / "out", dataclasses.replace(small_run, preset="bert-mini"), resume=True)
    allowed = dataclasses.replace(small_run, allow_new_data=True)
    assert train(data, tmp_path / "out", allowed, resume=True, manifest_digest="another")["steps"] == 10


def test_a_finished_run_resumed_does_nothing(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data()
    first = train(data, tmp_path / "out", small_run)
    log = (tmp_path / "out/log.jsonl").read_text()
    again = train(data, tmp_path / "out", small_run, resume=True)
    assert (again["steps"], again["tokens"], again["heldout"]) == (10, first["tokens"], first["heldout"])
    assert (tmp_path / "out/log.jsonl").read_text() == log


@pytest.mark.slow
@pytest.mark.parametrize("left", ["older", "nothing"])
def test_a_kill_before_the_last_checkpoint_is_published(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    data, often = make_data(), dataclasses.replace(small_run, checkpoint_steps=4, keep_checkpoints=2)
    straight = train(data, tmp_path / "straight", often)
    publish = checkpoint.publish

    def killed(folder: Path, target: Path) -> None:
        if folder.name == "step-000010":
            if left == "nothing":
                shutil.rmtree(target)
            raise KeyboardInterrupt
        publish(folder, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint, "publish", killed)
        train(data, tmp_path / "killed", often)
    again = train(data, tmp_path / "killed", often, resume=True)
    for name in ("model.safetensors", "README.md", "config.json"):
        assert (tmp_path / "killed/model" / name).read_bytes() == (tmp_path / "straight/model" / name).read_bytes()
    assert not list((tmp_path / "killed").rglob(".unfinished*"))
    assert steady(again) == steady(straight)
    assert again["tokens_per_second"] > 0


@pytest.mark.parametrize("keep", [1, 2])
def test_broken_newer_checkpoints_go_before_the_one_just_written(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, keep: int
) -> None:
    data, output = make_data(), tmp_path / "out"
    stop_at(data, output, dataclasses.replace(small_run, keep_checkpoints=keep, checkpoint_steps=2), 5)
    for number in (7, 9):
        (output / f"checkpoints/step-{number:06d}").mkdir()
    if keep == 1:
        shutil.copytree(output / "checkpoints/step-000005", output / "checkpoints/step-000004")
    settings = dataclasses.replace(small_run, keep_checkpoints=keep, checkpoint_steps=1)
    recorded = RecordedProgress(6, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit):
        train(data, output, settings, resume=True, progress=recorded)
    names = [folder.name for folder in checkpoint.all_folders(output)]
    assert names == ["step-000006", "step-000005"][:keep]
    assert checkpoint.what_is_wrong(output / "checkpoints/step-000006") is None


def test_the_log_is_never_cut_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"step": step, "mlm_loss": float(step)}) + "\n" for step in (2, 4, 6)]
    path.write_text("".join(lines) + '{"step": 6, "heldout_loss": 1.0}\n{"step": 8, "mlm')

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(shards, "write_bytes", full)
        log.Log(tmp_path, 6, tensorboard=False)
    assert path.read_text().startswith("".join(lines))
    with log.Log(tmp_path, 6, tensorboard=False) as opened:
        assert opened.newest == {"step": 6, "mlm_loss": 6.0}
        opened.write({"step": 8})
    assert path.read_text() == "".join(lines) + '{"step": 6, "heldout_loss": 1.0}\n{"step": 8}\n'
    with log.Log(tmp_path, 0, tensorboard=False) as opened:
        assert opened.newest == {}
    assert path.read_text() == ""


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_batch(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    wild = dataclasses.replace(small_run, learning_rate=1e30, warmup_steps=0, log_steps=5)
    with pytest.raises(errors.TrainingStopped, match=r"not finite.*start again in another folder"):
        train(make_data(), tmp_path / "out", wild)
    assert [path.name for path in (tmp_path / "out").glob("bad-*")] == ["bad-step-000002.safetensors"]
    saved = load_file(tmp_path / "out/bad-step-000002.safetensors")
    job = prepare(f"{tmp_path}/data/instances", wild, vocab_folder=f"{tmp_path}/data/vocabulary")
    batches = job.batches(1)  # the first step behind the one that ruined the weights
    expected = {
        f"{number}.{name}": value for number, batch in enumerate(batches) for name, value in batch.tensors().items()
    }
    assert saved.keys() == expected.keys()
    assert all(torch.equal(saved[name], value) for name, value in expected.items())
    assert not (tmp_path / "out/checkpoints").exists()


def test_weights_that_are_no_numbers_are_never_a_checkpoint(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss and gradient of the step were finite, and no further step is taken."""
    really = run.update

    def update(model: Any, *arguments: Any, **more: Any) -> Any:
        norm = really(model, *arguments, **more)
        if more["learning_rate"] == rates[9]:
            model.bias.data[0] = float("inf")
        return norm

    settings = dataclasses.replace(small_run, checkpoint_steps=9, evaluate_steps=100)
    data = make_data()
    plan = prepare(data.instances, settings, vocab_folder=data.vocabulary).plan
    rates = [plan.learning_rate_at(step) for step in range(10)]
    monkeypatch.setattr(run, "update", update)
    with pytest.raises(errors.TrainingStopped, match=r"step 10: weights are not finite"):
        train(data, tmp_path / "out", settings)
    assert [folder.name for folder in checkpoint.all_folders(tmp_path / "out")] == ["step-000009"]
    assert (tmp_path / "out/bad-step-000010.safetensors").exists()
    assert all(torch.isfinite(w).all() for w in load_file(tmp_path / "out/model/model.safetensors").values())


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "rate"), [("adamw", 3e-3), ("bert-adam", 1e-3), ("lamb", 0.03)])
def test_overfits_one_batch(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, optimizer: str, rate: float
) -> None:
    data = make_data(count=4, longest=24, copies=1)
    once = prepare(data.instances, small_run, vocab_folder=data.vocabulary).corpus.lengths.sum()
    changes = {"steps": 150, "batch_tokens": int(once), "dropout": 0.0, "log_steps": 10, "warmup_steps": 5}
    changes |= {"optimizer": optimizer, "learning_rate": rate, "evaluate_steps": 1000}
    settings = dataclasses.replace(small_run, **changes)
    assert train(data, tmp_path / "out", settings)["loss"] < 0.01


@pytest.mark.parametrize("preset", ["roberta-tiny", "bert-tiny"])
def test_tensorboard_and_families(make_data: MakeData, small_run: Pretrain, tmp_path: Path, preset: str) -> None:
    pytest.importorskip("tensorboard")
    settings = dataclasses.replace(small_run, preset=preset, steps=2, tensorboard=True)
    facts = train(make_data(pairs=True), tmp_path / "out", settings)
    assert list((tmp_path / "out/tensorboard").iterdir())
    assert (facts["heldout"]["pair_loss"] is None) == (preset == "roberta-tiny")
    assert load_model(Path(facts["model"])).shape.positions == (513 if preset == "roberta-tiny" else 512)


@pytest.mark.parametrize("preset", ["bert-tiny", "roberta-tiny"])
def test_instances_longer_than_the_published_models(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, preset: str
) -> None:
    """Rows of 1,021 tokens are padded to 1,024: each needs a position."""
    data = make_data(count=3, longest=1021)
    changes = {"preset": preset, "steps": 2, "batch_tokens": 1100, "micro_batch_tokens": 4096, "short_length": 2000}
    facts = train(data, tmp_path / "out", dataclasses.replace(small_run, **changes))
    shape = load_model(Path(facts["model"])).shape
    assert shape.positions - shape.first_position == 1024


def test_another_vocabulary_is_refused(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data()
    write_vocabulary(tmp_path / "other", unused=100)
    with pytest.raises(errors.StageMismatch, match="vocabulary"):
        prepare(data.instances, small_run, vocab_folder=str(tmp_path / "other"))
