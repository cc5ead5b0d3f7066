"""Packs of the kind "patterns": user-defined rules, as regular expressions.

Lines with a match of ``drop_lines`` are dropped, and so are pages with a match of ``drop_pages``. The expressions are
RE2's and run inside Arrow, in time linear in the text, without look-around and back-references. They are searched, and
case matters; ``^``, ``$`` and ``(?i)`` change that. In a line ``^`` and ``$`` match at its edges, white space stripped;
in a page at those of the page, or with ``(?m)`` at those of its lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64, Bools, offsets_of
from corpusforge.clean.pack import Pack, PackStep, rule
from corpusforge.clean.step import Codes, LineCounts, Verdict, dropped_lines
from corpusforge.text import refusal_of, split_lines

REASONS = ("kept", "page:pattern", "page:no-lines")
LINE_REASONS = ("kept", "line:pattern")

_LONGEST = 10_000  # characters of one expression: longer than any list of words that a person writes


@dataclass(frozen=True)
class Patterns(Pack):
    """A pack of the kind "patterns"."""

    kind: ClassVar[str] = "patterns"

    drop_lines: tuple[str, ...] = rule((), "expressions; a line with a match is dropped")
    drop_pages: tuple[str, ...] = rule((), "expressions, tried first; a page with a match is dropped whole")

    def check(self, where: str) -> None:
        """Raises `errors.RecipeInvalid` for an expression that RE2 refuses."""
        for name, expressions in self.values().items():
            for number, expression in enumerate(expressions, 1):
                if refusal := _refused(expression):
                    what = f"{name}, expression {number}: {refusal}"
                    raise errors.RecipeInvalid(where, what, "write it as RE2 does: github.com/google/re2/wiki/Syntax")


def _refused(expression: str) -> str | None:
    if len(expression) > _LONGEST:
        return f"longer than {_LONGEST} characters"
    return refusal_of(expression)


@dataclass(frozen=True)
class PatternsStep(PackStep):
    """Applies a pack of the kind "patterns"."""

    rules: Patterns

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Drop pages, then lines; a page that loses its last line is dropped."""
        texts = documents["text"]
        matches = first_match(texts, self.rules.drop_pages)
        codes: Codes = (matches >= 0).astype(np.int8)
        details = {n: self.rules.drop_pages[matches[n]] for n in np.flatnonzero(codes).tolist()}
        return self._cut(texts, codes, details) if self.rules.drop_lines else Verdict(REASONS, codes, texts, details)

    def _cut(self, texts: pa.StringArray, codes: Codes, details: dict[int, str]) -> Verdict:
        """Drop lines of the pages that stay, and pages that lose their last line."""
        rows = split_lines(texts)
        matches = first_match(rows.values, self.rules.drop_lines)
        owners = np.repeat(np.arange(len(texts)), np.diff(rows.offsets))
        dropped = np.flatnonzero((matches >= 0) & (codes[owners] == 0))
        stays = np.asarray(pc.greater(pc.binary_length(rows.values), 0), bool)
        stays[dropped] = False
        cut = np.bincount(owners[dropped], minlength=len(texts)) > 0
        counts = LineCounts(np.diff(rows.offsets), np.bincount(owners[stays], minlength=len(texts)))
        codes[cut & (counts.after == 0)] = REASONS.index("page:no-lines")
        reported = dropped[codes[owners[dropped]] == 0]  # a page that is dropped is reported whole
        numbers = reported - rows.offsets[owners[reported]]
        names = pa.array(self.rules.drop_lines).take(pa.array(matches[reported]))
        ones = np.ones(len(reported), np.int8)
        lines = dropped_lines(owners[reported], numbers, ones, rows.values.take(pa.array(reported)), names)
        text = _without(texts, rows.values, rows.offsets, dropped, cut)
        return Verdict(REASONS, codes, text, details, lines, LINE_REASONS, counts=counts)


def first_match(texts: pa.StringArray, expressions: Iterable[str]) -> I64:
    """For each text the number of the first expression that matches it, or -1."""
    first = np.full(len(texts), -1, np.int64)
    for number, expression in enumerate(expressions):
        matches = np.asarray(pc.match_substring_regex(texts, expression), bool)
        first[matches & (first < 0)] = number
    return first


def _without(
    texts: pa.StringArray, lines: pa.StringArray, offsets: I64, dropped: I64, changed: Bools
) -> pa.StringArray:
    """The texts that changed, joined from the lines that stay; the others as they were."""
    if not changed.any():
        return texts
    stays = np.ones(len(lines), bool)
    stays[dropped] = False
    bounds = offsets_of(stays)[offsets].astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(bounds, lines.filter(pa.array(stays))), "\n")
    return pc.if_else(pa.array(changed), joined, texts)
