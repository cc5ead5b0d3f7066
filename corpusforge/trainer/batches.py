"""Micro-batches as tensors: the loader's NumPy batches, converted for the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpusforge.arrays import I32
from corpusforge.loader import layout
from corpusforge.loader.packing import padded_length
from corpusforge.trainer.attention import Packed, has_flash

MASKED_STEPS = 64
"""For fixed shapes, masked positions are padded to a multiple of a 64th of all positions: about a tenth of them."""

IGNORED = -100
"""The label of padding: it counts in no loss (`ignore_index` of torch's cross entropy)."""


@dataclass(frozen=True)
class Batch:
    """A micro-batch. Axes: B rows, T positions, M masked positions, S of them that span boundaries predict, P pairs
    (B, unless instances are packed).

    ``masked``: positions whose token is to be predicted, counted through the flattened batch (b * T + t), ascending.
    If shapes are padded, labels end in `IGNORED`, and ``masked`` and ``spans`` in zeros.
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
    packed: Packed | None = None  # the layout, unless each row is one instance
    predicted: int = -1  # number of ``labels`` without padding; -1: all
    instances: int = -1  # -1: B

    @property
    def size(self) -> int:
        """Tokens with padding."""
        return self.input_ids.numel()

    @property
    def real(self) -> Tensor | Packed | None:
        """What restricts the encoder's attention."""
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
        """The same batch on a device; copies from pinned memory are asynchronous."""
        moved = self._map(lambda tensor: tensor.to(device, non_blocking=True))
        if moved.packed is None:
            return moved
        return dataclasses.replace(moved, packed=moved.packed._replace(flash=has_flash(device)))

    def pinned(self) -> Batch:
        """The same batch in page-locked memory."""
        return self._map(Tensor.pin_memory)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, without those that are None."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def silent(self) -> Batch:
        """The same batch with nothing to predict: its losses and gradients are zero."""
        names = ("labels", "pair_labels", "span_labels")
        silenced = {name: torch.full_like(value, IGNORED) for name, value in self.tensors().items() if name in names}
        return dataclasses.replace(self, **silenced, tokens=0, predicted=0, instances=0)  # type: ignore[arg-type]

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        changed: dict[str, Any] = {name: change(value) for name, value in self.tensors().items()}
        if self.packed is not None:
            parts = (change(part) if isinstance(part, Tensor) else part for part in self.packed)
            changed["packed"] = Packed(*parts)  # type: ignore[arg-type]
        return dataclasses.replace(self, **changed)


def to_tensors(batch: layout.Batch, *, segments: bool, pairs: bool, spans: int = 0, fixed: bool = False) -> Batch:
    """A batch of the loader as tensors.

    ``segments``: number segment B with 1 (else all 0); ``pairs``: include pair labels; ``spans``: how many tokens of
    each masked span, from its first, the span's boundaries predict; ``fixed``: pad the shapes of a packed batch, so
    that only a few shapes occur.
    """
    segment_ids = batch.segment_ids() if segments else np.zeros(batch.input_ids.shape, np.int64)
    pair_labels = batch.pair_labels if pairs else None
    is_real = packed = None
    if batch.is_packed:
        bounds = batch.cu_seqlens()
        packed = Packed(
            positions=torch.from_numpy(batch.positions()),
            begins=torch.from_numpy(batch.begins),
            bounds=torch.from_numpy(bounds),
            longest=int(np.diff(bounds).max()),
            runs=_runs(np.diff(bounds)),
        )
    elif batch.tokens < batch.size:
        is_real = torch.from_numpy(batch.is_real())
    converted = Batch(
        input_ids=torch.from_numpy(batch.input_ids),
        segment_ids=torch.from_numpy(segment_ids),
        is_real=is_real,
        masked=torch.from_numpy(batch.masked),
        labels=torch.from_numpy(batch.labels),
        pair_labels=None if pair_labels is None else torch.from_numpy(pair_labels.astype(np.int64)),
        tokens=batch.tokens,
        packed=packed,
        predicted=len(batch.labels),
        instances=len(batch.lengths),
        **_span_boundaries(batch, spans),
    )
    return padded_shapes(converted) if fixed and packed is not None else converted


def _span_boundaries(batch: layout.Batch, most: int) -> dict[str, Any]:
    """What the span boundary head reads and predicts: at most ``most`` tokens of each span."""
    if not most or batch.span_sides is None:
        return {}
    nth = batch.masked - batch.span_sides[:, 0] - 1
    near = np.flatnonzero(nth < most)
    spans = np.column_stack([batch.span_sides, nth])[near]
    return {"spans": torch.from_numpy(spans), "span_labels": torch.from_numpy(batch.labels[near])}


def _runs(sizes: I32) -> tuple[tuple[int, int], ...]:
    """Runs of equal sizes, as (count, size)."""
    first = np.flatnonzero(np.diff(sizes, prepend=-1))
    counts = np.diff(first, append=len(sizes))
    return tuple(zip(counts.tolist(), sizes[first].tolist(), strict=True))


def padded_shapes(batch: Batch) -> Batch:
    """The same batch, padded to shapes that other batches of its size have too. Losses are the same, to the bit."""
    packed = batch.packed
    assert packed is not None
    masked = padded_length(max(len(batch.masked), 1), max(1, batch.size // MASKED_STEPS))
    instances = _power_of_two(len(packed.bounds))
    bounds = _to_size(packed.bounds, instances, batch.size)
    longest = _power_of_two(packed.longest)  # kernels read it as an upper bound; equal for all batches of a length
    begins = _to_size(packed.begins, instances, 0)
    changed: dict[str, Tensor | Packed | None] = {
        "masked": _to_size(batch.masked, masked, 0),
        "labels": _to_size(batch.labels, masked, IGNORED),
        "pair_labels": None if batch.pair_labels is None else _to_size(batch.pair_labels, instances, IGNORED),
        "packed": packed._replace(bounds=bounds, begins=begins, longest=longest),
    }
    if batch.spans is not None and batch.span_labels is not None:
        changed["spans"] = torch.cat([batch.spans, batch.spans.new_zeros(masked - len(batch.spans), 3)])
        changed["span_labels"] = _to_size(batch.span_labels, masked, IGNORED)
    return dataclasses.replace(batch, **changed)  # type: ignore[arg-type]


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _to_size(values: Tensor, size: int, filling: int) -> Tensor:
    return torch.cat([values, values.new_full((size - len(values),), filling)])
