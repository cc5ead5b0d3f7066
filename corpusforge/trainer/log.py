"""What a run tells about itself: one JSON line every few steps, and TensorBoard events where it is installed.

Decision: nothing is copied from the device between two lines, so steps never wait for the host; a line holds means
over the steps since the line before. What was gathered goes into checkpoints, so a resumed run writes the same lines.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpusforge import shards
from corpusforge.trainer import tracking

FIELDS = (
    *("mlm_loss", "mlm_hits", "masked", "pair_loss", "pair_hits", "pairs", "span_loss", "span_hits", "spans"),
    *("grad_norm", "tokens", "size"),
)
"""Of one step: sums of losses and hits over masked positions, pairs and tokens told by the bounds of their spans, their
numbers, tokens without and with padding."""


class Meter:
    """Gathers one row of `FIELDS` a step, on the device, until a line is due."""

    def __init__(self, unlogged: list[list[float]]) -> None:
        self._rows: list[Tensor] = [torch.tensor(row, dtype=torch.float64) for row in unlogged]

    def add(self, sums: Tensor, grad_norm: Tensor, tokens: int, size: int) -> None:
        """Add a step: ``sums`` are the first nine fields [9], on any device."""
        known = torch.tensor([tokens, size], dtype=torch.float64)
        if sums.is_cuda:
            known = known.pin_memory().to(sums.device, non_blocking=True)
        self._rows.append(torch.cat([sums.double(), grad_norm.double().reshape(1), known]))

    def read(self) -> list[list[float]]:
        """The rows gathered so far. This waits for the device."""
        if not self._rows:
            return []
        device = self._rows[-1].device
        rows: list[list[float]] = torch.stack([row.to(device) for row in self._rows]).tolist()
        return rows

    def clear(self) -> None:
        """Begin a new line."""
        self._rows = []


def first_bad(rows: list[list[float]]) -> int | None:
    """Number of the first row with a loss or gradient that is not finite."""
    return next((k for k, row in enumerate(rows) if not all(map(math.isfinite, row))), None)


def loss_of(sums: Tensor) -> float:
    """The loss of a step. This waits for the device."""
    loss = means([[*sums.tolist(), 0.0, 0.0, 0.0]])["loss"]
    return math.nan if loss is None else loss


def means(rows: list[list[float]]) -> dict[str, float | None]:
    """Losses and shares of hits over some steps, weighted by masked positions (pairs for the pair loss)."""
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
    """``log.jsonl`` and ``tensorboard/`` of a run. Lines behind ``step`` are dropped: they will be written again.

    ``told``: the lines kept that tell of training; ``newest``: the last of them, empty where there is none;
    ``is_measured``: whether the held-out loss of ``step`` is among the lines kept; ``heldout``: the newest one there,
    its fields by name, empty where there is none. ``wandb``: a project there, or none.
    """

    def __init__(self, output: Path, step: int, *, tensorboard: bool, wandb: str = "", is_first: bool = True) -> None:
        path = output / "log.jsonl"
        kept = [line for line in _lines(path) if _step_of(line) <= step] if step else []
        if is_first:  # of the ranks; the others read only
            shards.write_bytes(str(path), "".join(kept).encode())  # a kill here leaves the old lines or the kept ones
        self._file = (path if is_first else Path(os.devnull)).open("a", encoding="utf-8")
        lines = [json.loads(line) for line in kept]
        self.told: list[dict[str, Any]] = [values for values in lines if "mlm_loss" in values]
        self.newest: dict[str, Any] = self.told[-1] if self.told else {}
        held: dict[str, Any] = next((one for one in reversed(lines) if one.get("heldout_loss") is not None), {})
        self.heldout: dict[str, Any] = {k[8:]: v for k, v in held.items() if k.startswith("heldout_")}
        self.is_measured = any(values["step"] == step and "heldout_loss" in values for values in lines)
        self._sinks = tracking.sinks(output, step, tensorboard=tensorboard, wandb_project=wandb) if is_first else []

    def write(self, values: dict[str, Any]) -> None:
        """Write a line; ``values`` has a ``"step"``, counted from 1. What is not finite becomes null."""
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
