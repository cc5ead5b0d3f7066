"""The learning rate of a step.

BERT's form (google-research/bert, `optimization.py`): the rate decays linearly to 0 over *all* steps, and while
warming up it is replaced by ``peak * step / warmup``. So behind the warm-up it begins at ``peak * (1 - warmup/steps)``,
not at the peak. RoBERTa's form (fairseq, `polynomial_decay_schedule.py` of power 1; transformers'
`get_linear_schedule_with_warmup` is the same): it decays from the peak, over the steps behind the warm-up. Both are a
function of the step over the whole run: the change of length in the middle does not touch them.
"""

from __future__ import annotations


def learning_rate(
    step: int, *, peak: float, warmup: int, steps: int, from_peak: bool = False, decay: str = "linear"
) -> float:
    """The rate of step ``step``, counted from 0; ``from_peak``: RoBERTa's form, else BERT's.

    >>> [learning_rate(s, peak=1.0, warmup=2, steps=10) for s in (0, 1, 2, 9)]
    [0.0, 0.5, 0.8, 0.1]
    >>> [learning_rate(s, peak=1.0, warmup=2, steps=10, from_peak=True) for s in (0, 1, 2, 9)]
    [0.0, 0.5, 1.0, 0.125]
    """
    if step < warmup:
        return peak * step / warmup
    if decay == "constant":
        return peak
    over = steps - warmup if from_peak else steps
    return peak * max(steps - step, 0) / max(over, 1)
