"""Signals to a command: a checkpoint, and the exit code that shells expect."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusforge.shards import Manifest
from corpusforge.trainer import checkpoint
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]

RECIPE = """
name = "made-up"
stages = ["pretrain"]
[pretrain]
preset = "bert-tiny"
steps = 100000
batch_tokens = 320
learning_rate = 1e-5
tensorboard = false
log_steps = 1
threads = 1
"""


@pytest.fixture
def run_folder(make_data: Callable[..., Data], tmp_path: Path) -> Path:
    """A run that has its instances but no model yet."""
    data, folder = make_data(), tmp_path / "run"
    shutil.copytree(data.instances, folder / "instances")
    shutil.copytree(data.vocabulary, folder / "instances/vocab")
    manifest = Manifest.load(str(folder / "instances"))
    dataclasses.replace(manifest, recipe={"instances": {"length": 48}}).save(str(folder / "instances"))
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_exit_codes_through_the_command_line(run_folder: Path, sent: signal.Signals) -> None:
    recipe, model = str(run_folder.parent / "recipe.toml"), run_folder / "pretrain"
    words = ["run", recipe, "--output", str(run_folder), "--quiet"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "corpusforge", *words], env=environment, stderr=subprocess.PIPE, text=True
    )
    log, began = model / "log.jsonl", time.monotonic()
    while process.poll() is None and time.monotonic() - began < 60 and not (log.exists() and log.stat().st_size):
        time.sleep(0.05)
    process.send_signal(sent)
    _, progress = process.communicate(timeout=60)
    assert process.returncode == 128 + sent, progress
    assert "Traceback" not in progress
    assert checkpoint.what_is_wrong(checkpoint.all_folders(model)[0]) is None
    assert not (model / "manifest.json").exists()
