"""A run is what its settings say, whatever happens to it: formats, loader threads, signals, kills, broken files."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusforge import shards
from corpusforge.loader.corpus import gather
from corpusforge.sections import Pretrain
from corpusforge.trainer import checkpoint, heldout
from corpusforge.trainer.prepare import prepare
from tests.instances.test_build import SETTINGS as BUILT
from tests.instances.test_build import VOCAB, build
from tests.made_up_instances import Data
from tests.trainer.training_runs import RecordedProgress, assert_equal_runs, logged, stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]

FORMATS = ("doc-sentences", "full-sentences", "segment-pair", "sentence-pair", "sop")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Data]:
    """Instances of a format, built from documents, as a finished folder with its vocabulary."""
    made: dict[str, Data] = {}

    def make(format: str) -> Data:
        if format not in made:
            folder = tmp_path_factory.mktemp(format)
            settings = dataclasses.replace(BUILT, format=format, stored_masks=False)
            tables = build(folder, [0, 150], settings=settings)
            rows = {name: sum(s.rows for s in some) for name, some in tables.items()}
            sizes = {name: sum(s.bytes for s in some) for name, some in tables.items()}
            (folder / "vocab").mkdir()
            for name, content in VOCAB.save_files().items():
                (folder / "vocab" / name).write_bytes(content)
            shards.Manifest("build-instances", format, {}, rows, sizes, tables, {}, {}, {}, {}, {}).save(
                str(folder / "out")
            )
            made[format] = Data(str(folder / "out"), str(folder / "vocab"))
        return made[format]

    return make


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_a_short_part_whose_chunks_are_instances(
    built: Callable[[str], Data], small_run: Pretrain, format: str
) -> None:
    data = built(format)
    job = prepare(data.instances, small_run, vocab_folder=data.vocabulary)
    short, full = job.streams
    assert (short.part.length, full.part.length) == (24, job.corpus.longest)
    chunks, special = short.chunks, job.specials
    assert (job.corpus.lengths > 24).sum() > 20
    rows = gather(job.corpus, chunks, np.arange(len(chunks.rows)))
    offsets = rows.offsets
    assert rows.lengths.max() <= 24
    assert (rows.ids[offsets[:-1]] == special.cls).all()
    assert (rows.ids[offsets[1:] - 1] == special.sep).all()
    whole = gather(job.corpus, full.chunks, np.arange(len(job.corpus)))
    for number in range(0, len(chunks.rows), 7):
        row = chunks.rows[number]
        mine = rows.ids[offsets[number] : offsets[number + 1]].tolist()
        theirs = whole.ids[whole.offsets[row] : whole.offsets[row + 1]].tolist()
        if rows.pair_labels is None:  # some run of the instance
            inner = mine[1:-1]
            assert any(theirs[k : k + len(inner)] == inner for k in range(len(theirs)))
            continue
        a, b = rows.first_lengths[number], whole.first_lengths[row]
        assert mine[a - 1] == special.sep
        assert theirs[1:b][-(a - 1) :] == mine[1:a]  # the end of A, up to its [SEP]
        assert theirs[b : b + len(mine) - a - 1] == mine[a:-1]  # the beginning of B
        assert rows.pair_labels[number] == whole.pair_labels[row]  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["full-sentences", "sentence-pair", "sop"])
@pytest.mark.parametrize("stop", [3, 5])
def test_a_run_of_every_format_resumes_on_and_behind_the_switch(
    built: Callable[[str], Data], small_run: Pretrain, tmp_path: Path, format: str, stop: int
) -> None:
    data, settings = built(format), dataclasses.replace(small_run, steps=6, short_share=0.5, log_steps=1)
    train(data, tmp_path / "straight", settings)
    stop_at(data, tmp_path / "stopped", settings, stop)
    train(data, tmp_path / "stopped", settings, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")
    rates = {line["step"]: line["lr"] for line in logged(tmp_path / "stopped") if "lr" in line}
    assert rates[4] == settings.learning_rate * 3 / 6  # behind the switch: of the whole run


@pytest.mark.parametrize("pairs", [False, True])
def test_the_number_of_loader_threads_changes_nothing(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, pairs: bool
) -> None:
    data = make_data(pairs=pairs)
    train(data, tmp_path / "one", small_run)
    train(data, tmp_path / "four", dataclasses.replace(small_run, loader_threads=4))
    assert_equal_runs(tmp_path / "one", tmp_path / "four")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("at", ["step", "evaluation", "checkpoint", "publish"])
def test_a_signal_leaves_a_valid_checkpoint_and_its_exit_code(
    make_data: MakeData,
    small_run: Pretrain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    number: int,
    code: int,
) -> None:
    data, settings = make_data(), dataclasses.replace(small_run, checkpoint_steps=5, log_steps=1)
    train(data, tmp_path / "straight", settings)

    def asking(really: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: Any, **more: Any) -> Any:
            os.kill(os.getpid(), number)
            return really(*arguments, **more)

        return ask

    recorded = RecordedProgress()
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stopped:
        if at == "step":
            recorded = RecordedProgress(5, lambda: os.kill(os.getpid(), number))
        elif at == "evaluation":
            patch.setattr(heldout, "batch_losses", asking(heldout.batch_losses))
        else:
            place = {"checkpoint": "save", "publish": "publish"}[at]
            patch.setattr(checkpoint, place, asking(getattr(checkpoint, place)))
        train(data, tmp_path / "out", settings, progress=recorded)
    assert stopped.value.code == code
    newest = checkpoint.all_folders(tmp_path / "out")[0]
    assert newest.name == "step-000005"
    assert checkpoint.what_is_wrong(newest) is None
    train(data, tmp_path / "out", settings, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "digests.json"])
def test_a_checkpoint_cut_short_is_skipped(make_data: MakeData, small_run: Pretrain, tmp_path: Path, name: str) -> None:
    data, settings = make_data(), dataclasses.replace(small_run, checkpoint_steps=2, log_steps=1)
    train(data, tmp_path / "straight", settings)
    stop_at(data, tmp_path / "stopped", settings, 7)
    path = tmp_path / "stopped/checkpoints/step-000007" / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    recorded = RecordedProgress()
    train(data, tmp_path / "stopped", settings, resume=True, progress=recorded)
    assert any("skipping broken checkpoint step-000007" in line for line in recorded.lines)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")


@pytest.mark.slow
def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, settings = make_data(), dataclasses.replace(small_run, checkpoint_steps=3)
    train(data, tmp_path / "straight", settings)
    really = checkpoint._sync

    def killed(path: Path) -> None:
        if path.parent.name == ".unfinished-step-000006":
            raise KeyboardInterrupt
        really(path)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint, "_sync", killed)
        train(data, tmp_path / "out", settings)
    assert [folder.name for folder in checkpoint.all_folders(tmp_path / "out")] == ["step-000003"]
    train(data, tmp_path / "out", settings, resume=True)
    assert not list((tmp_path / "out").rglob(".unfinished*"))
    assert_equal_runs(tmp_path / "straight", tmp_path / "out")


def test_the_newest_and_the_best_are_kept(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([5.0, 3.0, 4.0, 6.0, 6.0, 5.0])
    really = heldout.measure

    def measured(*arguments: Any) -> Any:
        return dataclasses.replace(really(*arguments), loss=next(losses))

    monkeypatch.setattr(heldout, "measure", measured)
    often = {"steps": 6, "short_share": 0.0, "checkpoint_steps": 1, "evaluate_steps": 1, "keep_checkpoints": 2}
    facts = train(make_data(), tmp_path / "out", dataclasses.replace(small_run, **often))
    names = [folder.name for folder in checkpoint.all_folders(tmp_path / "out")]
    assert names == ["step-000006", "step-000005", "step-000002"]
    assert facts["best_checkpoint"] == str(tmp_path / "out/checkpoints/step-000002")


@pytest.mark.slow
def test_a_resumed_run_has_the_cards_of_one_that_was_not(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    """After step 8 the held-out loss is that of step 5, measured by the process before."""
    data, settings = make_data(), dataclasses.replace(small_run, checkpoint_steps=8)
    train(data, tmp_path / "straight", settings)
    stop_at(data, tmp_path / "stopped", settings, 7)
    train(data, tmp_path / "stopped", settings, resume=True)
    names = ("checkpoints/step-000008", "checkpoints/step-000010", "model")
    one, other = ([(tmp_path / run / n / "README.md").read_text() for n in names] for run in ("straight", "stopped"))
    assert one == other
    assert all("| held-out MLM loss |" in card for card in one)
    assert one[0] != one[1]


def test_losses_at_several_lengths_are_not_compared(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    often = {"checkpoint_steps": 3, "evaluate_steps": 3, "keep_checkpoints": 9}
    train(make_data(), tmp_path / "out", dataclasses.replace(small_run, **often))
    folders = checkpoint.all_folders(tmp_path / "out")
    assert [folder.name[-2:] for folder in folders] == ["10", "09", "06", "03"]
    assert checkpoint.best_of(folders) in folders[:2]  # full length from step 7 on
    assert checkpoint.best_of(folders[2:]) in folders[2:]
    shutil.rmtree(folders[0])
    assert checkpoint.best_of(folders) == folders[1]
    assert checkpoint.best_of([]) is None
    state = json.loads((folders[1] / checkpoint.STATE).read_text())
    (folders[1] / checkpoint.STATE).write_text(json.dumps(state | {"heldout": math.nan, "heldout_length": 24}))
    assert checkpoint.best_of(folders[1:]) in folders[2:]  # what was no number is better than nothing
