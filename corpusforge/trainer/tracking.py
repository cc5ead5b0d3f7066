"""Where log lines go beside the file: TensorBoard, and Weights & Biases.

Comes in: the numbers of a log line. Goes out: events of the two. Decision: both are optional parts, imported when they
are asked for and at no other time; the JSON lines are the record.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, Protocol

from corpusforge import errors

RUN_ID = "wandb.json"
"""File that holds the id of the run at Weights & Biases, so that a resumed run goes on with it."""


class Sink(Protocol):
    """Takes log lines."""

    def write(self, step: int, numbers: dict[str, float]) -> None:
        """The numbers of a line; steps are counted from 1."""

    def close(self) -> None:
        """No more will come."""


class _Events:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, step: int, numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    def __init__(self, run: Any) -> None:
        self._run = run

    def write(self, step: int, numbers: dict[str, float]) -> None:
        self._run.log(numbers, step=step)

    def close(self) -> None:
        self._run.finish()


def sinks(output: Path, step: int, *, tensorboard: bool, wandb_project: str) -> list[Sink]:
    """What is asked for; ``step``: behind which the run goes on."""
    events = open_tensorboard(output, step) if tensorboard else None
    return [*([events] if events else []), *([open_wandb(output, wandb_project)] if wandb_project else [])]


def open_tensorboard(output: Path, step: int) -> Sink | None:
    """Events in ``tensorboard/``, those behind ``step`` dropped; None where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    writer: Any = SummaryWriter
    return _Events(writer(str(output / "tensorboard"), purge_step=step + 1))


def open_wandb(output: Path, project: str) -> Sink:
    """A run in a project at Weights & Biases, or the one before where this is resumed. It obeys WANDB_MODE.

    Raises `errors.ExtraMissing`.
    """
    try:
        module: Any = importlib.import_module("wandb")
    except ImportError:
        raise errors.ExtraMissing("--wandb", "the package wandb is not installed", "pip install wandb") from None
    known = output / RUN_ID
    number = json.loads(known.read_text("utf-8"))["id"] if known.exists() else None
    run = module.init(project=project, dir=str(output), name=output.name, id=number, resume="allow")
    known.write_text(json.dumps({"id": run.id}) + "\n", "utf-8")
    return _Wandb(run)
