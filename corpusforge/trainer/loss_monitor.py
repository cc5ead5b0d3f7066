"""Watching the loss: spikes, whose steps can be skipped or end the run, and the plateau at the unigram entropy.

Whether a step is a spike depends only on the steps before it, through statistics that checkpoints hold; so a run that
skips steps is deterministic, and a resumed run skips the same ones. Detection needs the loss of every step, so the host
waits for a GPU once a step (not with "ignore").

The plateau is the "loss 7" of a BERT that learns nothing. Every model stays at the unigram entropy for a while, so the
warning is given only if no log line of a long stretch of the run was below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from corpusforge import errors
from corpusforge.trainer.batches import Batch

DECAY = 0.97
"""Weight of the past in the running mean and variance at each step (ZClip, Kumar et al. 2025, arXiv 2504.02507:
alpha)."""
QUIET_STEPS = 50
"""Number of steps, at the start and after a change of length, that are never spikes: losses vary widely there. Our
choice: by then the weight of the first steps has faded to a fifth."""
MOST_IN_A_ROW = 20
"""Consecutive skipped steps after which the run ends, as the loss has diverged. Our choice."""


@dataclass
class Spikes:
    """Detects spikes: losses above the running mean by more than ``deviations`` running standard deviations."""

    deviations: float
    mean: float = 0.0
    variance: float = 0.0
    seen: int = 0  # steps taken since the statistics began
    part: int = 0
    in_a_row: int = 0
    skipped: list[int] = field(default_factory=list)  # steps, counted from 1

    def judge(self, loss: float, norm: float, part: int) -> str | None:
        """Why a step is a spike, or None; only then does it enter the running statistics. ``part``: of the run."""
        if part != self.part:
            self.part, self.seen = part, 0
        reason = self._reason(loss, norm)
        if reason is None:
            self._learn(loss)
            self.in_a_row = 0
        return reason

    def skip(self, step: int) -> bool:
        """Record that a step (from 1) was skipped; returns whether too many in a row were."""
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
        """Update the exponential mean and variance; the first steps weigh equally (West 1979, weighted algorithm)."""
        self.seen += 1
        share = max(1 - DECAY, 1 / self.seen)
        difference = loss - self.mean if self.seen > 1 else 0.0
        self.mean = self.mean + share * difference if self.seen > 1 else loss
        self.variance = (1 - share) * (self.variance + share * difference * difference) if self.seen > 1 else 0.0


def stopped_by(batches: Sequence[Batch], path: Path, what: str) -> errors.TrainingStopped:
    """Save the batches of a step that ends the run; returns the error that gives the reason."""
    named = {f"{number}.{name}": value for number, b in enumerate(batches) for name, value in b.tensors().items()}
    save_file(named, path)
    mend = "start again in another folder with a lower learning rate or a longer warm-up"
    mend += ", or with --on-spike skip, or look at those batches"
    return errors.TrainingStopped(str(path.parent), f"{what} (its batches are in {path.name})", mend)


BEGINS, ENDS = 0.1, 0.2
"""The stretch that is watched, as shares of the run. Published curves fall below the unigram entropy within the first
1 % of a run, those of short runs later. Our choice."""
LEAST_STEPS = 200
"""No warning before this many steps. Our choice."""
MARGIN = 0.1
"""Nats below the unigram entropy at which a model has learned more than frequencies: a few times the noise of a log
line."""


class Plateau:
    """Watches a run whose training tokens have the entropy ``unigram``."""

    def __init__(self, unigram: float) -> None:
        self.unigram = unigram
        self._stuck_since: int | None = None
        self._is_over = False  # the loss fell below the unigram entropy, or the warning was given

    def watch(self, values: dict[str, Any], progress: float, *, is_warming_up: bool) -> str | None:
        """Read a log line at a share ``progress`` of the run; returns a warning to show, or None."""
        if self._is_over or is_warming_up or progress < BEGINS or values.get("mlm_loss") is None:
            return None
        if values["mlm_loss"] < self.unigram - MARGIN:
            self._is_over = True
            return None
        if self._stuck_since is None:
            self._stuck_since = values["step"]
        if progress < ENDS or values["step"] < LEAST_STEPS:
            return None
        self._is_over = True
        return self._warning(values)

    def _warning(self, values: dict[str, Any]) -> str:
        return (
            f"the MLM loss ({values['mlm_loss']:.2f}) has not left the unigram entropy of the corpus "
            f"({self.unigram:.2f}) since step {self._stuck_since}: so far the model has learned only unigram "
            "frequencies. Likely causes: duplicate documents or lines (is the corpus deduplicated?); a vocabulary that "
            "is not the corpus's own (look at the share of [UNK] in the report); a learning rate too high for this "
            "size or batch, or too low (try a third, and three times as much, and a longer warm-up)"
        )
