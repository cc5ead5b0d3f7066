"""The course of a run: what each of its steps is, by its number alone.

Comes in: settings with 0 (-1 where 0 has a meaning) for "the preset's own". Goes out: `Course`, with every number
decided and the run cut into its parts: the short one and the full-length one. Decision: a step's rate, batch and masks
are functions of the step; under a budget of time also of the *marks*, the record of how many steps were planned, which
checkpoints and the log hold. So a resumed run never finds a schedule that has ended with one of its parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from corpusforge import errors
from corpusforge.loader.order import Part, Ramp
from corpusforge.sections import Pretrain
from corpusforge.trainer.presets import Preset, find_preset
from corpusforge.trainer.schedule import ONE_CYCLE_RISE, learning_rate

MOST_STEPS = 1 << 40
"""Where a search for steps that fit a budget gives up."""


@dataclass(frozen=True)
class Mark:
    """From step ``step`` on the run is planned to take ``steps`` in all, the full length from ``switch`` on.

    ``progress``: share of the schedule that lies behind at ``step``; ``seconds``: of the budget spent, for the record.
    """

    step: int
    progress: float
    steps: int
    switch: int
    seconds: float

    def progress_at(self, step: float) -> float:
        """Share of the schedule behind at a step from this mark on, linear up to 1 at the last one."""
        left = max(self.steps - self.step, 1)
        return min(self.progress + (1 - self.progress) * (step - self.step) / left, 1.0)


@dataclass(frozen=True)
class Course:
    """A run with nothing left open. ``marks``: under a budget of time only, ascending by step."""

    preset: Preset
    steps: int
    optimizer: str
    learning_rate: float
    warmup_steps: int
    warmup_share: float  # of the schedule; used under a budget, where -1 stands for warmup_steps
    decay: str
    decay_share: float
    dropout: float
    mask_rates: tuple[float, float]  # of dynamic masks, at the first step and the last
    short_share: float
    batch_ramp_share: float
    parts: tuple[Part, ...]
    marks: tuple[Mark, ...] = ()

    def part_of(self, step: int) -> int:
        """Number of the part that step ``step`` (from 0) belongs to; of steps behind the end, the last."""
        return next((k for k, part in enumerate(self.parts) if step < part.stop), len(self.parts) - 1)

    def progress(self, step: float) -> float:
        """Share of the schedule that lies behind before step ``step``."""
        if not self.marks:
            return step / self.steps
        return self._progress(step, step)

    def _progress(self, step: float, known: float) -> float:
        """Progress at ``step`` as the plans up to the step ``known`` have it."""
        up_to = min(step, known)
        return next((m for m in reversed(self.marks) if m.step <= up_to), self.marks[0]).progress_at(step)

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        at, warmup, steps = float(step), float(self.warmup_steps), float(self.steps)
        if self.marks:
            at, steps = self.progress(step), 1.0
            warmup = self.warmup_share if self.warmup_share >= 0 else self._progress(self.warmup_steps, step)
        return learning_rate(
            at,
            peak=self.learning_rate,
            warmup=warmup,
            steps=steps,
            from_peak=self.preset.decays_from_peak,
            decay=self.decay,
            decay_share=self.decay_share,
        )

    def mask_rate(self, step: int) -> float:
        """The share of tokens that dynamic masks of a step hide: linear from the first to the last step."""
        first, last = self.mask_rates
        return first if first == last else first + (last - first) * self.progress(step)

    def marked(self, mark: Mark) -> Course:
        """The course from a mark on; steps before it stay what they were."""
        parts = list(self.parts)
        if not self.marks:  # the ramp is decided by the first plan: what was read by it cannot be planned anew
            ramp = dataclasses.replace(parts[0].ramp, steps=round(self.batch_ramp_share * mark.steps))
            parts = [dataclasses.replace(part, ramp=ramp) for part in parts]
        if len(parts) > 1:
            parts[0] = dataclasses.replace(parts[0], stop=mark.switch)
            parts[1] = dataclasses.replace(parts[1], start=mark.switch)
        parts[-1] = dataclasses.replace(parts[-1], stop=max(mark.steps, parts[-1].start))
        warmup = round(self.warmup_share * mark.steps) if self.warmup_share >= 0 else self.warmup_steps
        marks = (*self.marks, mark)
        return dataclasses.replace(self, steps=mark.steps, warmup_steps=warmup, parts=tuple(parts), marks=marks)


def fitting(course: Course, left: float, seconds_a_token: Sequence[float], *, done: int, at: int, now: float) -> Mark:
    """The mark from step ``at`` on with as many steps as fit into ``left`` seconds behind ``done`` steps.

    ``seconds_a_token``: one a part; ``now``: seconds spent, for the record. A switch that lies behind stays there.
    """
    progress = course.progress(at) if course.marks else 0.0
    first = course.parts[0]
    passed = first.stop if course.marks and first.stop <= at else None

    def planned(steps: int) -> Mark:
        switch = max(at, 1, round(course.short_share * steps)) if passed is None else passed
        return Mark(at, progress, steps, switch, now)

    def cost(steps: int) -> float:
        parts = course.marked(planned(steps)).parts
        tokens = [max(0, p.tokens_before(min(p.stop, steps)) - p.tokens_before(max(done, p.start))) for p in parts]
        return sum(count * each for count, each in zip(tokens, seconds_a_token, strict=True))

    low, high = max(done, 1), max(done, 1) + 1
    while cost(high) <= left and high < MOST_STEPS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= left else (low, middle)
    return planned(low)


def chart(settings: Pretrain, longest: int, mask_rate: float = 0.15) -> Course:
    """Fill in the preset's own numbers; ``longest``: tokens of the longest instance; ``mask_rate``: of its masks.

    Raises `errors.RecipeInvalid` where a batch would not hold one instance.
    """
    preset = find_preset(settings.preset)
    steps = settings.steps or preset.steps
    course = Course(
        preset=preset,
        steps=steps,
        optimizer=preset.optimizer if settings.optimizer == "auto" else settings.optimizer,
        learning_rate=settings.learning_rate or preset.learning_rate,
        warmup_steps=min(settings.warmup_steps, steps),
        warmup_share=-1.0,
        decay=settings.decay,
        decay_share=settings.decay_share,
        dropout=settings.dropout if settings.dropout >= 0 else preset.dropout,
        mask_rates=_mask_rates(settings, mask_rate),
        short_share=_short_share(settings, preset),
        batch_ramp_share=settings.batch_ramp_share,
        parts=_parts(settings, preset, steps, longest),
    )
    if settings.warmup_steps < 0:
        share = ONE_CYCLE_RISE if settings.decay == "one-cycle" else preset.warmup_share
        course = dataclasses.replace(course, warmup_steps=round(share * steps), warmup_share=share)
    _check(settings, course)
    return course


def _mask_rates(settings: Pretrain, built: float) -> tuple[float, float]:
    given = (settings.mask_rate_start, settings.mask_rate_end)
    first, last = (rate if rate >= 0 else built for rate in given)
    return first, last


def _short_share(settings: Pretrain, preset: Preset) -> float:
    return settings.short_share if settings.short_share >= 0 else preset.short_share


def _parts(settings: Pretrain, preset: Preset, steps: int, longest: int) -> tuple[Part, ...]:
    switch = round(_short_share(settings, preset) * steps) if longest > settings.short_length else 0
    ramp = Ramp(settings.batch_ramp, round(settings.batch_ramp_share * steps))
    parts = []
    for start, stop, length in ((0, switch, settings.short_length), (switch, steps, longest)):
        if stop > start:
            parts.append(Part(start, stop, length, settings.batch_tokens or preset.batch_sequences * length, ramp))
    return tuple(parts)


def _check(settings: Pretrain, course: Course) -> None:
    longest = course.parts[-1].length
    for name in ("batch_tokens", "micro_batch_tokens"):
        given = getattr(settings, name)
        if given and given < longest:
            what = f"{given} tokens do not hold one instance of {longest}"
            raise errors.RecipeInvalid(f"pretrain.{name}", what, f"set it to {longest} or more")
    for part in course.parts:
        smallest = part.tokens_before(part.start + 1)
        if smallest < part.length:
            what = f"step {part.start + 1} has {smallest} tokens, which do not hold one instance of {part.length}"
            raise errors.RecipeInvalid("pretrain.batch_ramp", what, "begin with a larger share of the batch")
    if settings.budget and settings.steps:
        what = f"both a budget ({settings.budget}) and {settings.steps} steps"
        raise errors.RecipeInvalid("pretrain.budget", what, "leave one of them out: a budget plans the steps itself")
