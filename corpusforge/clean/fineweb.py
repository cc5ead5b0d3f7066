"""The rules of FineWeb, and the step of packs of the kind "fineweb".

The rules are those that Penedo et al. 2024 ("The FineWeb Datasets", arXiv 2406.17557, section 3.6 and appendix E) added
to Gopher's and C4's: they drop pages of lists, menus and repeated lines, and change no text. Lines are cut at "\\n" and
not stripped; those of white space alone do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64
from corpusforge.clean.measures import (
    Findings,
    Lines,
    characters_in,
    count_characters,
    ending_with,
    repeats,
    shares,
    split_at_each,
    sums,
)
from corpusforge.clean.pack import Pack, PackStep, rule
from corpusforge.clean.step import KEPT, Verdict

REASONS = (
    "kept",
    "page:no-lines",
    "page:few-line-ends",
    "page:short-lines",
    "page:duplicate-line-characters",
    "page:list",
)
"""Reason of each code. Rules are tried in this order."""


@dataclass(frozen=True)
class FinewebRules(Pack):
    """A pack of the kind "fineweb"."""

    kind: ClassVar[str] = "fineweb"

    end_characters: tuple[str, ...] = rule((), "what ends a line")
    min_ended_lines: float = rule(0.0, "share of lines with an end, at least")
    short_line_characters: int = rule(0, "length up to which a line is short")
    max_short_lines: float = rule(0.0, "share of short lines, at most")
    max_duplicate_line_characters: float = rule(
        0.0, "share of characters in duplicate lines, line breaks left out, at most"
    )
    max_line_breaks_a_word: float = rule(0.0, "line breaks for each word, at most")

    def check(self, where: str) -> None:
        """Raises `errors.RecipeInvalid` where line ends are required and none is listed."""
        if self.min_ended_lines and not self.end_characters:
            raise errors.RecipeInvalid(where, "end_characters is empty", "list what ends a line, or min_ended_lines 0")


@dataclass(frozen=True)
class FinewebStep(PackStep):
    """Applies a pack of the kind "fineweb"."""

    rules: FinewebRules

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Drop pages that break a rule."""
        findings = Findings(REASONS, documents["text"])
        _judge(findings, self.rules)
        return Verdict(REASONS, findings.codes, documents["text"], findings.details)


def _judge(findings: Findings, rules: FinewebRules) -> None:
    findings.drop("page:no-lines", findings.words.counts == 0)
    findings.narrow()
    lines, breaks = _lines(findings)
    count = np.diff(lines.offsets)
    ended = ending_with(lines.data, lines.starts, lines.stops, rules.end_characters)
    share = shares(sums(ended, lines.offsets), count)
    findings.at_least("page:few-line-ends", "lines with an end mark", share, rules.min_ended_lines)
    if rules.short_line_characters:
        short = count_characters(lines.data, lines.starts, lines.stops) <= rules.short_line_characters
        share = shares(sums(short, lines.offsets), count)
        findings.at_most("page:short-lines", "short lines", share, rules.max_short_lines)
    rest = lines.choose(np.repeat(findings.codes[findings.numbers] == KEPT, count))
    characters = np.asarray(pc.utf8_length(findings.texts)).astype(np.int64)
    share = shares(characters_in(rest.choose(repeats(rest))), characters - breaks)
    label = "characters in duplicate lines"
    findings.at_most("page:duplicate-line-characters", label, share, rules.max_duplicate_line_characters)
    share = shares(breaks, findings.words.counts)
    findings.at_most("page:list", "line breaks a word", share, rules.max_line_breaks_a_word)


def _lines(findings: Findings) -> tuple[Lines, I64]:
    """Lines that hold a word (no word spans two lines), and the number of line breaks of each page."""
    lines, words = split_at_each(findings.texts), findings.words.starts
    has_word = np.searchsorted(words, lines.starts) < np.searchsorted(words, lines.stops)
    return lines.choose(has_word), np.diff(lines.offsets) - 1
