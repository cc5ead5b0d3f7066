"""Packed micro-batches: the instances of a step end to end, without padding.

Comes in: the rows of a step as NumPy arrays. Goes out: `Batch`es of one long row each, with the bounds of the instances
in it; or, for compiled kernels, of shapes that hardly change from step to step. Decision: a row of a micro-batch is as
long as the micro-batch. Rows of a set length (`loader.packing`) leave a rest in each; kernels of variable-length
attention do not ask for them. The step's instances are dealt out by length, so every micro-batch gets its share of
every length and as many tokens as the others: ranks that compute at the same time end at the same time.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from torch import Tensor

from corpusforge.arrays import I32, I64
from corpusforge.loader import layout
from corpusforge.loader.layout import lay_out, padded_length
from corpusforge.loader.rows import Rows
from corpusforge.trainer.attention import Packed
from corpusforge.trainer.batches import NOTHING, Batch, told_by_bounds

SIZES_STEP = 256
"""Fixed shapes: positions of a batch are a multiple of this. A step's tokens vary by one instance, so it has one such
shape or two; filling up costs 1 % of 16,384 tokens."""

MASKED_STEPS = 64
"""Fixed shapes: masked positions are a multiple of a 64th of all positions, about a tenth of their number."""


def packed_batches(
    rows: Rows,
    budget: int,
    padding_id: int,
    *,
    segments: bool,
    pairs: bool,
    spans: int = 0,
    fixed: bool = False,
    ranks: int = 1,
) -> list[Batch]:
    """Lay the rows of a step end to end in micro-batches of about ``budget`` tokens.

    The other settings are those of `batches.make_batches`; ``fixed``: fill up shapes, so that they hardly change;
    ``ranks``: as many micro-batches for each.
    """
    groups = deal(rows.lengths, budget, ranks)
    sizes = [int(rows.lengths[chosen].sum()) for chosen in groups]
    multiple = SIZES_STEP if fixed else 1
    width = padded_length(max(sizes), multiple)
    made = []
    for chosen, size in zip(groups, sizes, strict=True):  # a handful of micro-batches a step
        members = np.array([len(chosen)])
        laid = lay_out(rows.pick(chosen), members, width if fixed else size, padding_id)
        batch = to_packed_tensors(laid, segments=segments, pairs=pairs, spans=spans)
        made.append(filled_up(batch) if fixed else batch)
    return made


def deal(lengths: I64, budget: int, multiple: int = 1) -> list[I64]:
    """Row numbers of each micro-batch, its longest row first; as few micro-batches as hold ``budget`` tokens each,
    give or take an instance, or a multiple of ``multiple``.

    >>> [rows.tolist() for rows in deal(np.array([8, 16, 8, 16]), 24)]
    [[1, 2], [3, 0]]
    """
    room = max(budget, 1)
    count = padded_length(max(1, -(-(int(lengths.sum()) - int(lengths.max()) + 1) // room)), multiple)
    count = min(len(lengths), count)
    order = np.argsort(-lengths, kind="stable")
    rounds, seats = np.divmod(np.arange(len(order)), count)
    group = np.where(rounds % 2 == 0, seats, count - 1 - seats)  # there and back: who got the longest gets the shortest
    return [order[group == number] for number in range(count)]


def to_packed_tensors(batch: layout.Batch, *, segments: bool, pairs: bool, spans: int = 0) -> Batch:
    """A packed batch of the loader as tensors."""
    segment_ids = batch.segment_ids() if segments else np.zeros(batch.input_ids.shape, np.int64)
    pair_labels = batch.pair_labels if pairs else None
    bounds = batch.cu_seqlens()
    return Batch(
        input_ids=torch.from_numpy(batch.input_ids),
        segment_ids=torch.from_numpy(segment_ids),
        is_real=None,
        masked=torch.from_numpy(batch.masked),
        labels=torch.from_numpy(batch.labels),
        pair_labels=None if pair_labels is None else torch.from_numpy(pair_labels.astype(np.int64)),
        tokens=batch.tokens,
        packed=Packed(
            positions=torch.from_numpy(batch.positions()),
            begins=torch.from_numpy(batch.begins),
            bounds=torch.from_numpy(bounds),
            longest=int(np.diff(bounds).max()),
            runs=_runs(np.diff(bounds)),
        ),
        predicted=len(batch.labels),
        instances=len(batch.lengths),
        **told_by_bounds(batch, spans),
    )


def _runs(sizes: I32) -> tuple[tuple[int, int], ...]:
    """Equal sizes side by side, as (how many, size)."""
    first = np.flatnonzero(np.diff(sizes, prepend=-1))
    counts = np.diff(first, append=len(sizes))
    return tuple(zip(counts.tolist(), sizes[first].tolist(), strict=True))


def filled_up(batch: Batch) -> Batch:
    """The same batch with shapes that other batches of its size have too. Losses are the same, to the bit."""
    packed = batch.packed
    assert packed is not None
    masked = padded_length(max(len(batch.masked), 1), max(1, batch.size // MASKED_STEPS))
    instances = _power_of_two(len(packed.bounds))
    bounds = _to_size(packed.bounds, instances, batch.size)
    longest = _power_of_two(packed.longest)  # kernels read it as a bound; equal for all batches of a length
    begins = _to_size(packed.begins, instances, 0)
    changed: dict[str, Tensor | Packed | None] = {
        "masked": _to_size(batch.masked, masked, 0),
        "labels": _to_size(batch.labels, masked, NOTHING),
        "pair_labels": None if batch.pair_labels is None else _to_size(batch.pair_labels, instances, NOTHING),
        "packed": packed._replace(bounds=bounds, begins=begins, longest=longest),
    }
    if batch.spans is not None and batch.span_labels is not None:
        changed["spans"] = torch.cat([batch.spans, batch.spans.new_zeros(masked - len(batch.spans), 3)])
        changed["span_labels"] = _to_size(batch.span_labels, masked, NOTHING)
    return dataclasses.replace(batch, **changed)  # type: ignore[arg-type]


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _to_size(values: Tensor, size: int, filling: int) -> Tensor:
    return torch.cat([values, values.new_full((size - len(values),), filling)])
