"""Batches of rows that are already in memory, laid out as the loader does."""

from __future__ import annotations

import dataclasses

import numpy as np

from corpusforge.arrays import I64, offsets_of, ranges
from corpusforge.loader.corpus import Rows
from corpusforge.loader.layout import Batch, lay_out
from corpusforge.loader.packing import BatchSettings


def laid_out(rows: Rows, settings: BatchSettings, padding_id: int) -> list[Batch]:
    """The micro-batches of a step that reads these rows."""
    groups = settings.groups(rows.lengths)
    return [lay_out(picked(rows, group.rows), group.members, group.width, padding_id) for group in groups]


def picked(rows: Rows, chosen: I64) -> Rows:
    """The rows ``chosen``, in this order, with their masks."""
    offsets, lengths = rows.offsets, rows.lengths[chosen]
    bounds = np.searchsorted(rows.masked, offsets)
    counts = np.diff(bounds)[chosen]
    source = ranges(bounds[chosen], counts)
    shifts = np.repeat(offsets_of(lengths)[:-1] - offsets[chosen], counts)
    return dataclasses.replace(
        rows,
        ids=rows.ids[ranges(offsets[chosen], lengths)],
        lengths=lengths,
        first_lengths=rows.first_lengths[chosen],
        keys=rows.keys[chosen],
        pair_labels=None if rows.pair_labels is None else rows.pair_labels[chosen],
        masked=rows.masked[source] + shifts,
        labels=rows.labels[source],
        span_sides=None if rows.span_sides is None else rows.span_sides[source] + shifts[:, None],
    )
