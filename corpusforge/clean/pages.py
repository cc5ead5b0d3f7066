"""Which pages stay, by their length and paragraphs, and once every line is judged by their lines.

Comes in: a column of texts, or `lines.Judged`. Goes out: one code a page. The order is that of tensorflow-datasets
4.9.10: a page too long, or without paragraphs, is dropped unread; else the first line that takes its page decides;
else the page needs enough sentences in kept lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, Bools
from corpusforge.clean import lines as line_rules
from corpusforge.clean.lines import Judged
from corpusforge.clean.phrases import Phrases
from corpusforge.clean.rules import Rules
from corpusforge.clean.step import KEPT, Codes
from corpusforge.sentences.counter import SentenceCounter
from corpusforge.text import byte_slices, text_bytes

TOO_LONG, FEW_PARAGRAPHS, LOREM_IPSUM, CURLY_BRACE, BADWORD, NO_LINES, FEW_SENTENCES = range(1, 8)

REASONS = (
    "kept",
    "page:too-long",
    "page:few-paragraphs",
    "page:lorem-ipsum",
    "page:curly-brace",
    "page:badword",
    "page:no-lines",
    "page:few-sentences",
)
"""Reason of each code. C4 counts ``page:no-lines`` among pages with too few sentences."""

_FROM_LINE = {
    line_rules.LOREM_IPSUM: LOREM_IPSUM,
    line_rules.CURLY_BRACE: CURLY_BRACE,
    line_rules.BADWORD: BADWORD,
}


class Pages(NamedTuple):
    """``codes``: one a page. ``counts``: lines that no rule took. ``kept``: numbers of the kept lines of kept pages,
    ascending. ``deciding``: number of the line that took its page, or -1."""

    codes: Codes
    counts: I64
    kept: I64
    deciding: I64


def judge_whole(text: pa.StringArray, rules: Rules) -> Codes:
    """Judge every page as it came: its length, its paragraphs, and phrases where they count anywhere."""
    codes = np.full(len(text), KEPT, np.int8)
    # Later rules first, so that earlier ones have the last word.
    if rules.phrases_anywhere:
        phrases = Phrases(text)
        codes[phrases.holding(rules.curly_brace)] = CURLY_BRACE
        codes[phrases.holding_lowered(rules.lorem_ipsum)] = LOREM_IPSUM
    if rules.min_paragraphs:
        few = count_paragraphs(text, rules.min_paragraph_characters) < rules.min_paragraphs
        codes[few] = FEW_PARAGRAPHS
    codes[too_long(text, rules.max_page_characters)] = TOO_LONG
    return codes


def too_long(text: pa.StringArray, limit: int) -> Bools:
    """Which pages have more than ``limit`` characters (0: none)."""
    if not limit:
        return np.zeros(len(text), bool)
    return np.asarray(pc.greater(pc.utf8_length(text), limit), bool)


def count_paragraphs(text: pa.StringArray, characters: int) -> I64:
    """Lines of each text, cut at "\\n" only and not stripped, that have so many characters or more."""
    data, offsets = text_bytes(text)
    ends = np.flatnonzero(data[offsets[0] : offsets[-1]] == 0x0A) + offsets[0]
    owners = np.concatenate([np.searchsorted(offsets, ends, "right") - 1, np.arange(len(text))])
    stops = np.concatenate([ends, offsets[1:]])  # every line ends at a line feed or with its document
    order = np.lexsort((stops, owners))
    owners, stops = owners[order], stops[order]
    starts = np.concatenate([[0], stops[:-1] + 1])
    first = np.searchsorted(owners, np.arange(len(text)))
    starts[first] = offsets[:-1]
    likely = np.flatnonzero(stops - starts >= characters)  # bytes are never fewer than characters
    lengths = np.asarray(pc.utf8_length(byte_slices(data, starts[likely], stops[likely])))
    return np.bincount(owners[likely[lengths >= characters]], minlength=len(text))


def judge_pages(judged: Judged, rules: Rules, counter: SentenceCounter) -> Pages:
    """Judge every page by its lines."""
    offsets, codes = judged.lines.offsets, np.full(len(judged.lines.offsets) - 1, KEPT, np.int8)
    kept_lines = judged.codes == KEPT
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


def _lines_of(pages: I64, offsets: I64, kept_lines: Bools) -> I64:
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
