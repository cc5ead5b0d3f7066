"""Bytes around anchors: what the searches for personal data look at.

Comes in: the UTF-8 bytes of many documents and places in them. Goes out: the bytes before and behind, never those of
another document. The one decision: what lies outside of a document reads as 0, so that no search asks where it ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusforge.arrays import I64, U8
from corpusforge.text import bytes_in

DIGIT = bytes_in(range(0x30, 0x3A))
ALPHA = bytes_in(range(0x41, 0x5B), range(0x61, 0x7B))
ALNUM = DIGIT | ALPHA


class Reader(NamedTuple):
    """Bytes of a column whose document i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: U8
    offsets: I64

    def edges(self, where: I64) -> tuple[I64, I64]:
        """First byte of the document that each place lies in, and the one behind its last."""
        document = np.searchsorted(self.offsets, where, "right") - 1
        return self.offsets[document], self.offsets[document + 1]

    def byte(self, where: I64, low: I64, high: I64) -> U8:
        """The bytes at some places; 0 outside of [low, high)."""
        inside = (where >= low) & (where < high)
        return np.asarray(self.data[np.where(inside, where, 0)] * inside)

    def window(self, first: I64, step: int, width: int, low: I64, high: I64) -> U8:
        """``width`` bytes from each place on, forwards (step 1) or backwards (-1), one row each."""
        return self.byte(first[:, None] + step * np.arange(width), low[:, None], high[:, None])
