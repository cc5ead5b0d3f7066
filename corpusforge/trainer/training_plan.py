"""The training plan: what each step of a run is, as a function of its number alone.

`training_plan` fills in the preset's own numbers (a setting of 0, or of -1 where 0 has a meaning, stands for them) and
divides the run into its parts, the short one and the full-length one. The learning rate, batch and masks of a step are
functions of its number; under a time budget also of the *marks*, the record of how many steps were planned, which
checkpoints and the log hold. A schedule spans all parts of a run, so a resumed run continues it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from corpusforge import errors
from corpusforge.loader.order import Part, Ramp
from corpusforge.sections import Pretrain
from corpusforge.sections.presets import Preset, find_preset

MOST_STEPS = 1 << 40
"""The largest number of steps that the search for what fits a budget considers."""

ONE_CYCLE_RISE = 0.3
"""Share of the steps in which the one-cycle learning rate rises (torch, `OneCycleLR`: pct_start)."""
ONE_CYCLE_FIRST, ONE_CYCLE_LAST = 1 / 25, 1 / 25e4
"""Shares of the peak at which it starts and ends (torch, `OneCycleLR`: div_factor, final_div_factor)."""


@dataclass(frozen=True)
class Mark:
    """A plan made under a time budget: from step ``step`` on, ``steps`` in total, at full length from ``switch`` on.

    ``progress``: share of the schedule done at ``step``; ``seconds``: spent of the budget, for the record.
    """

    step: int
    progress: float
    steps: int
    switch: int
    seconds: float

    def progress_at(self, step: float) -> float:
        """Share of the schedule done before a step from this mark on: linear, 1 at the end."""
        left = max(self.steps - self.step, 1)
        return min(self.progress + (1 - self.progress) * (step - self.step) / left, 1.0)


@dataclass(frozen=True)
class TrainingPlan:
    """A run with every number determined. ``marks``: only under a time budget, ascending by step."""

    preset: Preset
    steps: int
    optimizer: str
    learning_rate: float
    warmup_steps: int
    warmup_share: float  # of the schedule, for time budgets; -1: use warmup_steps
    decay: str
    decay_share: float
    dropout: float
    mask_rates: tuple[float, float]  # of dynamic masks, at the first and the last step
    short_share: float
    batch_ramp_share: float
    parts: tuple[Part, ...]
    marks: tuple[Mark, ...] = ()

    def part_of(self, step: int) -> int:
        """Number of the part that step ``step`` (from 0) belongs to; after the end, the last one."""
        return next((k for k, part in enumerate(self.parts) if step < part.stop), len(self.parts) - 1)

    def progress(self, step: float) -> float:
        """Share of the schedule done before step ``step``."""
        if not self.marks:
            return step / self.steps
        return self._progress(step, step)

    def _progress(self, step: float, known: float) -> float:
        """Progress at ``step`` by the marks up to step ``known``."""
        up_to = min(step, known)
        return next((m for m in reversed(self.marks) if m.step <= up_to), self.marks[0]).progress_at(step)

    def learning_rate_at(self, step: int) -> float:
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
        """The share of tokens that dynamic masks of a step cover: linear from the first to the last step."""
        first, last = self.mask_rates
        return first if first == last else first + (last - first) * self.progress(step)

    def marked(self, mark: Mark) -> TrainingPlan:
        """The plan with one more mark; steps before it stay the same."""
        parts = list(self.parts)
        if not self.marks:  # only the first mark sets the ramp, as data may have been read by it
            ramp = dataclasses.replace(parts[0].ramp, steps=round(self.batch_ramp_share * mark.steps))
            parts = [dataclasses.replace(part, ramp=ramp) for part in parts]
        if len(parts) > 1:
            parts[0] = dataclasses.replace(parts[0], stop=mark.switch)
            parts[1] = dataclasses.replace(parts[1], start=mark.switch)
        parts[-1] = dataclasses.replace(parts[-1], stop=max(mark.steps, parts[-1].start))
        warmup = round(self.warmup_share * mark.steps) if self.warmup_share >= 0 else self.warmup_steps
        marks = (*self.marks, mark)
        return dataclasses.replace(self, steps=mark.steps, warmup_steps=warmup, parts=tuple(parts), marks=marks)


def training_plan(settings: Pretrain, longest: int, mask_rate: float = 0.15) -> TrainingPlan:
    """The plan of a run. ``longest``: tokens of the longest instance; ``mask_rate``: the one the data were built with.

    Raises `errors.RecipeInvalid` if a batch would not hold one instance.
    """
    preset = find_preset(settings.preset)
    steps = settings.steps or preset.steps
    plan = TrainingPlan(
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
        plan = dataclasses.replace(plan, warmup_steps=round(share * steps), warmup_share=share)
    _check(settings, plan)
    return plan


def _mask_rates(settings: Pretrain, built: float) -> tuple[float, float]:
    rates = (settings.mask_rate_start, settings.mask_rate_end)
    first, last = (rate if rate >= 0 else built for rate in rates)
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


def _check(settings: Pretrain, plan: TrainingPlan) -> None:
    longest = plan.parts[-1].length
    for name in ("batch_tokens", "micro_batch_tokens"):
        tokens = getattr(settings, name)
        if tokens and tokens < longest:
            what = f"{tokens} tokens do not hold one instance of {longest}"
            raise errors.RecipeInvalid(f"pretrain.{name}", what, f"set it to {longest} or more")
    for part in plan.parts:
        smallest = part.tokens_before(part.start + 1)
        if smallest < part.length:
            what = f"step {part.start + 1} has {smallest} tokens, which do not hold one instance of {part.length}"
            raise errors.RecipeInvalid("pretrain.batch_ramp", what, "start with a larger share of the batch")
    if settings.budget and settings.steps:
        what = f"both a budget ({settings.budget}) and {settings.steps} steps"
        raise errors.RecipeInvalid("pretrain.budget", what, "leave one of them out: a budget plans the steps itself")


def fitting(
    plan: TrainingPlan, left: float, seconds_per_token: Sequence[float], *, done: int, at: int, now: float
) -> Mark:
    """The mark from step ``at`` on, with as many steps as fit into ``left`` seconds after ``done`` steps.

    ``seconds_per_token``: one value per part; ``now``: seconds spent, for the record. A switch in the past stays there.
    """
    progress = plan.progress(at) if plan.marks else 0.0
    first = plan.parts[0]
    passed = first.stop if plan.marks and first.stop <= at else None

    def planned(steps: int) -> Mark:
        switch = max(at, 1, round(plan.short_share * steps)) if passed is None else passed
        return Mark(at, progress, steps, switch, now)

    def cost(steps: int) -> float:
        parts = plan.marked(planned(steps)).parts
        tokens = [max(0, p.tokens_before(min(p.stop, steps)) - p.tokens_before(max(done, p.start))) for p in parts]
        return sum(count * each for count, each in zip(tokens, seconds_per_token, strict=True))

    low, high = max(done, 1), max(done, 1) + 1
    while cost(high) <= left and high < MOST_STEPS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= left else (low, middle)
    return planned(low)


def learning_rate(
    step: float,
    *,
    peak: float,
    warmup: float,
    steps: float,
    from_peak: bool = False,
    decay: str = "linear",
    decay_share: float = 0.1,
) -> float:
    """The learning rate of step ``step``, counted from 0: a function of the step over the whole run.

    BERT's form (google-research/bert, `optimization.py`): it decays linearly to 0 over *all* steps, and during warm-up
    it is replaced by ``peak * step / warmup``; so after the warm-up it starts at ``peak * (1 - warmup/steps)``, not at
    the peak. RoBERTa's form (``from_peak``; fairseq, `polynomial_decay_schedule.py` of power 1, and transformers'
    `get_linear_schedule_with_warmup`): it decays from the peak over the steps after the warm-up. ``decay_share``: of
    all steps, in which wsd decays. Steps need not be whole numbers.

    >>> [learning_rate(s, peak=1.0, warmup=2, steps=10) for s in (0, 1, 2, 9)]
    [0.0, 0.5, 0.8, 0.1]
    >>> [learning_rate(s, peak=1.0, warmup=2, steps=10, from_peak=True) for s in (0, 1, 2, 9)]
    [0.0, 0.5, 1.0, 0.125]
    """
    if decay == "one-cycle":
        return peak * _one_cycle(step, warmup, steps)
    if step < warmup:
        return peak * step / warmup
    if decay == "constant":
        return peak
    left = max(steps - step, 0)
    if decay == "cosine":
        return peak * _cosine(step - warmup, steps - warmup)
    if decay == "wsd":
        return peak * _cooled(left, min(decay_share * steps, steps - warmup))
    from_peak = decay == "linear-hf" or (from_peak and decay != "linear-bert")
    over = steps - warmup if from_peak else steps
    return peak * left / over if over > 0 else 0.0


def _cosine(done: float, over: float) -> float:
    """From 1 to 0 in half a cosine wave (Loshchilov and Hutter 2017, arXiv 1608.03983, eq. 5, one period)."""
    return 0.5 * (1 + math.cos(math.pi * min(done / over, 1.0))) if over > 0 else 0.0


def _one_cycle(step: float, rise: float, steps: float) -> float:
    """Up and down in half cosines (Smith and Topin 2019, arXiv 1708.07120; torch's `OneCycleLR`); ``rise``: steps."""
    if step < rise:
        return ONE_CYCLE_FIRST + (1 - ONE_CYCLE_FIRST) * (1 - _cosine(step, rise))
    return ONE_CYCLE_LAST + (1 - ONE_CYCLE_LAST) * _cosine(step - rise, steps - rise)


def _cooled(left: float, over: float) -> float:
    """1, then over the last ``over`` steps down to 0 by ``1 - sqrt`` (Hägele et al. 2024, arXiv 2405.18392, eq. 1).

    Warm-up, stable, decay: Hu et al. 2024 (MiniCPM, arXiv 2404.06395), section 4.
    """
    return 1 - math.sqrt(1 - left / over) if left < over else 1.0
