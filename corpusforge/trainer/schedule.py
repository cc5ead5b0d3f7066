"""The learning rate of a step.

BERT's form (google-research/bert, `optimization.py`): the rate decays linearly to 0 over *all* steps, and while
warming up it is replaced by ``peak * step / warmup``. So behind the warm-up it begins at ``peak * (1 - warmup/steps)``,
not at the peak. It is a function of the step over the whole run: the change of length in the middle does not touch it.
"""

from __future__ import annotations


def learning_rate(step: int, *, peak: float, warmup: int, steps: int, decay: str = "linear") -> float:
    """The rate of step ``step``, counted from 0.

    >>> [learning_rate(s, peak=1.0, warmup=2, steps=10) for s in (0, 1, 2, 9)]
    [0.0, 0.5, 0.8, 0.1]
    """
    if step < warmup:
        return peak * step / warmup
    return peak if decay == "constant" else peak * max(steps - step, 0) / steps
