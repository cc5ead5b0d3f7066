"""Cut spans that an earlier one resembles: the last pass of `near-spans` over a document shard.

Comes in: a document shard, its rows of ``spans/`` and of ``compared/``. Goes out: ``documents/`` and ``repeats/``, by
the rules of exact spans (`dedupe.cut`). The one decision: each sentence of a span that goes is shown beside the
sentence at the same place of the span that it resembles, with the similarity of the two spans.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from corpusforge.dedupe.cut import Cuts, cut_sentences
from corpusforge.dedupe.spans import row_of
from corpusforge.text import I64
from corpusforge.work.dedupe import CutWork, span_path
from corpusforge.work.near import read_compared
from corpusforge.work.places import locate

METHOD = "near-spans"


@dataclasses.dataclass(frozen=True)
class CutNearWork(CutWork):
    """As `CutWork`, with what `near.CompareWork` found; ``cuts`` and ``rounds`` are not used."""

    method: str = METHOD

    def cuts_from(self, unit: int, first: int) -> tuple[Cuts, I64]:
        """The sentences of a unit to cut from row ``first`` on, and the rows of all spans that go."""
        later, earlier, similarities = read_compared(self.folder, unit)
        rows = row_of(later)
        cut_rows, places = cut_sentences(rows, earlier, self.span_sentences)
        alike = similarities[np.searchsorted(rows, cut_rows, "right") - 1]
        behind = int(np.searchsorted(cut_rows, first))  # what is written already need not be located again
        cut_rows, places, alike = cut_rows[behind:], places[behind:], alike[behind:]
        return Cuts(cut_rows, places, *locate(places, functools.partial(span_path, self.folder)), alike), rows
