"""Batches: named tensors of a step, cut into micro-batches by tokens, one instance a row (`packed`: many).

Comes in: the rows of a step as NumPy arrays (`loader.rows.read_step`). Goes out: a list of `Batch`, whose rows together
are those of the step, each once. Rows are sorted by length inside the step and never across steps, so a step stays a
uniform sample of the epoch whatever the micro-batches are. This is the door: NumPy before it, tensors behind it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpusforge.loader import layout
from corpusforge.loader.layout import cut_micro_batches, lay_out, padded_length
from corpusforge.loader.rows import Rows
from corpusforge.trainer.attention import Packed, has_flash

NOTHING = -100
"""A label that fills up a shape and counts nowhere (`ignore_index` of torch's cross entropy)."""


@dataclass(frozen=True)
class Batch:
    """A micro-batch. Axes: B rows, T positions, M masked positions, S of them that the bounds of their spans tell, P
    pairs (B, unless instances are packed).

    ``masked``: positions whose token is to be predicted, counted through the flattened batch (b * T + t), ascending.
    Where shapes are filled up, labels end in `NOTHING`, and ``masked`` and ``spans`` in zeros.
    """

    input_ids: Tensor  # [B, T] int64, as the model sees them
    segment_ids: Tensor  # [B, T] int64
    is_real: Tensor | None  # [B, T] bool, False on padding; None: no padding
    masked: Tensor  # [M] int64
    labels: Tensor  # [M] int64
    pair_labels: Tensor | None  # [P] int64
    tokens: int  # without padding
    spans: Tensor | None = None  # [S, 3] int64, see `model.Encoder.forward`
    span_labels: Tensor | None = None  # [S] int64
    packed: Packed | None = None  # where instances lie, if not one in each row
    predicted: int = -1  # how many of ``labels`` are labels; -1: all
    instances: int = -1  # -1: B

    @property
    def size(self) -> int:
        """Tokens with padding."""
        return self.input_ids.numel()

    @property
    def real(self) -> Tensor | Packed | None:
        """What the encoder's attention has to know."""
        return self.packed or self.is_real

    @property
    def masked_count(self) -> int:
        """Masked positions."""
        return len(self.labels) if self.predicted < 0 else self.predicted

    @property
    def pair_count(self) -> int:
        """Instances."""
        return len(self.input_ids) if self.instances < 0 else self.instances

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device; from pinned memory without waiting for the copy."""
        moved = self._with(lambda tensor: tensor.to(device, non_blocking=True))
        if moved.packed is None:
            return moved
        return dataclasses.replace(moved, packed=moved.packed._replace(flash=has_flash(device)))

    def pinned(self) -> Batch:
        """The same batch in page-locked memory."""
        return self._with(Tensor.pin_memory)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, those that are None left out."""
        held = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: value for name, value in held.items() if isinstance(value, Tensor)}

    def silent(self) -> Batch:
        """The same batch with nothing to predict: its losses and gradients are zero."""
        names = ("labels", "pair_labels", "span_labels")
        found = {name: torch.full_like(value, NOTHING) for name, value in self.tensors().items() if name in names}
        return dataclasses.replace(self, **found, tokens=0, predicted=0, instances=0)  # type: ignore[arg-type]

    def _with(self, change: Callable[[Tensor], Tensor]) -> Batch:
        changed: dict[str, Any] = {name: change(value) for name, value in self.tensors().items()}
        if self.packed is not None:
            parts = (change(part) if isinstance(part, Tensor) else part for part in self.packed)
            changed["packed"] = Packed(*parts)  # type: ignore[arg-type]
        return dataclasses.replace(self, **changed)


def make_batches(
    rows: Rows, budget: int, padding_id: int, *, segments: bool, pairs: bool, spans: int = 0
) -> list[Batch]:
    """Pad the rows of a step into micro-batches.

    ``segments``: number segment B with 1 (else all 0); ``pairs``: hand out pair labels; ``spans``: and so many tokens
    of each masked span, from its first, to be told by the tokens on both sides of it.
    """
    made = []
    for chosen in cut_micro_batches(rows.lengths, budget):
        width = padded_length(int(rows.lengths[chosen].max()))
        laid = lay_out(rows.pick(chosen), None, width, padding_id)
        made.append(to_tensors(laid, segments=segments, pairs=pairs, spans=spans))
    return made


def to_tensors(batch: layout.Batch, *, segments: bool, pairs: bool, spans: int = 0) -> Batch:
    """A batch of the loader as tensors, one instance a row; for packed ones see `packed.to_packed_tensors`."""
    segment_ids = batch.segment_ids() if segments else np.zeros(batch.input_ids.shape, np.int64)
    pair_labels = batch.pair_labels if pairs else None
    return Batch(
        input_ids=torch.from_numpy(batch.input_ids),
        segment_ids=torch.from_numpy(segment_ids),
        is_real=None if batch.tokens == batch.size else torch.from_numpy(batch.is_real()),
        masked=torch.from_numpy(batch.masked),
        labels=torch.from_numpy(batch.labels),
        pair_labels=None if pair_labels is None else torch.from_numpy(pair_labels.astype(np.int64)),
        tokens=batch.tokens,
        **told_by_bounds(batch, spans),
    )


def told_by_bounds(batch: layout.Batch, most: int) -> dict[str, Any]:
    """What the span boundary head reads and predicts: at most ``most`` tokens of each span."""
    if not most or batch.span_sides is None:
        return {}
    nth = batch.masked - batch.span_sides[:, 0] - 1
    told = np.flatnonzero(nth < most)
    spans = np.column_stack([batch.span_sides, nth])[told]
    return {"spans": torch.from_numpy(spans), "span_labels": torch.from_numpy(batch.labels[told])}
