"""Texts of a fine-tuning task as token ids, and padded batches of them.

Comes in: one or two texts an example and the tokenizer of a checkpoint. Goes out: `Encoded`, flat arrays; `padded`
makes tensors of some of its rows. Decision: texts are encoded once and before training, so every seed and epoch reads
the same ids; a pair that is too long loses tokens of its longer text (google-research/bert `run_classifier.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpusforge.arrays import I32, I64, offsets_of, ranges
from corpusforge.loader.packing import padded_length
from corpusforge.trainer.model import Architecture


@dataclass(frozen=True)
class Encoded:
    """Examples as ids, flat: example i owns ``ids[offsets[i]:offsets[i + 1]]``. ``truncated``: how many were cut."""

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
        """``input_ids``, ``segment_ids``, ``is_real`` of some examples, as `model.Encoder.encode` takes them."""
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
        """Rows in groups of about equal length, at most ``batch_tokens`` with padding; each row once."""
        order = np.argsort(-self.lengths, kind="stable")
        begin = 0
        while begin < len(order):  # one step a batch
            size = max(1, batch_tokens // padded_length(int(self.lengths[order[begin]])))
            yield order[begin : begin + size]
            begin += size


def encode(tokenizer: Any, texts: Sequence[Sequence[str]], longest: int) -> Encoded:
    """Encode columns of texts, one or two of them, with special tokens, to at most ``longest`` tokens."""
    tokenizer.enable_truncation(longest, strategy="longest_first")
    inputs = list(texts[0]) if len(texts) == 1 else list(zip(*texts, strict=True))
    made = tokenizer.encode_batch(inputs)  # the library hands out one object an example
    offsets = offsets_of(np.array([len(encoding.ids) for encoding in made], np.int64))
    ids, segments = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int8)
    for encoding, begin, end in zip(made, offsets, offsets[1:], strict=False):
        ids[begin:end], segments[begin:end] = encoding.ids, encoding.type_ids
    return Encoded(ids, segments, offsets, sum(bool(encoding.overflowing) for encoding in made))
