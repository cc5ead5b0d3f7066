"""Rows: instances and their pieces gathered from the shards, end to end, masks drawn or taken from the shards.

Comes in: the numbers of instances, or of pieces of them. Goes out: `Rows`, flat arrays without padding. Decision:
masks are drawn for all rows that were gathered together, and laid out as batches later (`layout`), because a mask
depends on (seed, epoch, instance) and on nothing that lies beside it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusforge.arrays import I32, I64, U64, Bools, offsets_of, ranges
from corpusforge.instances.masking import Masked, Masker
from corpusforge.loader.corpus import Corpus, flat_positions
from corpusforge.loader.order import Pieces, Stream


@dataclass(frozen=True)
class Rows:
    """Instances or pieces, end to end. Arrays of one entry a row, a token, or a masked position."""

    ids: npt.NDArray[Any]  # a token
    lengths: I64  # a row
    first_lengths: I64  # a row
    keys: U64  # a row
    pair_labels: npt.NDArray[np.int8] | None  # a row
    masked: I64  # a masked position: its token in ``ids``, ascending
    labels: npt.NDArray[Any]  # a masked position
    word_starts: Bools | None = None  # a token; for masks that are not drawn yet
    span_sides: I64 | None = None  # a masked position: the tokens in front of its span and behind it, [M, 2]

    @property
    def offsets(self) -> I64:
        """Where each row begins in ``ids``, and the end of the last."""
        return offsets_of(self.lengths)

    def parts(self, bounds: I64) -> list[Rows]:
        """Runs of rows, masked already: part k is of the rows ``[bounds[k], bounds[k + 1])``. Views, no copies."""
        tokens = self.offsets[bounds]
        masks = np.searchsorted(self.masked, tokens)
        found = []
        for (a, b), (t, u), (m, n) in zip(pairwise(bounds), pairwise(tokens), pairwise(masks), strict=True):
            pairs = None if self.pair_labels is None else self.pair_labels[a:b]
            firsts, keys, masked = self.first_lengths[a:b], self.keys[a:b], self.masked[m:n] - t
            sides = None if self.span_sides is None else self.span_sides[m:n] - t
            ids, lengths, labels = self.ids[t:u], self.lengths[a:b], self.labels[m:n]
            found.append(Rows(ids, lengths, firsts, keys, pairs, masked, labels, span_sides=sides))
        return found

    def pick(self, chosen: I64) -> Rows:
        """Some of the rows, masked already, in the order of ``chosen``."""
        offsets, lengths = self.offsets, self.lengths[chosen]
        bounds = np.searchsorted(self.masked, offsets)
        counts = np.diff(bounds)[chosen]
        source = ranges(bounds[chosen], counts)
        shifts = np.repeat(offsets_of(lengths)[:-1] - offsets[chosen], counts)
        return dataclasses.replace(
            self,
            ids=self.ids[ranges(offsets[chosen], lengths)],
            lengths=lengths,
            first_lengths=self.first_lengths[chosen],
            keys=self.keys[chosen],
            pair_labels=None if self.pair_labels is None else self.pair_labels[chosen],
            masked=self.masked[source] + shifts,
            labels=self.labels[source],
            span_sides=None if self.span_sides is None else self.span_sides[source] + shifts[:, None],
        )


def gather_whole(corpus: Corpus, chosen: I64 | I32, *, word_starts: bool) -> Rows:
    """Read whole instances, with the masks stored in the shards where there are any; ``word_starts``: those too."""
    lengths = corpus.lengths[chosen].astype(np.int64)
    masked, labels = np.zeros(0, np.int64), np.zeros(0, np.int64)
    starts = None
    if corpus.masked_positions is not None and corpus.masked_labels is not None:
        counts = corpus.masked_positions.count[chosen]
        masked = corpus.masked_positions.whole(chosen) + np.repeat(offsets_of(lengths)[:-1], counts)
        labels = corpus.masked_labels.whole(chosen)
    elif corpus.word_starts is not None and word_starts:
        starts = corpus.word_starts.whole(chosen)
    return Rows(
        ids=corpus.ids.whole(chosen),
        lengths=lengths,
        first_lengths=corpus.first_lengths[chosen].astype(np.int64),
        keys=corpus.keys[chosen],
        pair_labels=None if corpus.pair_labels is None else corpus.pair_labels[chosen],
        masked=masked,
        labels=labels,
        word_starts=starts,
    )


def gather(corpus: Corpus, pieces: Pieces, chosen: I64 | I32) -> Rows:
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


def _stored_masks(corpus: Corpus, rows: I32, lengths: I64, shifts: I32) -> tuple[I64, I64]:
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


def draw_masks(rows: Rows, masker: Masker, epoch: int | U64) -> Rows:
    """The same rows with the masks of an epoch (one, or one a row): at epoch 0 those that static masking stores."""
    offsets = rows.offsets
    drawn = masker(rows.ids, offsets, rows.keys, epoch, rows.word_starts)
    counts = np.diff(drawn.position_offsets)
    masked = drawn.positions + np.repeat(offsets[:-1], counts)
    sides = _sides(drawn, offsets) if masker.settings.unit == "span" else None
    found: dict[str, Any] = {"ids": drawn.input_ids, "masked": masked, "labels": drawn.labels, "span_sides": sides}
    return dataclasses.replace(rows, **found, word_starts=None)


def _sides(drawn: Masked, offsets: I64) -> I64 | None:
    """The tokens on both sides of the span that each masked position is in; spans are in the order of positions."""
    if drawn.spans is None or drawn.span_offsets is None:
        return None
    spans = drawn.spans + np.repeat(offsets[:-1], np.diff(drawn.span_offsets))[:, None]
    return np.repeat(spans - np.array([1, 0]), spans[:, 1] - spans[:, 0], axis=0)


def _joined(parts: list[Rows]) -> Rows:
    starts = np.cumsum([0] + [len(p.ids) for p in parts[:-1]])
    shifted = [p.masked + s for p, s in zip(parts, starts, strict=True)]
    pairs = None if parts[0].pair_labels is None else np.concatenate([p.pair_labels for p in parts])  # type: ignore[misc]
    names = ("ids", "lengths", "first_lengths", "keys", "labels")
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
    sides = [p.span_sides + s for p, s in zip(parts, starts, strict=True) if p.span_sides is not None]
    spans = np.concatenate(sides) if sides else None  # the masker says whether there are any: for all parts or none
    return Rows(**columns, pair_labels=pairs, masked=np.concatenate(shifted), span_sides=spans)
