"""The learning rate of a step.

BERT's form (google-research/bert, `optimization.py`): the rate decays linearly to 0 over *all* steps, and while
warming up it is replaced by ``peak * step / warmup``. So behind the warm-up it begins at ``peak * (1 - warmup/steps)``,
not at the peak. RoBERTa's form (fairseq, `polynomial_decay_schedule.py` of power 1; transformers'
`get_linear_schedule_with_warmup` is the same): it decays from the peak, over the steps behind the warm-up. All are a
function of the step over the whole run: the change of length in the middle does not touch them.
"""

from __future__ import annotations

import math

DECAYS = ("linear", "linear-bert", "linear-hf", "cosine", "one-cycle", "wsd", "constant")
"""What a rate does behind the warm-up. linear: BERT's form or RoBERTa's, as the preset has it."""

ONE_CYCLE_RISE = 0.3
"""Share of the steps in which the rate of one-cycle rises (torch, `OneCycleLR`: pct_start)."""
ONE_CYCLE_FIRST, ONE_CYCLE_LAST = 1 / 25, 1 / 25e4
"""Shares of the peak it begins and ends at (torch, `OneCycleLR`: div_factor, final_div_factor)."""


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
    """The rate of step ``step``, counted from 0; ``from_peak``: RoBERTa's form, else BERT's.

    ``decay_share``: of all steps, in which wsd decays. Nothing here asks for whole numbers.

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
    """From 1 to 0 in half a wave (Loshchilov and Hutter 2017, arXiv 1608.03983, eq. 5, one period)."""
    return 0.5 * (1 + math.cos(math.pi * min(done / over, 1.0))) if over > 0 else 0.0


def _one_cycle(step: float, rise: float, steps: float) -> float:
    """Up and down in half waves (Smith and Topin 2019, arXiv 1708.07120; torch's `OneCycleLR`); ``rise``: steps."""
    if step < rise:
        return ONE_CYCLE_FIRST + (1 - ONE_CYCLE_FIRST) * (1 - _cosine(step, rise))
    return ONE_CYCLE_LAST + (1 - ONE_CYCLE_LAST) * _cosine(step - rise, steps - rise)


def _cooled(left: float, over: float) -> float:
    """1, and over the last ``over`` steps down to 0 by ``1 - sqrt`` (Hägele et al. 2024, arXiv 2405.18392, eq. 1).

    Warm-up, stable, decay: Hu et al. 2024 (MiniCPM, arXiv 2404.06395), section 4.
    """
    return 1 - math.sqrt(1 - left / over) if left < over else 1.0
