"""Fine-tuning: a pretrained encoder under a head, trained on labeled examples for a few epochs.

Texts are encoded once, before training, so every seed and epoch reads the same ids; a pair that is too long loses
tokens of its longer text (google-research/bert `run_classifier.py`). Everything random is a function of the seed and
the step, so a seed determines the result, to the bit on a CPU. The final weights are evaluated: no epoch is chosen by
its score on the examples that are reported.

Axes: B examples, T positions, D width, C classes.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpusforge import errors, seeds
from corpusforge.arrays import I32, I64, offsets_of, ranges
from corpusforge.loader.packing import padded_length
from corpusforge.progress import Progress, Silent
from corpusforge.sections import Evaluate
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.model import Encoder, decays
from corpusforge.trainer.training_plan import learning_rate

UNUSED = ("transform", "transform_norm", "bias", "pair", "boundary")
"""Parts of an encoder that fine-tuning does not use: its heads for pretraining, except the pooler."""


@dataclass(frozen=True)
class Encoded:
    """Examples as ids, flat: example i owns ``ids[offsets[i]:offsets[i + 1]]``; ``truncated`` of them were too long."""

    ids: I32
    segments: npt.NDArray[np.int8]
    offsets: I64
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> I64:
        """Tokens of each example."""
        return np.diff(self.offsets)

    def padded(self, rows: I64, shape: Architecture, device: torch.device) -> tuple[Tensor, Tensor, Tensor | None]:
        """``input_ids``, ``segment_ids``, ``is_real`` of the examples ``rows``, for `model.Encoder.encode`."""
        lengths = self.lengths[rows]
        width = min(padded_length(int(lengths.max())), shape.longest)
        is_real = np.arange(width) < lengths[:, None]
        at = ranges(self.offsets[rows], lengths)
        ids, segments = np.full(is_real.shape, shape.padding_id, np.int64), np.zeros(is_real.shape, np.int64)
        ids[is_real] = self.ids[at]
        if shape.segments > 1:
            segments[is_real] = self.segments[at]
        real = None if is_real.all() else torch.from_numpy(is_real).to(device)
        return torch.from_numpy(ids).to(device), torch.from_numpy(segments).to(device), real

    def by_length(self, batch_tokens: int) -> Iterator[I64]:
        """All rows in batches of similar length, at most ``batch_tokens`` each with padding."""
        order = np.argsort(-self.lengths, kind="stable")
        begin = 0
        while begin < len(order):  # one iteration per batch
            size = max(1, batch_tokens // padded_length(int(self.lengths[order[begin]])))
            yield order[begin : begin + size]
            begin += size


def encode(tokenizer: Any, texts: Sequence[Sequence[str]], longest: int) -> Encoded:
    """Encode one or two columns of texts, with special tokens, truncated to ``longest`` tokens."""
    tokenizer.enable_truncation(longest, strategy="longest_first")
    inputs = list(texts[0]) if len(texts) == 1 else list(zip(*texts, strict=True))
    encodings = tokenizer.encode_batch(inputs)  # the library returns one object per example
    offsets = offsets_of(np.array([len(encoding.ids) for encoding in encodings], np.int64))
    ids, segments = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int8)
    for encoding, begin, end in zip(encodings, offsets, offsets[1:], strict=False):
        ids[begin:end], segments[begin:end] = encoding.ids, encoding.type_ids
    return Encoded(ids, segments, offsets, sum(bool(encoding.overflowing) for encoding in encodings))


class Tuned(nn.Module, abc.ABC):
    """An encoder under a head: the base class of both heads."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, encoder.shape.dropout

    @abc.abstractmethod
    def loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of a batch."""

    def initialize(self, seed: int, deviation: float = 0.02) -> None:
        """Initialize the head: normal weights (BERT's deviation), zero biases; each weight has its own generator."""
        for name, weight in self.named_parameters():
            if name.startswith("encoder."):
                continue
            generator = torch.Generator().manual_seed(seeds.stage_key(seed, f"finetune/{name}") >> 1)
            values = torch.randn(weight.shape, generator=generator) * deviation if weight.dim() > 1 else 0.0
            with torch.no_grad():
                weight.copy_(torch.as_tensor(values))

    def groups(self, decay: float, weight_decay: float) -> list[dict[str, object]]:
        """Groups of weights for an optimizer, by depth and weight decay; ``factor``: of the learning rate.

        ``decay`` to the power of the distance from the head (ELECTRA, Clark et al. 2020, table 7;
        google-research/electra `optimization.py`: embeddings 0, layer k is k + 1, head two above the last layer).
        """
        top, groups = len(self.encoder.layers) + 2, dict[tuple[int, bool], list[Tensor]]()
        for name, weight in self.named_parameters():
            part = name.split(".")
            if part[0] == "encoder" and part[1] in UNUSED:
                continue
            depth = top
            if part[0] == "encoder":
                depth = int(part[2]) + 1 if part[1] == "layers" else top - 1 if part[1] == "pooler" else 0
            groups.setdefault((depth, decays(weight)), []).append(weight)
        return [
            {"params": weights, "weight_decay": weight_decay if is_decayed else 0.0, "factor": decay ** (top - depth)}
            for (depth, is_decayed), weights in sorted(groups.items(), key=lambda item: item[0])
        ]


class Classifier(Tuned):
    """Scores of classes [B, C] for an input; one class: a number (regression, squared error).

    It reads the first vector through the pooler (Devlin et al. 2019, section 4.1; RoBERTa's head, fairseq
    `RobertaClassificationHead`, has the same form and its own dense layer), or a new one if the checkpoint has none.
    """

    def __init__(self, encoder: Encoder, classes: int) -> None:
        super().__init__(encoder)
        width = encoder.shape.width
        self.pooler = nn.Linear(width, width) if encoder.pooler is None else None
        self.output = nn.Linear(width, classes)

    def forward(self, input_ids: Tensor, segment_ids: Tensor, is_real: Tensor | None) -> Tensor:
        """As `Encoder.encode`; returns [B, C]."""
        first = self.encoder.encode(input_ids, segment_ids, is_real)[:, 0]
        pooler = self.encoder.pooler if self.pooler is None else self.pooler
        assert pooler is not None
        pooled = F.dropout(torch.tanh(pooler(first)), self.dropout, self.training)
        scores: Tensor = self.output(pooled)
        return scores

    def loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy, or squared error for regression. ``targets`` [B]."""
        if targets.is_floating_point():
            return F.mse_loss(scores[:, 0].float(), targets)
        return F.cross_entropy(scores.float(), targets)


class SpanExtractor(Tuned):
    """Scores of being the first and the last token of the answer, [B, T, 2] (Devlin et al. 2019, section 4.2)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.output = nn.Linear(encoder.shape.width, 2)

    def forward(self, input_ids: Tensor, segment_ids: Tensor, is_real: Tensor | None) -> Tensor:
        """As `Encoder.encode`; padding scores minus infinity."""
        scores: Tensor = self.output(self.encoder.encode(input_ids, segment_ids, is_real)).float()
        return scores if is_real is None else scores.masked_fill(~is_real[..., None], -torch.inf)

    def loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy of both ends. ``targets`` [B, 2]: positions."""
        return F.cross_entropy(scores.transpose(1, 2).reshape(-1, scores.shape[1]), targets.reshape(-1))


@dataclass(frozen=True)
class Tuning:
    """Published hyper-parameters; settings of 0 for ``epochs``, ``batch``, ``learning_rate`` mean these."""

    epochs: int
    batch: int
    learning_rate: float
    warmup_share: float
    weight_decay: float
    beta_2: float
    clip: float
    layer_decay: float = 1.0


_BERT = Tuning(3, 32, 3e-5, 0.1, 0.01, 0.999, 1.0)
"""Devlin et al. 2019: epochs and batch section 4.1, learning rate from the grid of appendix A.3 (5e-5, 3e-5, 2e-5); the
rest google-research/bert, `run_classifier.py` (warmup_proportion) and `optimization.py`."""

_ROBERTA = Tuning(10, 32, 2e-5, 0.06, 0.1, 0.98, 0.0)
"""Liu et al. 2019, table 10, GLUE (learning rates 1e-5, 2e-5, 3e-5; batches 16, 32); betas and clip of table 9."""

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
    """How a task is fine-tuned: the settings of [evaluate], where 0 means the published value, and the first seed."""

    settings: Evaluate = dataclasses.field(default_factory=Evaluate)
    seed: int = 0

    def tuning(self, family: str, task: str) -> Tuning:
        """The published hyper-parameters of a family (BERT's if it has none), with those the user has set."""
        published = PUBLISHED.get((family, task), PUBLISHED["bert", task])
        names = ("epochs", "batch", "learning_rate")
        chosen = {name: getattr(self.settings, name) for name in names if getattr(self.settings, name)}
        return dataclasses.replace(published, layer_decay=self.settings.layer_decay, **chosen)

    def run_seeds(self) -> list[int]:
        """The seeds of the runs."""
        return list(range(self.seed, self.seed + self.settings.seeds))

    def sample(self, count: int, task: str) -> I64:
        """Which of ``count`` training examples are used: all, or a sample that is the same for every seed."""
        most = self.settings.train_examples
        if not most or most >= count:
            return np.arange(count)
        order = seeds.rng_for(self.seed, "finetune/sample", task).permutation(count)
        return np.sort(order[:most])


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
    """Train in place. ``targets``: one entry per example; ``name``: of the progress bar; ``micro_tokens``: tokens, with
    padding, that pass through the model at once.

    Raises `errors.TrainingStopped` if it diverges.
    """
    shown = progress or Silent()
    model.initialize(seed)
    model.to(device).train()
    optimizer = _optimizer(model, how)
    epoch_steps = -(-len(inputs) // how.batch)
    steps = epoch_steps * how.epochs
    shown.start(name, steps, "steps")
    for step in range(steps):
        epoch, nth = divmod(step, epoch_steps)
        if nth == 0:
            order = seeds.rng_for(seed, "finetune/order", epoch).permutation(len(inputs))
        _set_learning_rate(optimizer, how, step, steps)
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
        raise errors.TrainingStopped(name, "its weights are NaN or Inf", "lower evaluate.learning_rate")


def _optimizer(model: Tuned, how: Tuning) -> torch.optim.Optimizer:
    groups = model.groups(how.layer_decay, how.weight_decay)
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, how.beta_2), eps=1e-6, fused=True)


def _set_learning_rate(optimizer: torch.optim.Optimizer, how: Tuning, step: int, steps: int) -> None:
    """Linear warm-up and decay; the learning rate is above 0 from the first step."""
    warmup = round(how.warmup_share * steps)
    rate = learning_rate(step + 1, peak=how.learning_rate, warmup=warmup, steps=steps + 1, from_peak=True)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]


