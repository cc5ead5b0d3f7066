"""The log of a run: one JSON line every few steps, and the same numbers in TensorBoard and Weights & Biases.

Nothing is copied from the device between two lines, so steps never wait for the host; a line holds means over the steps
since the line before. Values not yet logged go into checkpoints, so a resumed run writes the same lines. ``log.jsonl``
is the record; the two trackers are optional and imported only when they are used.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from corpusforge import errors, shards
from corpusforge.trainer import cost

FIELDS = (
    *("mlm_loss", "mlm_hits", "masked", "pair_loss", "pair_hits", "pairs", "span_loss", "span_hits", "spans"),
    *("grad_norm", "tokens", "size"),
)
"""Values of one step: sums of losses and hits over masked positions, pairs and tokens predicted from span boundaries,
their counts, the norm of the gradient, and tokens without and with padding."""


class Meter:
    """Collects one row of `FIELDS` per step, on the device, until a line is due."""

    def __init__(self, unlogged: list[list[float]]) -> None:
        self._rows: list[Tensor] = [torch.tensor(row, dtype=torch.float64) for row in unlogged]

    def add(self, sums: Tensor, grad_norm: Tensor, tokens: int, size: int) -> None:
        """Add a step; ``sums``: the first nine fields [9], on any device."""
        counts = torch.tensor([tokens, size], dtype=torch.float64)
        if sums.is_cuda:
            counts = counts.pin_memory().to(sums.device, non_blocking=True)
        self._rows.append(torch.cat([sums.double(), grad_norm.double().reshape(1), counts]))

    def read(self) -> list[list[float]]:
        """The rows collected so far. Waits for the device."""
        if not self._rows:
            return []
        device = self._rows[-1].device
        rows: list[list[float]] = torch.stack([row.to(device) for row in self._rows]).tolist()
        return rows

    def clear(self) -> None:
        """Start a new line."""
        self._rows = []


def first_bad(rows: list[list[float]]) -> int | None:
    """Index of the first row with a loss or gradient that is not finite."""
    return next((k for k, row in enumerate(rows) if not all(map(math.isfinite, row))), None)


def loss_of(sums: Tensor) -> float:
    """The loss of a step. Waits for the device."""
    loss = means([[*sums.tolist(), 0.0, 0.0, 0.0]])["loss"]
    return math.nan if loss is None else loss


def means(rows: list[list[float]]) -> dict[str, float | None]:
    """Losses and accuracies over some steps, weighted by masked positions (by pairs for the pair loss)."""
    sums = dict(zip(FIELDS, np.sum(np.array(rows, np.float64), axis=0).tolist(), strict=True))
    masked, pairs = max(sums["masked"], 1.0), sums["pairs"]
    mlm, pair = sums["mlm_loss"] / masked, sums["pair_loss"] / pairs if pairs else None
    spans = sums["spans"]
    return {
        "loss": mlm + (pair or 0.0) + sums["span_loss"] / masked,
        "mlm_loss": mlm,
        "mlm_accuracy": sums["mlm_hits"] / masked,
        "pair_loss": pair,
        "pair_accuracy": sums["pair_hits"] / pairs if pairs else None,
        "span_loss": sums["span_loss"] / spans if spans else None,
        "span_accuracy": sums["span_hits"] / spans if spans else None,
        "grad_norm": sums["grad_norm"] / len(rows),
        "padding": 1 - sums["tokens"] / max(sums["size"], 1.0),
    }


class Log:
    """``log.jsonl`` and ``tensorboard/`` of a run. Lines after ``step`` are dropped: they will be written again.

    Of the lines kept, ``losses`` are those of training steps and ``newest`` is the last of these; ``heldout`` holds the
    fields of the newest held-out loss by name (both empty if there is none), and ``is_measured`` states whether it was
    measured at ``step`` itself. ``wandb``: a project, or none.
    """

    def __init__(self, output: Path, step: int, *, tensorboard: bool, wandb: str = "", is_first: bool = True) -> None:
        path = output / "log.jsonl"
        kept = [line for line in _lines(path) if _step_of(line) <= step] if step else []
        if is_first:  # the other ranks only read
            # If the process is killed here, either the old lines or the kept ones remain.
            shards.write_bytes(str(path), "".join(kept).encode())
        self._file = (path if is_first else Path(os.devnull)).open("a", encoding="utf-8")
        lines = [json.loads(line) for line in kept]
        self.losses: list[dict[str, Any]] = [values for values in lines if "mlm_loss" in values]
        self.newest: dict[str, Any] = self.losses[-1] if self.losses else {}
        measured: dict[str, Any] = next((line for line in reversed(lines) if line.get("heldout_loss") is not None), {})
        self.heldout: dict[str, Any] = {k[8:]: v for k, v in measured.items() if k.startswith("heldout_")}
        self.is_measured = any(values["step"] == step and "heldout_loss" in values for values in lines)
        self._sinks = sinks(output, step, tensorboard=tensorboard, wandb_project=wandb) if is_first else []

    def write(self, values: dict[str, Any]) -> None:
        """Write a line; ``values`` has a ``"step"``, counted from 1. Values that are not finite become null."""
        values = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
        self._file.write(json.dumps(values) + "\n")
        self._file.flush()
        numbers = {k: v for k, v in values.items() if k != "step" and isinstance(v, int | float)}
        for sink in self._sinks:
            sink.write(values["step"], numbers)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        for sink in self._sinks:
            sink.close()


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [line for line in file if line.endswith("\n")]


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


class Speed:
    """Measures the speed between two log lines by the host's clock.

    Nothing here waits for the device: `Meter.read` does so right before a line is written.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._began, self._tokens, self._waited = time.perf_counter(), 0, 0.0

    def add(self, tokens: int) -> None:
        """Count a step's tokens, without padding."""
        self._tokens += tokens

    def read(self, waited: float, flops_per_token: float) -> dict[str, float | None]:
        """Speed and memory since the last call; ``waited``: seconds the loop has waited for data since it started.

        ``mfu`` is the share of the device's peak FLOPs, null where unknown; ``memory`` is in bytes.
        """
        now, peak = time.perf_counter(), cost.peak_flops(self._device)
        seconds = max(now - self._began, 1e-9)
        speed, data_wait = self._tokens / seconds, (waited - self._waited) / seconds
        self._began, self._tokens, self._waited = now, 0, waited
        return {
            "tokens_per_second": speed,
            "mfu": speed * flops_per_token / peak if peak else None,
            "data_wait": data_wait,
            "memory": cost.peak_memory(self._device),
        }


