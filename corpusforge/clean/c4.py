"""The step of a pack of the kind "c4": lines and pages by the rules of one of the cleaners called C4.

Comes in: documents. Goes out: the verdict of `pages` and `lines`, and the text of the lines that stay. Where a pack
has no rule about lines (mC4), the text stays as it came.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, Bools
from corpusforge.clean import lines as line_rules
from corpusforge.clean import pages as page_rules
from corpusforge.clean.badwords import Badwords, load_badwords
from corpusforge.clean.lines import Judged, judge_lines
from corpusforge.clean.pages import Pages, join_lines, judge_pages, judge_whole
from corpusforge.clean.rules import Rules
from corpusforge.clean.step import KEPT, DroppedLines, LineCounts, Verdict
from corpusforge.sentences.counter import SentenceCounter


@dataclass(frozen=True)
class C4Step:
    """Carries a pack of the kind "c4" out. ``sentences``: "punkt" or "builtin"; ``badwords``: where the lists are, for
    packs that look for bad words in lines ("fetched", "off", a folder)."""

    rules: Rules
    sentences: str = "punkt"
    badwords: str = "off"

    @property
    def name(self) -> str:
        """The pack's name."""
        return self.rules.name

    def check(self) -> None:
        """Raises `errors.ResourceMissing` where Punkt or the list is needed and not on this machine."""
        if self.rules.min_sentences:
            self._counter.check()
        if self.rules.badwords_in_lines:
            _ = self._words

    def resources(self) -> dict[str, Any]:
        """The pack's own values, who counts sentences, the list."""
        found: dict[str, Any] = {"pack": self.rules.values()}
        if self.rules.min_sentences:
            found["sentences"] = self._counter.identity()
        if self.rules.badwords_in_lines:
            found["badwords"] = self._words.digest() if self._words else "off"
        return found

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Judge pages as they came, then lines, then pages by their lines."""
        texts = documents["text"]
        codes = judge_whole(texts, self.rules)
        whole = codes == KEPT
        details = {} if whole.all() else _details_of_whole(texts, codes, self.rules)
        if not self.rules.judges_lines:
            return Verdict(page_rules.REASONS, codes, texts, details)
        read = np.flatnonzero(whole)
        inner = texts if whole.all() else texts.filter(pa.array(whole))
        judged = judge_lines(inner, self.rules, self._has_badword if self.rules.badwords_in_lines else None)
        pages = judge_pages(judged, self.rules, self._counter)
        codes[read] = pages.codes
        for page in np.flatnonzero(pages.codes != KEPT).tolist():
            self._explain(judged, pages, page, int(read[page]), details)
        left = join_lines(judged, pages)
        if not whole.all():
            left = pc.replace_with_mask(texts, pa.array(whole), left)
        lines = _dropped(judged, pages, read)
        counts = _counts(judged, pages, read, len(texts))
        return Verdict(page_rules.REASONS, codes, left, details, lines, line_rules.REASONS, counts=counts)

    def mark(self, text: str) -> list[tuple[int, str | None]]:
        """Every line of a page with the reason that takes it or its page, or None: also of pages that are dropped."""
        judged = judge_lines(
            pa.array([text], pa.string()), self.rules, self._has_badword if self.rules.badwords_in_lines else None
        )
        if not self.rules.judges_lines:
            return [(number, None) for number in range(len(judged.codes))]
        names = [line_rules.REASONS[code] if code != KEPT else None for code in judged.codes.tolist()]
        return list(enumerate(names))

    def _explain(self, judged: Judged, pages: Pages, page: int, number: int, details: dict[int, str]) -> None:
        """What the rule saw in a page dropped for its lines. Called for these only, one by one."""
        if pages.codes[page] == page_rules.FEW_SENTENCES:
            read = _plural(int(pages.counts[page]), "line")
            details[number] = f"fewer than {self.rules.min_sentences} sentences in {read}"
        elif pages.codes[page] == page_rules.BADWORD and self._words:
            line = judged.texts_of(pages.deciding[page : page + 1])[0].as_py().lower()
            flanked = (e for e in self._words.entries if re.search(f"[^a-z]{re.escape(e)}[^a-z]", line))
            details[number] = next(flanked, "")

    def _has_badword(self, texts: pa.StringArray) -> Bools:
        """Lines that hold an English entry between two characters other than a to z.

        As in tensorflow-datasets 2.x (``c4_utils.py``, ``get_clean_page_fn``): an entry at the very beginning of a
        line is not seen. Only two letters beyond ASCII lower-case into a to z; lines with these are searched by `re`.
        """
        if not self._words:
            return np.zeros(len(texts), bool)
        entries = "|".join(re.escape(entry) for entry in self._words.entries)
        pattern = f"[^a-z](?:{entries})[^a-z]"
        found = np.array(pc.match_substring_regex(pc.ascii_lower(texts), pattern), bool)
        odd = np.asarray(pc.match_substring_regex(texts, "[\u0130\u212a]"), bool)
        for number in np.flatnonzero(odd).tolist():
            found[number] = re.search(pattern, texts[number].as_py().lower()) is not None
        return found

    @cached_property
    def _counter(self) -> SentenceCounter:
        return SentenceCounter("builtin" if self.rules.builtin_sentences else self.sentences)

    @cached_property
    def _words(self) -> Badwords | None:
        return load_badwords(self.badwords, "en", self.rules, required=True)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if not key.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _details_of_whole(texts: pa.StringArray, codes: Any, rules: Rules) -> dict[int, str]:
    long = np.flatnonzero(codes == page_rules.TOO_LONG)
    sizes = pc.utf8_length(texts.take(pa.array(long))).to_pylist()
    found = {number: f"{size} characters" for number, size in zip(long.tolist(), sizes, strict=True)}
    few = np.flatnonzero(codes == page_rules.FEW_PARAGRAPHS)
    if len(few):
        counts = page_rules.count_paragraphs(texts.take(pa.array(few)), rules.min_paragraph_characters)
        found |= {n: _plural(c, "paragraph") for n, c in zip(few.tolist(), counts.tolist(), strict=True)}
    return found


def _dropped(judged: Judged, pages: Pages, read: I64) -> DroppedLines:
    """The lines that go from pages that stay."""
    offsets = judged.lines.offsets
    of_kept = np.repeat(pages.codes == KEPT, np.diff(offsets))
    gone = np.flatnonzero(of_kept & (judged.codes != KEPT))
    local = np.searchsorted(offsets, gone, "right") - 1
    codes = judged.codes[gone]
    spans = judged.lines.data, judged.lines.starts[gone], judged.lines.stops[gone]
    return DroppedLines(
        read[local], gone - offsets[local], codes, *spans, lambda: _line_details(codes, judged.amounts[gone])
    )


def _line_details(codes: Any, amounts: I64) -> pa.StringArray:
    """``"4 words"``, ``"1 character"`` for lines with few of them."""
    counts = pa.array(amounts).cast(pa.string())
    nouns = pc.if_else(pa.array(codes == line_rules.FEW_WORDS), "word", "character")
    ending = pc.if_else(pc.equal(counts, "1"), "", "s")
    texts = pc.binary_join_element_wise(pc.binary_join_element_wise(counts, nouns, " "), ending, "")
    few = (codes == line_rules.FEW_WORDS) | (codes == line_rules.FEW_CHARACTERS)
    return pc.if_else(pa.array(few), texts, pa.scalar(None, pa.string()))


def _counts(judged: Judged, pages: Pages, read: I64, documents: int) -> LineCounts:
    came, stay = np.zeros(documents, np.int64), np.zeros(documents, np.int64)
    came[read], stay[read] = np.diff(judged.lines.offsets), pages.counts
    return LineCounts(came, stay)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
