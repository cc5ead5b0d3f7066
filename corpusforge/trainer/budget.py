"""A time budget: how many steps fit into it, planned from the measured speed.

The plan is updated every fiftieth of the budget, so that the schedule ends when the time does. The clock affects a run
only through `training_plan.Mark`: what a step does is a function of its number and the marks, which checkpoints and the
log hold. On another machine the marks differ.
"""

from __future__ import annotations

import time

import torch

from corpusforge.trainer import cost
from corpusforge.trainer.heldout import HELDOUT_TOKENS
from corpusforge.trainer.prepare import Job
from corpusforge.trainer.training_plan import Mark, fitting

MARKS = 50
"""Plans made in a run, approximately: the error of the last one is that of the speed over a fiftieth of the time."""


class Budget:
    """The time of a run. ``spent``: seconds of earlier processes; ``began``: start of this process by `perf_counter`.

    ``closing``: seconds expected for the last held-out loss and the last checkpoint, as the ones before took.
    """

    def __init__(self, seconds: float, spent: float, began: float) -> None:
        self.seconds, self.closing = seconds, {"evaluate": 0.0, "checkpoint": 0.0}
        self._spent, self._began = spent, began
        self._planned = self.elapsed
        self._part, self._tokens, self._since = -1, 0, 0.0
        self._per_token: list[float] = []

    @property
    def elapsed(self) -> float:
        """Seconds spent so far, in all processes."""
        return self._spent + time.perf_counter() - self._began

    def guess(self, job: Job) -> None:
        """Estimate the seconds per token, by timing one micro-batch, and the seconds needed after the last step."""
        speed = cost.flops_per_second(job)
        self._per_token = [cost.step_flops_per_token(stream, job) / speed for stream in job.streams]
        if job.heldout is not None:
            tokens = min(HELDOUT_TOKENS, int(job.heldout.lengths.sum()))
            # Every rank reads all of them; the forward pass is a third of the cost (Kaplan et al. 2020).
            each = self._per_token[-1] * job.ranks.count / 3
            self.closing["evaluate"] = tokens * each

    def count(self, tokens: int, part: int) -> None:
        """Count a finished step of a part. The first of each part is not timed, as it compiles and fills caches."""
        if part != self._part:
            self._part, self._tokens, self._since = part, 0, self.elapsed
        else:
            self._tokens += tokens

    def took(self, what: str, seconds: float) -> None:
        """Record how long something took that will happen once more at the end, and plan again."""
        self.closing[what] = seconds
        self._planned = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to plan again."""
        return self.elapsed - self._planned >= self.seconds / MARKS

    def mark(self, job: Job, done: int, at: int) -> Mark:
        """Plan after ``done`` steps, from step ``at`` on; batches of the steps between are already being prepared."""
        if job.device.type == "cuda":
            torch.cuda.synchronize(job.device)
        self._measure()
        self._planned = now = self.elapsed
        left = self.seconds - now - sum(self.closing.values())
        return fitting(job.plan, left, self._per_token, done=done, at=at, now=now)

    def _measure(self) -> None:
        """Update the seconds per token from this part, everything between steps included; scale the other parts too."""
        if self._tokens:
            ratio = (self.elapsed - self._since) / self._tokens / self._per_token[self._part]
            self._per_token = [each * ratio for each in self._per_token]