RUN_ID = "wandb.json"
"""File with the id of the run at Weights & Biases, so that a resumed run continues it."""


class Sink(Protocol):
    """A tracker that receives log lines."""

    def write(self, step: int, numbers: dict[str, float]) -> None:
        """Record the numbers of a line; steps are counted from 1."""

    def close(self) -> None:
        """Finish: no more lines follow."""


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
    """The requested trackers of a run that continues after ``step``."""
    events = open_tensorboard(output, step) if tensorboard else None
    return [*([events] if events else []), *([open_wandb(output, wandb_project)] if wandb_project else [])]


def open_tensorboard(output: Path, step: int) -> Sink | None:
    """Events in ``tensorboard/``, those after ``step`` dropped; None if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    writer: Any = SummaryWriter
    return _Events(writer(str(output / "tensorboard"), purge_step=step + 1))


def open_wandb(output: Path, project: str) -> Sink:
    """A run in a project at Weights & Biases; a resumed run continues its own. WANDB_MODE applies.

    Raises `errors.ExtraMissing`.
    """
    try:
        module: Any = importlib.import_module("wandb")
    except ImportError:
        raise errors.ExtraMissing("--wandb", "the package wandb is not installed", "pip install wandb") from None
    path = output / RUN_ID
    run_id = json.loads(path.read_text("utf-8"))["id"] if path.exists() else None
    run = module.init(project=project, dir=str(output), name=output.name, id=run_id, resume="allow")
    path.write_text(json.dumps({"id": run.id}) + "\n", "utf-8")
    return _Wandb(run)
