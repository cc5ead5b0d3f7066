"""Runs of the trainer for tests: trained, stopped at a step by a signal, and compared to the bit."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from corpusforge.sections import Pretrain
from corpusforge.trainer import checkpoint
from corpusforge.trainer.run import pretrain
from tests.made_up_instances import Data


class RecordedProgress:
    """A Progress that records what it is given, and may call a function at a step."""

    def __init__(self, at: int = -1, then: Callable[[], None] = lambda: None) -> None:
        self.lines: list[str] = []
        self.noted: list[str] = []
        self.done, self.at, self.then = 0, at, then

    def start(self, label: str, total: int, unit: str) -> None: ...

    def advance(self, amount: int) -> None:
        self.done += amount
        if self.done == self.at:
            self.then()

    def finish(self) -> None: ...

    def note(self, text: str) -> None:
        self.noted.append(text)

    def say(self, line: str) -> None:
        self.lines.append(line)


def train(data: Data, output: Path, settings: Pretrain, **more: Any) -> dict[str, Any]:
    arguments = {"manifest_digest": "digest", "recipe": {"seed": 0}, "card": {}} | more
    return pretrain(data.instances, str(output), settings, vocab_folder=data.vocabulary, **arguments)


def stop_at(data: Data, output: Path, settings: Pretrain, step: int) -> None:
    """Train, and receive SIGTERM after a step."""
    recorded = RecordedProgress(step, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit) as stopped:
        train(data, output, settings, progress=recorded)
    assert stopped.value.code == 143
    assert checkpoint.all_folders(output)[0].name == f"step-{step:06d}"


def assert_equal_runs(one: Path, other: Path) -> None:
    for name in ("model.safetensors", "optimizer.safetensors"):
        mine, theirs = (load_file(checkpoint.all_folders(run)[0] / name) for run in (one, other))
        assert mine.keys() == theirs.keys()
        for key, tensor in mine.items():
            assert torch.equal(tensor, theirs[key]), key
    assert logged(one) == logged(other)


def logged(run: Path) -> list[dict[str, Any]]:
    """Log lines without the values that depend on the clock."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    measured = ("tokens_per_second", "data_wait", "memory", "mfu")
    return [{k: v for k, v in line.items() if k not in measured} for line in lines]


def steady(facts: dict[str, Any]) -> dict[str, Any]:
    """Figures of a run without its folder and clock."""
    clock = ("seconds", "tokens_per_second")
    paths = ("model", "checkpoint", "best_checkpoint", "log")
    return {k: v for k, v in facts.items() if k not in (*clock, *paths)}
