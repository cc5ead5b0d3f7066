"""Two ranks equal one in loss and gradient; they stop together, and any number can resume any other."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from corpusforge import shards
from corpusforge.sections import Pretrain
from corpusforge.trainer import checkpoint, ranks
from corpusforge.trainer.ranks import Ranks
from corpusforge.trainer.signals import StopFlag
from tests.made_up_instances import Data
from tests.prestarted import Commands
from tests.trainer.training_runs import assert_equal_runs, logged, train

pytest_plugins = ["tests.made_up_data"]
MakeData = Callable[..., Data]


def launch(corpusforge: Commands, data: Data, output: Path, settings: Pretrain, ranks: int, **more: Any) -> int:
    """Run the script on several ranks, each a process as torchrun would start it; gives the first exit code."""
    task: dict[str, Any] = {"data": data.instances, "vocabulary": data.vocabulary, "output": str(output)}
    task |= {"settings": dataclasses.asdict(settings), "gradient": False, "stop": None, "resume": True} | more
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    running = []
    for number in range(ranks):
        own = os.environ | shared | {"RANK": str(number), "LOCAL_RANK": str(number)}
        running.append(corpusforge.start("tests.trainer.ranks_script", json.dumps(task), environment=own))
    ended = [process.wait(timeout=240) for process in running]
    codes, ends = {one.returncode for one in ended}, [one.stderr for one in ended]
    assert len(codes) == 1, ends
    code = codes.pop()
    assert code in (0, 143), ends
    return code


def weights(run: Path) -> dict[str, torch.Tensor]:
    newest = checkpoint.all_folders(run)[0]
    return load_file(newest / "model.safetensors") | load_file(newest / "optimizer.safetensors")


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert (value - other[name]).norm() <= tolerance * value.norm() + 1e-5, name


@pytest.fixture
def quick_run(small_run: Pretrain) -> Pretrain:
    """Four steps, the first two short, without dropout, each of several micro-batches."""
    changes = {"steps": 4, "short_share": 0.5, "dropout": 0.0, "evaluate_steps": 4, "checkpoint_steps": 2}
    return dataclasses.replace(small_run, **changes, log_steps=1, micro_batch_tokens=100)


@pytest.mark.slow
def test_two_ranks_are_one(corpusforge: Commands, make_data: MakeData, quick_run: Pretrain, tmp_path: Path) -> None:
    """In every loss, the gradient of a step, and the weights after four; packed, padded and sharded."""
    data = make_data(pairs=True)
    assert launch(corpusforge, data, tmp_path / "one", quick_run, 1, gradient=True) == 0
    expected = load_file(tmp_path / "one/gradient.safetensors")
    kinds = {"packed": {}, "padded": {"packing": False, "micro_batch_tokens": 400}, "fsdp": {"sharding": "fsdp"}}
    for kind, changes in kinds.items():
        run = tmp_path / kind
        settings = dataclasses.replace(quick_run, **changes)  # type: ignore[arg-type]
        launch(corpusforge, data, run, settings, 2, gradient=kind != "fsdp")
        if kind != "fsdp":
            found = load_file(run / "gradient.safetensors")
            assert torch.allclose(expected["sums"], found["sums"], rtol=1e-5)
            for name in expected.keys() - {"sums", "batches"}:
                assert torch.allclose(expected[name], found[name], atol=1e-6, rtol=1e-3), name
            assert found["batches"] < expected["batches"] or kind == "padded"
        assert_close(weights(tmp_path / "one"), weights(run), 2e-3)
        for mine, theirs in zip(logged(tmp_path / "one"), logged(run), strict=True):
            assert mine.keys() == theirs.keys()
            for key in {"step", "tokens", "loss", "grad_norm", "heldout_loss"} & mine.keys():
                assert mine[key] == pytest.approx(theirs[key], rel=1e-3), key


@pytest.mark.slow
def test_ranks_stop_together_and_any_number_goes_on(
    corpusforge: Commands, make_data: MakeData, quick_run: Pretrain, tmp_path: Path
) -> None:
    """The signal reaches one rank only; the run resumes from two sharded ranks on one, and on two."""
    data = make_data()
    launch(corpusforge, data, tmp_path / "straight", quick_run, 1)
    settings = dataclasses.replace(quick_run, checkpoint_steps=1000, sharding="fsdp")
    assert launch(corpusforge, data, tmp_path / "moved", settings, 2, stop=(1, signal.SIGTERM)) == 143
    assert [folder.name for folder in checkpoint.all_folders(tmp_path / "moved")] == ["step-000001"]
    assert launch(corpusforge, data, tmp_path / "moved", settings, 1, stop=(2, signal.SIGTERM)) == 143
    assert launch(corpusforge, data, tmp_path / "moved", settings, 2) == 0
    assert_close(weights(tmp_path / "straight"), weights(tmp_path / "moved"), 2e-3)
    assert [line["step"] for line in logged(tmp_path / "moved")] == [1, 2, 3, 4, 4]


@pytest.mark.slow
def test_two_ranks_go_on_to_the_bit(
    corpusforge: Commands, make_data: MakeData, quick_run: Pretrain, tmp_path: Path
) -> None:
    """With dropout, on as many ranks as before."""
    data, settings = make_data(), dataclasses.replace(quick_run, checkpoint_steps=1000, dropout=0.1)
    launch(corpusforge, data, tmp_path / "straight", settings, 2)
    assert launch(corpusforge, data, tmp_path / "stopped", settings, 2, stop=(2, signal.SIGTERM)) == 143
    launch(corpusforge, data, tmp_path / "stopped", settings, 2)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")


@pytest.mark.slow
def test_two_ranks_begin_from_a_checkpoint_as_one_does(
    corpusforge: Commands, make_data: MakeData, quick_run: Pretrain, tmp_path: Path
) -> None:
    """Sharded and not; and resumed, when the checkpoint it started from no longer matters."""
    data = make_data(pairs=True)
    train(data, tmp_path / "first", dataclasses.replace(quick_run, learning_rate=3e-3), seed=5)
    begun = dataclasses.replace(quick_run, init=str(tmp_path / "first/model"), learning_rate=1e-4)
    train(data, tmp_path / "one", begun)
    launch(corpusforge, data, tmp_path / "two", begun, 2)
    sharded = dataclasses.replace(begun, sharding="fsdp", checkpoint_steps=1000)
    assert launch(corpusforge, data, tmp_path / "stopped", sharded, 2, stop=(2, signal.SIGTERM)) == 143
    launch(corpusforge, data, tmp_path / "stopped", sharded, 2)
    moved = weights(tmp_path / "one")["bert.encoder.layer.0.output.dense.weight"]
    drawn = weights(tmp_path / "first")["bert.encoder.layer.0.output.dense.weight"]
    assert 0 < (moved - drawn).norm() < 0.1 * drawn.norm()  # begun there, and not anew
    for other in ("two", "stopped"):
        assert_close(weights(tmp_path / "one"), weights(tmp_path / other), 2e-3)
        state = json.loads((checkpoint.all_folders(tmp_path / other)[0] / "state.json").read_text())
        assert state["initial"]["filled"] == "initialized: nothing; left out: nothing"


def test_signals_of_several_ranks_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank may have received another one, or none; a rank never forgets its own."""
    for mine, theirs in ((0, 0), (0, 2), (2, 0), (15, 0), (2, 15), (15, 15), (2, 2)):

        def summed(counts: torch.Tensor, group: Any, theirs: int = theirs) -> None:
            counts += torch.tensor([3, 0, 5, 7, int(theirs == 15), int(theirs == 2)])

        monkeypatch.setattr(ranks, "_HOSTS", [None])
        monkeypatch.setattr(ranks.dist, "all_reduce", summed)
        agreed = Ranks(0, 2).agree([], mine)
        assert agreed == (3, 0, 5, 7, max(mine, theirs)), (mine, theirs)
    flag = StopFlag()
    flag.join(15)
    flag.join(0)
    assert flag.number == 15


