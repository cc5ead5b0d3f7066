"""Spikes: steps whose loss leaps far above what it was, and what is done about them.

Comes in: loss and gradient norm of each step, in order. Goes out: why a step should not be taken, or None. Decision:
the judge knows only the steps before, and what it knows goes into checkpoints; so a run that skips is deterministic,
and a resumed one skips the same steps. It has to see each loss, so a GPU is waited for once a step (not for "ignore").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from safetensors.torch import save_file

from corpusforge import errors
from corpusforge.trainer.batches import Batch

WAYS = ("ignore", "skip", "stop")

FORGETS = 0.97
"""Weight of the past in the running mean and deviation, a step (ZClip, Kumar et al. 2025, arXiv 2504.02507: alpha)."""
QUIET_STEPS = 50
"""Steps that are only listened to, at first and behind a change of length, where losses leap by nature: ours, by when
the weights of the first steps have faded to a fifth."""
MOST_IN_A_ROW = 20
"""Steps skipped one after the other before the run gives up: the loss has left for good. Ours."""


@dataclass
class Spikes:
    """A judge of steps. A spike: loss above the running mean by more than ``deviations`` running deviations."""

    deviations: float
    mean: float = 0.0
    variance: float = 0.0
    seen: int = 0  # steps taken since the statistics began
    part: int = 0
    in_a_row: int = 0
    skipped: list[int] = field(default_factory=list)  # steps, counted from 1

    def judge(self, loss: float, norm: float, part: int) -> str | None:
        """What is wrong with a step of a part of the run, or None; then it counts among those to compare with."""
        if part != self.part:
            self.part, self.seen = part, 0
        reason = self._reason(loss, norm)
        if reason is None:
            self._learn(loss)
            self.in_a_row = 0
        return reason

    def skip(self, step: int) -> bool:
        """Note that a step (from 1) was not taken; whether there have been too many in a row."""
        self.skipped.append(step)
        self.in_a_row += 1
        return self.in_a_row > MOST_IN_A_ROW

    def _reason(self, loss: float, norm: float) -> str | None:
        if not math.isfinite(loss) or not math.isfinite(norm):
            return "loss or gradient is not finite"
        limit = self.mean + self.deviations * math.sqrt(self.variance)
        if self.seen < QUIET_STEPS or loss <= limit:
            return None
        return f"loss {loss:.4f} is above {self.mean:.4f} by over {self.deviations:g} deviations"

    def _learn(self, loss: float) -> None:
        """An exponential mean and variance; the first steps weigh equally (West 1979, algorithm with weights)."""
        self.seen += 1
        share = max(1 - FORGETS, 1 / self.seen)
        away = loss - self.mean if self.seen > 1 else 0.0
        self.mean = self.mean + share * away if self.seen > 1 else loss
        self.variance = (1 - share) * (self.variance + share * away * away) if self.seen > 1 else 0.0


def stopped_by(batches: Sequence[Batch], path: Path, what: str) -> errors.TrainingStopped:
    """Save the batches of a step that ends the run, and say why it does."""
    named = {f"{number}.{name}": value for number, b in enumerate(batches) for name, value in b.tensors().items()}
    save_file(named, path)
    mend = "begin again in another folder with a lower learning rate or a longer warm-up"
    mend += ", or with --on-spike skip, or look at those batches"
    return errors.TrainingStopped(str(path.parent), f"{what} (its batches are in {path.name})", mend)
