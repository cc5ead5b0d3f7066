"""The layout of a batch: rows of instances as the rectangles a model reads.

Arrays are ``[B, T]`` with padding at the end of each row. A row holds one instance, or several one after another
(packed). A batch holds the beginnings and lengths of its instances; segment ids, positions that restart, boundaries and
dense labels are computed from them on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusforge.arrays import I32, I64, U64, Bools, offsets_of
from corpusforge.loader.corpus import Rows


@dataclass(frozen=True)
class Batch:
    """B rows of T positions, N instances, M masked positions; N = B unless rows are packed.

    Places (``begins``, ``masked``) are counted through the flattened batch: row b, position t is ``b * T + t``.
    """

    input_ids: npt.NDArray[Any]  # [B, T], as the model sees them
    begins: I64  # [N] place of each instance's first token, ascending
    lengths: I64  # [N] tokens of each instance
    first_lengths: I64  # [N] of these, of segment A with [CLS] and its [SEP]
    masked: I64  # [M] places whose token is to be predicted, ascending
    labels: npt.NDArray[Any]  # [M] the tokens to predict there
    pair_labels: npt.NDArray[np.int8] | None  # [N]; None: not a pair format
    keys: U64  # [N] which instance each is: `seeds.instance_keys` of its document and index
    epochs: I64  # [N] the epoch each is read in
    step: int = 0  # the step of the batch, from 0
    number: int = 0  # its number among the micro-batches of the step
    is_packed: bool = False  # a row may hold several instances
    span_sides: I64 | None = None  # [M, 2] places before a position's span and after it; None: no spans

    @property
    def tokens(self) -> int:
        """Tokens without padding."""
        return int(self.lengths.sum())

    @property
    def size(self) -> int:
        """Tokens with padding."""
        return self.input_ids.size

    @property
    def longest(self) -> int:
        """Tokens of the longest instance."""
        return int(self.lengths.max())

    def is_real(self) -> Bools:
        """False on padding, ``[B, T]``."""
        B, T = self.input_ids.shape
        if len(self.lengths) == B:
            return np.arange(T, dtype=np.int32) < self.lengths.astype(np.int32)[:, None]
        return self._spread([self.lengths], [True], False, np.bool_)

    def segment_ids(self) -> I64:
        """1 on segment B, else 0, ``[B, T]``."""
        return self._spread([self.first_lengths, self.lengths - self.first_lengths], [0, 1], 0, np.int64)

    def positions(self) -> I64:
        """Positions that begin with 0 in every instance; 0 on padding, ``[B, T]``."""
        places = np.arange(self.size).reshape(self.input_ids.shape)
        begins = self._spread([self.lengths], [self.begins], -1, np.int64)
        return np.where(begins < 0, 0, places - begins)

    def instance_numbers(self) -> I32:
        """Which instance of the batch each position is of, from 1; 0 on padding, ``[B, T]``."""
        return self._spread([self.lengths], [np.arange(1, len(self.lengths) + 1)], 0, np.int32)

    def cu_seqlens(self) -> I32:
        """Boundaries in the flattened batch, as kernels of variable-length attention read them: from 0 to ``size``.

        Between two boundaries lies an instance or the padding of a row, which may attend to itself. The padding may be
        the longest of them, so a kernel's ``max_seqlen`` is the largest step of these, not `longest`.
        """
        ends = self.begins + self.lengths
        edges = np.concatenate((self.begins, ends, [0, self.size], np.arange(0, self.size, self.input_ids.shape[1])))
        return np.unique(edges).astype(np.int32)

    def dense_labels(self, ignore: int = -100) -> I64:
        """The label at each masked position and ``ignore`` elsewhere, ``[B, T]``."""
        dense = np.full(self.size, ignore, np.int64)
        dense[self.masked] = self.labels
        return dense.reshape(self.input_ids.shape)

    def _spread(self, sizes: list[I64], values: list[Any], rest: Any, kind: Any) -> npt.NDArray[Any]:
        """A value for each place: the parts of every instance have ``sizes`` and ``values``, padding has ``rest``."""
        gaps = np.diff(self.begins, append=self.size) - self.lengths
        count = len(self.lengths)
        table = np.empty((count, len(sizes) + 1), kind)
        runs = np.empty(table.shape, np.int64)
        for column, (size, value) in enumerate(zip([*sizes, gaps], [*values, rest], strict=True)):
            runs[:, column], table[:, column] = size, value
        return np.repeat(table.ravel(), runs.ravel()).reshape(self.input_ids.shape)


def lay_out(
    rows: Rows,
    members: I64 | None,
    width: int,
    padding_id: int,
    kind: type[Any] = np.int64,
    *,
    epochs: I64 | None = None,
) -> Batch:
    """Instances as a batch of ``width`` positions. ``members``: how many of them each row of it holds; None: one.

    ``kind``: of the integers; ``epochs``: of the instances (None: 0).
    """
    offsets = rows.offsets
    each = np.ones(len(rows.lengths), np.int64) if members is None else members
    ends = offsets[offsets_of(each)]
    used, count = np.diff(ends), len(each)
    if int(used.min()) == width:
        input_ids = rows.ids.reshape(count, width).astype(kind)
    else:
        input_ids = np.full((count, width), padding_id, kind)
        input_ids[np.arange(width, dtype=np.int32) < used.astype(np.int32)[:, None]] = rows.ids
    shifts = np.arange(count) * width - ends[:-1]
    mask_shifts = np.repeat(shifts, np.diff(np.searchsorted(rows.masked, ends)))
    return Batch(
        input_ids=input_ids,
        begins=offsets[:-1] + np.repeat(shifts, each),
        lengths=rows.lengths,
        first_lengths=rows.first_lengths,
        masked=rows.masked + mask_shifts,
        labels=rows.labels.astype(kind),
        pair_labels=rows.pair_labels,
        keys=rows.keys,
        epochs=np.zeros(len(rows.lengths), np.int64) if epochs is None else epochs,
        is_packed=members is not None,
        span_sides=None if rows.span_sides is None else rows.span_sides + mask_shifts[:, None],
    )