@pytest.mark.slow
def test_a_signal_to_one_rank_behind_the_last_step_ends_all(
    corpusforge: Commands, make_data: MakeData, quick_run: Pretrain, tmp_path: Path
) -> None:
    """Sharded ranks measure together or not at all: the one that was asked must not wait for the other."""
    data, settings = make_data(), dataclasses.replace(quick_run, sharding="fsdp")
    assert launch(corpusforge, data, tmp_path / "out", settings, 2, stop=(4, signal.SIGTERM)) == 143
    assert checkpoint.all_folders(tmp_path / "out")[0].name == "step-000004"
    assert launch(corpusforge, data, tmp_path / "out", settings, 2) == 0
    assert [line["step"] for line in logged(tmp_path / "out")] == [1, 2, 3, 4, 4]


def test_shares_are_equally_many_and_together_the_step(make_data: MakeData, small_run: Pretrain) -> None:
    from corpusforge.trainer.prepare import prepare

    data = make_data()
    for packing in (True, False):
        settings = dataclasses.replace(small_run, packing=packing)
        job = prepare(data.instances, settings, vocab_folder=data.vocabulary)
        whole = job.batches(8)
        for count in (1, 2, 3, 7):
            jobs = [dataclasses.replace(job, ranks=Ranks(number, count)) for number in range(count)]
            shares = [one.batches(8) for one in jobs]
            assert len({len(share) for share in shares}) == 1
            made = [batch for share in shares for batch in share]
            assert sum(batch.tokens for batch in made) == sum(batch.tokens for batch in whole)
            assert sum(batch.masked_count for batch in made) == sum(batch.masked_count for batch in whole)
            numbers = [n for one, share in zip(jobs, shares, strict=True) for n in one.ranks.numbers(len(share))]
            assert sorted(numbers) == list(range(len(made)))


@pytest.mark.slow
def test_torchrun_starts_the_command(make_data: MakeData, tmp_path: Path) -> None:
    """One rank claims the folder, writes and talks; run again, all see that it is done."""
    data = make_data()
    shutil.copytree(data.vocabulary, Path(data.instances) / "vocab")
    manifest = shards.Manifest.load(data.instances)
    dataclasses.replace(manifest, recipe={"instances": {"masks": "dynamic"}, "seed": 0}).save(data.instances)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    command += ["corpusforge", "pretrain", data.instances, "--output", str(tmp_path / "out"), "--preset", "bert-tiny"]
    command += ["--steps", "2", "--batch-tokens", "320", "--device", "cpu"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        assert shards.Manifest.load(str(tmp_path / "out")).stage == "pretrain"
    assert [line["step"] for line in logged(tmp_path / "out")] == [2, 2]
    other = subprocess.run([*command, "--learning-rate", "1"], env=environment, capture_output=True, text=True)
    assert other.returncode == 1
    assert "--overwrite" in other.stderr  # from the first rank; the other one ends in silence
    assert "Connection" not in other.stderr
    command[command.index("--output") + 1] = str(tmp_path / "begun")
    nothing = subprocess.run([*command, "--init", "nope"], env=environment, capture_output=True, text=True)
    assert nothing.returncode == 1
    assert "nope: no such folder" in nothing.stderr
    assert nothing.stderr.count("Traceback") == 1  # torchrun's own
    assert "Connection" not in nothing.stderr
    assert not (tmp_path / "begun").exists()
