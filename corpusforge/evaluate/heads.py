"""A pretrained encoder with a head for a task on top.

Comes in: an `Encoder`. Goes out: a module from ids to scores, with the loss that trains it. The classifier reads the
first vector through the pooler (Devlin et al. 2019, section 4.1; RoBERTa's head, fairseq `RobertaClassificationHead`,
has the same form and its own dense layer). A checkpoint without a pooler gets a new one.

Axes: B examples, T positions, D width, C classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpusforge import seeds
from corpusforge.trainer.model import Encoder, decays

UNUSED = ("transform", "transform_norm", "bias", "pair", "boundary")
"""Parts of an encoder that predict tokens: no task reads them."""


class Tuned(nn.Module):
    """An encoder under a head; the base of both kinds."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, encoder.shape.dropout

    def loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of a batch."""
        raise NotImplementedError

    def initialise(self, seed: int, deviation: float = 0.02) -> None:
        """Draw what is new: normal weights (BERT's deviation), zero biases, each from a generator of its own."""
        for name, weight in self.named_parameters():
            if name.startswith("encoder."):
                continue
            generator = torch.Generator().manual_seed(seeds.stage_key(seed, f"finetune/{name}") >> 1)
            drawn = torch.randn(weight.shape, generator=generator) * deviation if weight.dim() > 1 else 0.0
            with torch.no_grad():
                weight.copy_(torch.as_tensor(drawn))

    def groups(self, decay: float, weight_decay: float) -> list[dict[str, object]]:
        """Weights for an optimiser, by depth and weight decay; ``factor``: of the learning rate.

        ``decay`` to the power of the distance from the head (ELECTRA, Clark et al. 2020, table 7;
        google-research/electra `optimization.py`: embeddings 0, layer k is k + 1, head two above the last layer).
        """
        top, found = len(self.encoder.layers) + 2, dict[tuple[int, bool], list[Tensor]]()
        for name, weight in self.named_parameters():
            part = name.split(".")
            if part[0] == "encoder" and part[1] in UNUSED:
                continue
            depth = top
            if part[0] == "encoder":
                depth = int(part[2]) + 1 if part[1] == "layers" else top - 1 if part[1] == "pooler" else 0
            found.setdefault((depth, decays(weight)), []).append(weight)
        return [
            {"params": weights, "weight_decay": weight_decay if is_decayed else 0.0, "factor": decay ** (top - depth)}
            for (depth, is_decayed), weights in sorted(found.items(), key=lambda item: item[0])
        ]


class Classifier(Tuned):
    """Scores of classes [B, C] for a whole input; one class: a number (regression, squared error)."""

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
        """Cross entropy, or squared error for numbers. ``targets`` [B]."""
        if targets.is_floating_point():
            return F.mse_loss(scores[:, 0].float(), targets)
        return F.cross_entropy(scores.float(), targets)


class SpanExtractor(Tuned):
    """Scores of being the first and the last token of the answer, [B, T, 2] (Devlin et al. 2019, section 4.2)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.output = nn.Linear(encoder.shape.width, 2)

    def forward(self, input_ids: Tensor, segment_ids: Tensor, is_real: Tensor | None) -> Tensor:
        """As `Encoder.encode`; padding has scores of minus infinity."""
        scores: Tensor = self.output(self.encoder.encode(input_ids, segment_ids, is_real)).float()
        return scores if is_real is None else scores.masked_fill(~is_real[..., None], -torch.inf)

    def loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Mean of the cross entropies of both ends. ``targets`` [B, 2]: positions."""
        return F.cross_entropy(scores.transpose(1, 2).reshape(-1, scores.shape[1]), targets.reshape(-1))
