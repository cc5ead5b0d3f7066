"""Cut spans that an earlier one resembles: the last pass of `near-spans` over a document shard.

Comes in: a document shard, its rows of ``spans/`` and of ``compared/``. Goes out: ``documents/`` and ``repeats/``, by
the rules of exact spans (`dedupe.cut`). The one decision: each sentence of a span that goes is shown beside the
sentence at the same place of the span that it resembles, with the similarity of the two spans.
"""

from __future__ import annotations

import dataclasses

from corpusforge.arrays import F32, U64
from corpusforge.dedupe.exact_spans import CutWork
from corpusforge.dedupe.pairs import read_compared

METHOD = "near-spans"


@dataclasses.dataclass(frozen=True)
class CutNearWork(CutWork):
    """As `CutWork`, with what `near.CompareWork` found; ``cuts`` and ``rounds`` are not used."""

    method: str = METHOD

    def losers_of(self, unit: int) -> tuple[U64, U64, F32]:
        """Places of the spans of a unit that go, ascending, of what they resemble, and how similar they are."""
        return read_compared(self.folder, unit)
