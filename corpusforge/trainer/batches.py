"""Batches: named tensors of a step, cut into micro-batches by tokens, masks drawn or taken from the shards.

Comes in: the pieces a step reads (`order.Stream.step`). Goes out: a list of `Batch`, whose rows together are those
pieces, each once. Rows are sorted by length inside the step and never across steps, so a step stays a uniform sample
of the epoch whatever the micro-batches are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpusforge.instances.masking import Masker
from corpusforge.seeds import U64
from corpusforge.trainer.corpus import Corpus, Ints, Small, flat_positions
from corpusforge.trainer.order import Pieces, Stream

ROUND_TO = 8
"""Rows are padded to a multiple of this, which tensor cores want (NVIDIA, mixed precision training guide)."""


def padded_length(longest: int) -> int:
    """Positions of a batch whose longest row has ``longest`` tokens.

    >>> padded_length(1021)
    1024
    """
    return -(-longest // ROUND_TO) * ROUND_TO


@dataclass(frozen=True)
class Batch:
    """A micro-batch. Axes: B rows, T positions, M masked positions.

    ``masked``: positions whose token is to be predicted, counted through the flattened batch (b * T + t), ascending.
    """

    input_ids: Tensor  # [B, T] int64, as the model sees them
    segment_ids: Tensor  # [B, T] int64
    is_real: Tensor | None  # [B, T] bool, False on padding; None: no padding
    masked: Tensor  # [M] int64
    labels: Tensor  # [M] int64
    pair_labels: Tensor | None  # [B] int64
    tokens: int  # without padding

    @property
    def size(self) -> int:
        """Tokens with padding."""
        return self.input_ids.numel()

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device; from pinned memory without waiting for the copy."""
        return self._with(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> Batch:
        """The same batch in page-locked memory."""
        return self._with(Tensor.pin_memory)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, those that are None left out."""
        held = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: value for name, value in held.items() if isinstance(value, Tensor)}

    def _with(self, change: Callable[[Tensor], Tensor]) -> Batch:
        changed: dict[str, Any] = {name: change(value) for name, value in self.tensors().items()}
        return dataclasses.replace(self, **changed)


@dataclass(frozen=True)
class Rows:
    """Pieces gathered from the shards, end to end. Arrays of one entry a row, a token, or a masked position."""

    ids: npt.NDArray[Any]  # a token
    lengths: Ints  # a row
    first_lengths: Ints  # a row
    keys: U64  # a row
    pair_labels: npt.NDArray[np.int8] | None  # a row
    masked: Ints  # a masked position: its token in ``ids``, ascending
    labels: Ints  # a masked position
    word_starts: npt.NDArray[np.bool_] | None = None  # a token; for masks that are not drawn yet

    @property
    def offsets(self) -> Ints:
        """Where each row begins in ``ids``, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


def gather(corpus: Corpus, pieces: Pieces, chosen: Ints | Small) -> Rows:
    """Read the pieces numbered ``chosen``, with the masks stored in the shards where there are any."""
    rows, shifts, lengths = pieces.rows[chosen], pieces.shifts[chosen], pieces.lengths[chosen].astype(np.int64)
    within, owner = flat_positions(lengths)
    is_last = within == lengths[owner] - 1
    source = np.where(is_last, corpus.lengths[rows][owner] - 1, np.where(within > 0, within + shifts[owner], 0))
    ids = corpus.ids.take(rows, source, owner)
    masked, labels = _stored_masks(corpus, rows, lengths, shifts)
    pair_labels = None if corpus.pair_labels is None else corpus.pair_labels[rows]
    first_lengths = pieces.first_lengths[chosen].astype(np.int64)
    starts = None
    if corpus.word_starts is not None and corpus.masked_positions is None:
        starts = corpus.word_starts.take(rows, source, owner)
    return Rows(ids, lengths, first_lengths, pieces.keys[chosen], pair_labels, masked, labels, starts)


def _stored_masks(corpus: Corpus, rows: Small, lengths: Ints, shifts: Small) -> tuple[Ints, Ints]:
    if corpus.masked_positions is None or corpus.masked_labels is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    within, owner = flat_positions(corpus.masked_positions.count[rows])
    positions = corpus.masked_positions.take(rows, within, owner).astype(np.int64) - shifts[owner]
    labels = corpus.masked_labels.take(rows, within, owner).astype(np.int64)
    stays = (positions >= 1) & (positions < lengths[owner] - 1)  # the rest lies in other pieces
    begins = np.cumsum(lengths) - lengths
    return (begins[owner] + positions)[stays], labels[stays]


def read_step(corpus: Corpus, stream: Stream, step: int, masker: Masker) -> Rows:
    """All rows of a step, masked."""
    parts = []
    for epoch, chosen in stream.step(step):
        rows = gather(corpus, stream.pieces, chosen)
        if corpus.masked_positions is None:
            rows = draw_masks(rows, masker, epoch)
        parts.append(rows)
    return parts[0] if len(parts) == 1 else _joined(parts)


def draw_masks(rows: Rows, masker: Masker, epoch: int) -> Rows:
    """The same rows with the masks of an epoch: at epoch 0 those that static masking would have stored."""
    offsets = rows.offsets
    drawn = masker(rows.ids, offsets, rows.keys, epoch, rows.word_starts)
    counts = np.diff(drawn.position_offsets)
    masked = drawn.positions + np.repeat(offsets[:-1], counts)
    labels = drawn.labels.astype(np.int64)
    return dataclasses.replace(rows, ids=drawn.input_ids, masked=masked, labels=labels, word_starts=None)


def _joined(parts: list[Rows]) -> Rows:
    starts = np.cumsum([0] + [len(p.ids) for p in parts[:-1]])
    shifted = [p.masked + s for p, s in zip(parts, starts, strict=True)]
    pairs = None if parts[0].pair_labels is None else np.concatenate([p.pair_labels for p in parts])  # type: ignore[misc]
    names = ("ids", "lengths", "first_lengths", "keys", "labels")
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
    return Rows(**columns, pair_labels=pairs, masked=np.concatenate(shifted))


def cut_micro_batches(lengths: Ints, budget: int) -> list[Ints]:
    """Row numbers of each micro-batch: longest rows first, at most ``budget`` tokens with padding.

    A micro-batch also ends where that saves padding worth an eighth of the budget; more, smaller ones cost a GPU more
    than the padding does.

    >>> [rows.tolist() for rows in cut_micro_batches(np.array([8, 16, 8, 16]), 32)]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(-lengths, kind="stable")
    sizes = -(-lengths[order] // ROUND_TO) * ROUND_TO
    groups, at = [], 0
    while at < len(order):  # a handful of micro-batches a step
        end = min(len(order), at + max(1, budget // int(sizes[at])))
        saved = (sizes[at] - sizes[at:end]) * (end - np.arange(at, end))
        best = int(saved.argmax())
        if saved[best] * 8 >= budget:
            end = at + best
        groups.append(order[at:end])
        at = end
    return groups


def make_batches(rows: Rows, budget: int, padding_id: int, *, segments: bool, pairs: bool) -> list[Batch]:
    """Pad the rows of a step into micro-batches.

    ``segments``: number segment B with 1 (else all 0); ``pairs``: hand out pair labels.
    """
    masked_row = np.searchsorted(rows.offsets, rows.masked, side="right") - 1
    bounds = np.searchsorted(masked_row, np.arange(len(rows.lengths) + 1))
    return [
        _padded(rows, chosen, bounds, padding_id, segments, pairs) for chosen in cut_micro_batches(rows.lengths, budget)
    ]


def _padded(rows: Rows, chosen: Ints, bounds: Ints, padding_id: int, segments: bool, pairs: bool) -> Batch:
    lengths = rows.lengths[chosen]
    B, T = len(chosen), padded_length(int(lengths.max()))
    within, owner = flat_positions(lengths)
    input_ids = np.full((B, T), padding_id, np.int64)
    input_ids[owner, within] = rows.ids[rows.offsets[chosen][owner] + within]
    steps = np.arange(T)
    is_real = None if int(lengths.min()) == T else steps < lengths[:, None]
    segment_ids = np.zeros((B, T), np.int64)
    if segments:
        segment_ids[(steps >= rows.first_lengths[chosen][:, None]) & (steps < lengths[:, None])] = 1
    nth, row = flat_positions(bounds[chosen + 1] - bounds[chosen])
    source = bounds[chosen][row] + nth
    masked = row * T + rows.masked[source] - rows.offsets[chosen][row]
    pair_labels = None
    if pairs and rows.pair_labels is not None:
        pair_labels = torch.from_numpy(rows.pair_labels[chosen].astype(np.int64))
    return Batch(
        torch.from_numpy(input_ids),
        torch.from_numpy(segment_ids),
        None if is_real is None else torch.from_numpy(is_real),
        torch.from_numpy(masked),
        torch.from_numpy(rows.labels[source].astype(np.int64)),
        pair_labels,
        int(lengths.sum()),
    )
