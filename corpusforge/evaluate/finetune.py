"""Fine-tuning: a pretrained encoder under a head, trained on labelled examples for a few epochs.

Comes in: a `heads.Tuned`, encoded examples, their targets, `Tuning`. Goes out: the trained module; `scores` applies it.
Decision: everything random is a function of the seed and the step, so a seed names a result, to the bit on a CPU.
The last weights count: no epoch is chosen by its figure on the very examples that are reported.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from corpusforge import errors, seeds
from corpusforge.arrays import I64
from corpusforge.evaluate.encoded import Encoded
from corpusforge.evaluate.heads import Tuned
from corpusforge.progress import Progress, Silent
from corpusforge.sections import Evaluate
from corpusforge.trainer.schedule import learning_rate


@dataclass(frozen=True)
class Tuning:
    """Hyper-parameters, as published; 0 of ``epochs``, ``batch``, ``learning_rate`` in settings means these."""

    epochs: int
    batch: int
    learning_rate: float
    warmup_share: float
    weight_decay: float
    beta_2: float
    clip: float
    layer_decay: float = 1.0


_BERT = Tuning(3, 32, 3e-5, 0.1, 0.01, 0.999, 1.0)
"""Devlin et al. 2019: epochs and batch section 4.1, rate from the grid of appendix A.3 (5e-5, 3e-5, 2e-5); the rest
google-research/bert, `run_classifier.py` (warmup_proportion) and `optimization.py`."""

_ROBERTA = Tuning(10, 32, 2e-5, 0.06, 0.1, 0.98, 0.0)
"""Liu et al. 2019, table 10, GLUE (rates 1e-5, 2e-5, 3e-5; batches 16, 32); betas and clip of table 9."""

PUBLISHED = {
    ("bert", "glue"): _BERT,
    ("roberta", "glue"): _ROBERTA,
    ("bert", "squad"): dataclasses.replace(_BERT, learning_rate=5e-5),  # section 4.2
    ("bert", "squad2"): dataclasses.replace(_BERT, learning_rate=5e-5, epochs=2, batch=48),  # section 4.3
    ("roberta", "squad"): Tuning(2, 48, 1.5e-5, 0.06, 0.01, 0.98, 0.0),  # table 10
    ("roberta", "squad2"): Tuning(2, 48, 1.5e-5, 0.06, 0.01, 0.98, 0.0),
}


@dataclass(frozen=True)
class FineTuning:
    """How a task is fine-tuned: the settings of [evaluate], 0 standing for the published value, and the first seed."""

    settings: Evaluate = dataclasses.field(default_factory=Evaluate)
    seed: int = 0

    def tuning(self, family: str, task: str) -> Tuning:
        """The published hyper-parameters of a family (BERT's for those with none of their own) under the settings."""
        published = PUBLISHED.get((family, task), PUBLISHED["bert", task])
        names = ("epochs", "batch", "learning_rate")
        given = {name: getattr(self.settings, name) for name in names if getattr(self.settings, name)}
        return dataclasses.replace(published, layer_decay=self.settings.layer_decay, **given)

    def run_seeds(self) -> list[int]:
        """The seeds of the runs."""
        return list(range(self.seed, self.seed + self.settings.seeds))

    def sample(self, count: int, task: str) -> I64:
        """Which of ``count`` training examples are used: all, or a sample that is the same for all seeds."""
        most = self.settings.train_examples
        if not most or most >= count:
            return np.arange(count)
        drawn = seeds.rng_for(self.seed, "finetune/sample", task).permutation(count)
        return np.sort(drawn[:most])


def fine_tune(
    model: Tuned,
    inputs: Encoded,
    targets: Tensor,
    how: Tuning,
    *,
    seed: int,
    name: str,
    micro_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> None:
    """Train in place. ``targets``: one entry an example; ``name``: of the progress bar; ``micro_tokens``: with padding,
    that pass through the model at once.

    Raises `errors.TrainingStopped` where it diverges.
    """
    shown = progress or Silent()
    model.initialise(seed)
    model.to(device).train()
    optimizer = _optimizer(model, how)
    epoch_steps = -(-len(inputs) // how.batch)
    steps = epoch_steps * how.epochs
    shown.start(name, steps, "steps")
    for step in range(steps):
        epoch, nth = divmod(step, epoch_steps)
        if nth == 0:
            order = seeds.rng_for(seed, "finetune/order", epoch).permutation(len(inputs))
        _set_rate(optimizer, how, step, steps)
        batch = order[nth * how.batch : (nth + 1) * how.batch]
        _gradient(model, inputs, targets, batch, micro_tokens, seed, step, dtype)
        torch.nn.utils.clip_grad_norm_(model.parameters(), how.clip or float("inf"))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        shown.advance(1)
    shown.finish()
    _check_finite(model, name)
    model.eval()


def _check_finite(model: Tuned, name: str) -> None:
    if not all(bool(torch.isfinite(weight).all()) for weight in model.parameters()):
        raise errors.TrainingStopped(name, "the weights are NaN or Inf", "lower evaluate.learning_rate")


def _optimizer(model: Tuned, how: Tuning) -> torch.optim.Optimizer:
    groups = model.groups(how.layer_decay, how.weight_decay)
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, how.beta_2), eps=1e-6, fused=True)


def _set_rate(optimizer: torch.optim.Optimizer, how: Tuning, step: int, steps: int) -> None:
    """Linear warm-up and decay; the first step has a rate above 0 as well."""
    warmup = round(how.warmup_share * steps)
    rate = learning_rate(step + 1, peak=how.learning_rate, warmup=warmup, steps=steps + 1, from_peak=True)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]


def _gradient(
    model: Tuned, inputs: Encoded, targets: Tensor, batch: I64, micro_tokens: int, seed: int, step: int,
    dtype: torch.dtype | None,
) -> None:  # fmt: skip
    """Add the gradient of the mean loss of a batch, in pieces that fit."""
    device = next(model.parameters()).device
    size = max(1, micro_tokens // int(inputs.lengths[batch].max()))
    for number, begin in enumerate(range(0, len(batch), size)):
        some = batch[begin : begin + size]
        torch.manual_seed(seeds.stage_key(seed, f"finetune/dropout/{step}/{number}") >> 1)
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            scores = model(*inputs.padded(some, model.encoder.shape, device))
        loss = model.loss(scores, targets[torch.from_numpy(some)].to(device)) * (len(some) / len(batch))
        loss.backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def scores(
    model: Tuned, inputs: Encoded, batch_tokens: int, dtype: torch.dtype | None = None
) -> list[tuple[I64, Tensor]]:
    """What the module says of all examples: rows and their scores on the CPU, a batch at a time."""
    device = next(model.parameters()).device
    model.eval()
    found = []
    for rows in inputs.by_length(batch_tokens):
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            said = model(*inputs.padded(rows, model.encoder.shape, device))
        found.append((rows, said.float().cpu()))
    return found
