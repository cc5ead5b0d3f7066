"""A budget of wall-clock time: how many steps fit, planned from the speed that is measured.

Comes in: the seconds of a run, and how long its steps take. Goes out: `course.Mark`, again every fiftieth of the
budget, so that the schedule ends with the time. Decision: the clock is only ever read into a mark. What a step does is
a function of its number and the marks, which checkpoints and the log hold; on another machine they are others.
"""

from __future__ import annotations

import time

import torch

from corpusforge.trainer import plan
from corpusforge.trainer.course import Mark, fitting
from corpusforge.trainer.heldout import HELDOUT_TOKENS
from corpusforge.trainer.prepare import Job

MARKS = 50
"""Plans made in a run, about: the last one is off by the error of the speed over a fiftieth of the time."""


class Budget:
    """The time of a run. ``spent``: seconds of earlier processes; ``began``: this process's start by `perf_counter`.

    ``closing``: seconds that the last held-out loss and the last checkpoint will take, as those before took.
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
        """Guess what a token costs, by timing one micro-batch, and what comes behind the last step."""
        speed = plan.flops_per_second(job)
        self._per_token = [plan.step_flops_per_token(stream, job) / speed for stream in job.streams]
        if job.heldout is not None:
            tokens = min(HELDOUT_TOKENS, int(job.heldout.lengths.sum()))
            each = self._per_token[-1] * job.ranks.count / 3  # all by every rank; forward: a third (Kaplan et al. 2020)
            self.closing["evaluate"] = tokens * each

    def count(self, tokens: int, part: int) -> None:
        """A step of a part is done. The first of each part is not measured: it compiles, and fills caches."""
        if part != self._part:
            self._part, self._tokens, self._since = part, 0, self.elapsed
        else:
            self._tokens += tokens

    def took(self, what: str, seconds: float) -> None:
        """Something that will be done once more at the end took so long: plan anew."""
        self.closing[what] = seconds
        self._planned = 0.0

    @property
    def is_due(self) -> bool:
        """Whether to plan anew."""
        return self.elapsed - self._planned >= self.seconds / MARKS

    def mark(self, job: Job, done: int, at: int) -> Mark:
        """The plan behind ``done`` steps, which those from ``at`` on will follow; others are being made already."""
        if job.device.type == "cuda":
            torch.cuda.synchronize(job.device)
        self._measure()
        self._planned = now = self.elapsed
        left = self.seconds - now - sum(self.closing.values())
        return fitting(job.course, left, self._per_token, done=done, at=at, now=now)

    def _measure(self) -> None:
        """Take over what the tokens of this part cost, all that lies between steps included; others by their ratio."""
        if self._tokens:
            ratio = (self.elapsed - self._since) / self._tokens / self._per_token[self._part]
            self._per_token = [each * ratio for each in self._per_token]
