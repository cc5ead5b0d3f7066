"""The step of packs of the kind "c4": drop lines and pages by the rules of one of the cleaners called C4.

The order is that of tensorflow-datasets 4.9.10: a page that is too long or without paragraphs is dropped unread; then
every line is judged (`c4_lines`), and the first line whose rule drops the page decides; then the page needs enough
sentences in kept lines. A pack without rules about lines (mC4) does not change the text of a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, Bools, offsets_of
from corpusforge.clean import c4_lines as line_rules
from corpusforge.clean.badwords import Badwords, load_badwords
from corpusforge.clean.c4_lines import Judged, Phrases, Rules, judge_lines
from corpusforge.clean.pack import PackStep
from corpusforge.clean.step import KEPT, Codes, DroppedLines, FieldsOnly, LineCounts, Verdict
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


@dataclass(frozen=True)
class C4Step(FieldsOnly, PackStep):
    """Applies a pack of the kind "c4". ``sentences``: "punkt" or "builtin"; ``badwords``: where the lists are, for
    packs that look for bad words in lines ("fetched", "off", a folder)."""

    rules: Rules
    sentences: str = "punkt"
    badwords: str = "off"

    def check(self) -> None:
        """Raises `errors.ResourceMissing` if Punkt or the list is needed and not on this machine."""
        if self.rules.min_sentences:
            self._counter.check()
        if self.rules.badwords_in_lines:
            _ = self._words

    def resources(self) -> dict[str, Any]:
        """The pack's own values, the sentence counter and the list of bad words."""
        resources = super().resources()
        if self.rules.min_sentences:
            resources["sentences"] = self._counter.identity()
        if self.rules.badwords_in_lines:
            resources["badwords"] = self._words.digest() if self._words else "off"
        return resources

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Judge whole pages, then lines, then pages by their lines."""
        texts = documents["text"]
        codes = judge_whole(texts, self.rules)
        read = codes == KEPT  # pages whose lines are judged
        details = {} if read.all() else _details_of_whole(texts, codes, self.rules)
        if not self.rules.judges_lines:
            return Verdict(REASONS, codes, texts, details)
        numbers = np.flatnonzero(read)
        inner = texts if read.all() else texts.filter(pa.array(read))
        judged = judge_lines(inner, self.rules, self._has_badword if self.rules.badwords_in_lines else None)
        pages = judge_pages(judged, self.rules, self._counter)
        codes[numbers] = pages.codes
        for page in np.flatnonzero(pages.codes != KEPT).tolist():
            self._explain(judged, pages, page, int(numbers[page]), details)
        joined = join_lines(judged, pages)
        if not read.all():
            joined = pc.replace_with_mask(texts, pa.array(read), joined)
        lines = _dropped(judged, pages, numbers)
        counts = _counts(judged, pages, numbers, len(texts))
        return Verdict(REASONS, codes, joined, details, lines, line_rules.REASONS, counts=counts)

    def mark(self, text: str) -> list[tuple[int, str | None]]:
        """Every line of a page with the reason that drops it or its page, or None; also for pages that are dropped."""
        judged = judge_lines(
            pa.array([text], pa.string()), self.rules, self._has_badword if self.rules.badwords_in_lines else None
        )
        if not self.rules.judges_lines:
            return [(number, None) for number in range(len(judged.codes))]
        names = [line_rules.REASONS[code] if code != KEPT else None for code in judged.codes.tolist()]
        return list(enumerate(names))

    def _explain(self, judged: Judged, pages: Pages, page: int, number: int, details: dict[int, str]) -> None:
        """Add the detail of a page dropped for its lines; called for these pages only."""
        if pages.codes[page] == FEW_SENTENCES:
            lines = _plural(int(pages.counts[page]), "line")
            details[number] = f"fewer than {self.rules.min_sentences} sentences in {lines}"
        elif pages.codes[page] == BADWORD and self._words:
            line = judged.texts_of(pages.deciding[page : page + 1])[0].as_py().lower()
            flanked = (e for e in self._words.entries if re.search(f"[^a-z]{re.escape(e)}[^a-z]", line))
            details[number] = next(flanked, "")

    def _has_badword(self, texts: pa.StringArray) -> Bools:
        """Which lines hold an English entry between two characters other than a to z.

        As in tensorflow-datasets 2.x (``c4_utils.py``, ``get_clean_page_fn``) an entry at the very beginning of a line
        is not found. Only two letters beyond ASCII lower-case into a to z; lines with these are searched by `re`.
        """
        if not self._words:
            return np.zeros(len(texts), bool)
        entries = "|".join(re.escape(entry) for entry in self._words.entries)
        pattern = f"[^a-z](?:{entries})[^a-z]"
        holds = np.array(pc.match_substring_regex(pc.ascii_lower(texts), pattern), bool)
        inexact = np.asarray(pc.match_substring_regex(texts, "[\u0130\u212a]"), bool)
        for number in np.flatnonzero(inexact).tolist():
            holds[number] = re.search(pattern, texts[number].as_py().lower()) is not None
        return holds

    @cached_property
    def _counter(self) -> SentenceCounter:
        return SentenceCounter("builtin" if self.rules.builtin_sentences else self.sentences)

    @cached_property
    def _words(self) -> Badwords | None:
        return load_badwords(self.badwords, "en", self.rules, required=True)


def _details_of_whole(texts: pa.StringArray, codes: Any, rules: Rules) -> dict[int, str]:
    long = np.flatnonzero(codes == TOO_LONG)
    sizes = pc.utf8_length(texts.take(pa.array(long))).to_pylist()
    details = {number: f"{size} characters" for number, size in zip(long.tolist(), sizes, strict=True)}
    few = np.flatnonzero(codes == FEW_PARAGRAPHS)
    if len(few):
        counts = count_paragraphs(texts.take(pa.array(few)), rules.min_paragraph_characters)
        details |= {n: _plural(c, "paragraph") for n, c in zip(few.tolist(), counts.tolist(), strict=True)}
    return details


def _dropped(judged: Judged, pages: Pages, numbers: I64) -> DroppedLines:
    """The lines dropped from pages that stay; ``numbers``: of the judged pages in the batch."""
    offsets = judged.lines.offsets
    of_kept = np.repeat(pages.codes == KEPT, np.diff(offsets))
    dropped = np.flatnonzero(of_kept & (judged.codes != KEPT))
    local = np.searchsorted(offsets, dropped, "right") - 1
    codes = judged.codes[dropped]
    spans = judged.lines.data, judged.lines.starts[dropped], judged.lines.stops[dropped]
    return DroppedLines(
        numbers[local], dropped - offsets[local], codes, *spans, lambda: _line_details(codes, judged.amounts[dropped])
    )


def _line_details(codes: Any, amounts: I64) -> pa.StringArray:
    """``"4 words"`` or ``"1 character"`` for lines with too few."""
    counts = pa.array(amounts).cast(pa.string())
    nouns = pc.if_else(pa.array(codes == line_rules.FEW_WORDS), "word", "character")
    ending = pc.if_else(pc.equal(counts, "1"), "", "s")
    texts = pc.binary_join_element_wise(pc.binary_join_element_wise(counts, nouns, " "), ending, "")
    few = (codes == line_rules.FEW_WORDS) | (codes == line_rules.FEW_CHARACTERS)
    return pc.if_else(pa.array(few), texts, pa.scalar(None, pa.string()))


def _counts(judged: Judged, pages: Pages, numbers: I64, documents: int) -> LineCounts:
    before, after = np.zeros(documents, np.int64), np.zeros(documents, np.int64)
    before[numbers], after[numbers] = np.diff(judged.lines.offsets), pages.counts
    return LineCounts(before, after)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class Pages(NamedTuple):
    """``codes``: of each page. ``counts``: lines that no rule dropped. ``kept``: numbers of the kept lines of kept
    pages, ascending. ``deciding``: number of the line that dropped its page, or -1."""

    codes: Codes
    counts: I64
    kept: I64
    deciding: I64


def judge_whole(text: pa.StringArray, rules: Rules) -> Codes:
    """Judge every page as a whole: its length, its paragraphs, and phrases if they count anywhere."""
    codes = np.full(len(text), KEPT, np.int8)
    # Later rules first, so that earlier ones overwrite them.
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
    """Lines of each text, cut at "\\n" only and not stripped, with at least ``characters`` characters."""
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
    counts = np.diff(offsets_of(kept_lines)[offsets])
    few = (counts < rules.min_sentences) & (counts > 0)
    codes[counts == 0] = NO_LINES
    deciding = _drop_by_line(judged, codes)
    unsure = np.flatnonzero(few & (codes == KEPT))
    if len(unsure):
        numbers = _lines_of(unsure, offsets, kept_lines)
        texts = judged.texts_of(numbers)
        inner = offsets_of(counts[unsure])
        codes[unsure[~counter.enough(texts, inner, rules.min_sentences)]] = FEW_SENTENCES
    if not rules.min_sentences:
        codes[codes == NO_LINES] = KEPT
    page_of = np.repeat(np.arange(len(codes)), np.diff(offsets))
    return Pages(codes, counts, np.flatnonzero(kept_lines & (codes[page_of] == KEPT)), deciding)


def _drop_by_line(judged: Judged, codes: Codes) -> I64:
    """Set the codes of pages that one of their lines drops; returns the number of that line, or -1."""
    deciding = np.full(len(codes), -1, np.int64)
    lines = np.flatnonzero(np.isin(judged.codes, list(_FROM_LINE)))
    pages, first = np.unique(np.searchsorted(judged.lines.offsets, lines, "right") - 1, return_index=True)
    deciding[pages] = lines[first]
    for line_code, page_code in _FROM_LINE.items():
        codes[pages[judged.codes[lines[first]] == line_code]] = page_code
    return deciding


def _lines_of(pages: I64, offsets: I64, kept_lines: Bools) -> I64:
    """Numbers of the kept lines of these pages, in order."""
    chosen = np.zeros(len(offsets) - 1, bool)
    chosen[pages] = True
    return np.flatnonzero(np.repeat(chosen, np.diff(offsets)) & kept_lines)


def join_lines(judged: Judged, pages: Pages) -> pa.StringArray:
    """The text of every page: its kept lines joined by "\\n" and stripped; "" if none was kept."""
    texts = judged.texts_of(pages.kept)
    bounds = np.searchsorted(pages.kept, judged.lines.offsets).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(bounds, texts), "\n")
    return pc.utf8_trim_whitespace(joined) if judged.cited else joined