def _gradient(
    model: Tuned, inputs: Encoded, targets: Tensor, batch: I64, micro_tokens: int, seed: int, step: int,
    dtype: torch.dtype | None,
) -> None:  # fmt: skip
    """Add the gradient of the mean loss of a batch, in micro-batches that fit."""
    device = next(model.parameters()).device
    size = max(1, micro_tokens // int(inputs.lengths[batch].max()))
    for number, begin in enumerate(range(0, len(batch), size)):
        rows = batch[begin : begin + size]
        torch.manual_seed(seeds.stage_key(seed, f"finetune/dropout/{step}/{number}") >> 1)
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            scores = model(*inputs.padded(rows, model.encoder.shape, device))
        loss = model.loss(scores, targets[torch.from_numpy(rows)].to(device)) * (len(rows) / len(batch))
        loss.backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def scores(
    model: Tuned, inputs: Encoded, batch_tokens: int, dtype: torch.dtype | None = None
) -> list[tuple[I64, Tensor]]:
    """The scores of all examples, as batches of rows and their scores on the CPU."""
    device = next(model.parameters()).device
    model.eval()
    scored = []
    for rows in inputs.by_length(batch_tokens):
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            output = model(*inputs.padded(rows, model.encoder.shape, device))
        scored.append((rows, output.float().cpu()))
    return scored
