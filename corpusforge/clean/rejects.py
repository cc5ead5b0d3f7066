"""What was dropped, as rows: one a dropped page, one a dropped line of a kept page.

Comes in: an `Outcome`. Goes out: a REJECTS batch in the order of the documents and their lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.clean import lines as line_rules
from corpusforge.clean import pages as page_rules
from corpusforge.clean.lines import Judged
from corpusforge.schemas import REJECTS
from corpusforge.text import I64, byte_slices

Tallies = dict[str, dict[str, int]]
"""As in `shards`: ``{reason: {"rows": n, "bytes": n}}``."""

_NAMES = (*line_rules.REASONS, *page_rules.REASONS)
"""Dictionary of the column ``reason``: line codes first, then page codes."""


class Outcome(NamedTuple):
    """What became of a batch.

    ``documents``: as they came. ``read``: numbers of those whose lines were judged (all but pages too long).
    ``codes``: page code of every document. ``details``: ``{document number: text}``. ``judged``: lines of ``read``.
    """

    documents: pa.RecordBatch
    read: I64
    codes: page_rules.Codes
    details: dict[int, str]
    judged: Judged

    def dropped_lines(self) -> I64:
        """Numbers of the lines that were dropped from pages that stay."""
        stays = self.codes[self.read] == page_rules.KEPT
        of_kept = np.repeat(stays, np.diff(self.judged.lines.offsets))
        return np.flatnonzero(of_kept & (self.judged.codes != line_rules.KEPT))


def rejects_of(outcome: Outcome) -> pa.RecordBatch:
    """All dropped pages and lines of a batch."""
    documents, judged = outcome.documents, outcome.judged
    pages, lines = np.flatnonzero(outcome.codes != page_rules.KEPT), outcome.dropped_lines()
    local = np.searchsorted(judged.lines.offsets, lines, "right") - 1
    owners = np.concatenate([pages, outcome.read[local]])
    # No document has both kinds of rows, so a stable sort by document leaves lines in their order.
    order = pa.array(np.argsort(owners, kind="stable"))
    numbers = pa.array(lines - judged.lines.offsets[local], pa.int32())
    reasons = np.concatenate([outcome.codes[pages] + len(line_rules.REASONS), judged.codes[lines]])
    texts = byte_slices(judged.lines.data, judged.lines.starts[lines], judged.lines.stops[lines])
    details = pa.array([outcome.details.get(page) for page in pages.tolist()], pa.string())
    columns = {name: documents[name].take(pa.array(owners)) for name in ("url", "source", "position")}
    columns |= {
        "document": documents["id"].take(pa.array(owners)),
        "line": pa.concat_arrays([pa.nulls(len(pages), pa.int32()), numbers]),
        "reason": pa.DictionaryArray.from_arrays(pa.array(reasons, pa.int16()), pa.array(_NAMES)),
        "detail": pa.concat_arrays([details, _line_details(judged, lines)]),
        "text": pa.concat_arrays([documents["text"].take(pa.array(pages)), texts]),
    }
    return pa.record_batch([columns[name].take(order) for name in REJECTS.names], schema=REJECTS)


def _line_details(judged: Judged, lines: I64) -> pa.StringArray:
    """``"4 words"`` for lines with few of them."""
    counts = pa.array(judged.words[lines]).cast(pa.string())
    words = pc.if_else(pc.equal(counts, "1"), "1 word", pc.binary_join_element_wise(counts, "words", " "))
    few = judged.codes[lines] == line_rules.FEW_WORDS
    return pc.if_else(pa.array(few), words, pa.scalar(None, pa.string()))


def tallies_of(outcome: Outcome) -> Tallies:
    """Rows and bytes per reason of a batch; ``bytes`` of the page as it came, or of the stripped line."""
    pages, lines = outcome.codes != page_rules.KEPT, outcome.dropped_lines()
    sizes = np.asarray(pc.binary_length(outcome.documents["text"]))
    spans = outcome.judged.lines.stops[lines] - outcome.judged.lines.starts[lines]
    tallies = _sums(outcome.codes[pages], sizes[pages], page_rules.REASONS)
    return tallies | _sums(outcome.judged.codes[lines], spans, line_rules.REASONS)


def _sums(codes: npt.NDArray[np.int8], sizes: npt.NDArray[np.integer], names: tuple[str, ...]) -> Tallies:
    rows = np.bincount(codes, minlength=len(names))
    total = np.zeros(len(names), np.int64)
    np.add.at(total, codes, sizes)
    return {names[c]: {"rows": int(rows[c]), "bytes": int(total[c])} for c in np.flatnonzero(rows).tolist()}
