"""Which pages stay, once every line is judged.

Comes in: `lines.Judged`. Goes out: one code a page. The order is that of tensorflow-datasets 4.9.10: a page too long is
dropped unread; else the first line that takes its page decides; else the page needs enough sentences in kept lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.clean import lines as line_rules
from corpusforge.clean.lines import Judged
from corpusforge.clean.rules import Rules
from corpusforge.clean.sentences import SentenceCounter
from corpusforge.text import I64

KEPT, TOO_LONG, LOREM_IPSUM, CURLY_BRACE, NO_LINES, FEW_SENTENCES, LANGUAGE, BADWORD = range(8)

REASONS = (
    "kept",
    "page:too-long",
    "page:lorem-ipsum",
    "page:curly-brace",
    "page:no-lines",
    "page:few-sentences",
    "page:language",
    "page:badword",
)
"""Reason of each code. C4 counts ``page:no-lines`` among pages with too few sentences."""

Codes = npt.NDArray[np.int8]

_FROM_LINE = {line_rules.LOREM_IPSUM: LOREM_IPSUM, line_rules.CURLY_BRACE: CURLY_BRACE}


class Pages(NamedTuple):
    """``codes``: one a page. ``counts``: lines that no rule took. ``kept``: numbers of the kept lines of kept pages,
    ascending. ``deciding``: number of the line that took its page, or -1."""

    codes: Codes
    counts: I64
    kept: I64
    deciding: I64


def too_long(text: pa.StringArray, limit: int) -> npt.NDArray[np.bool_]:
    """Which pages have more than ``limit`` characters (0: none)."""
    if not limit:
        return np.zeros(len(text), bool)
    return np.asarray(pc.greater(pc.utf8_length(text), limit), bool)


def judge_pages(judged: Judged, rules: Rules, counter: SentenceCounter) -> Pages:
    """Judge every page by its lines."""
    offsets, codes = judged.lines.offsets, np.full(len(judged.lines.offsets) - 1, KEPT, np.int8)
    kept_lines = judged.codes == line_rules.KEPT
    before = np.concatenate([[0], np.cumsum(kept_lines)])
    counts = before[offsets[1:]] - before[offsets[:-1]]
    few = (counts < rules.min_sentences) & (counts > 0)
    codes[counts == 0] = NO_LINES
    deciding = _take_pages(judged, codes)
    asked = np.flatnonzero(few & (codes == KEPT))
    if len(asked):
        numbers = _lines_of(asked, offsets, kept_lines)
        texts = judged.texts_of(numbers)
        inner = np.concatenate([[0], np.cumsum(counts[asked])])
        codes[asked[~counter.enough(texts, inner, rules.min_sentences)]] = FEW_SENTENCES
    if not rules.min_sentences:
        codes[codes == NO_LINES] = KEPT
    page_of = np.repeat(np.arange(len(codes)), np.diff(offsets))
    return Pages(codes, counts, np.flatnonzero(kept_lines & (codes[page_of] == KEPT)), deciding)


def _take_pages(judged: Judged, codes: Codes) -> I64:
    """Set the codes of pages that one of their lines takes; returns the number of that line, or -1."""
    deciding = np.full(len(codes), -1, np.int64)
    takers = np.flatnonzero(np.isin(judged.codes, list(_FROM_LINE)))
    pages, first = np.unique(np.searchsorted(judged.lines.offsets, takers, "right") - 1, return_index=True)
    deciding[pages] = takers[first]
    for line_code, page_code in _FROM_LINE.items():
        codes[pages[judged.codes[takers[first]] == line_code]] = page_code
    return deciding


def _lines_of(pages: I64, offsets: I64, kept_lines: npt.NDArray[np.bool_]) -> I64:
    """Numbers of the kept lines of some pages, in order."""
    chosen = np.zeros(len(offsets) - 1, bool)
    chosen[pages] = True
    return np.flatnonzero(np.repeat(chosen, np.diff(offsets)) & kept_lines)


def join_lines(judged: Judged, pages: Pages) -> pa.StringArray:
    """The text of every page: its kept lines joined by "\\n" and stripped; "" where nothing was kept."""
    texts = judged.texts_of(pages.kept)
    bounds = np.searchsorted(pages.kept, judged.lines.offsets).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(bounds, texts), "\n")
    return pc.utf8_trim_whitespace(joined) if judged.cited else joined
