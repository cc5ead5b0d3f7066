"""Packs of the kind "patterns": a user's own rules, as regular expressions.

Lines with a match of ``drop_lines`` are dropped, and so are pages with a match of ``drop_pages``. The expressions are
RE2's and run inside Arrow, in time linear in the text, without look-around and back-references. They are searched, and
case matters; ``^``, ``$`` and ``(?i)`` change that. In a line ``^`` and ``$`` are its edges, white space stripped; in a
page those of the page, or with ``(?m)`` of its lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64
from corpusforge.clean.pack import Pack, rule
from corpusforge.clean.step import Codes, LineCounts, Verdict, dropped_lines
from corpusforge.text import refusal_of, split_lines

REASONS = ("kept", "page:pattern", "page:no-lines")
LINE_REASONS = ("kept", "line:pattern")

_LONGEST = 10_000  # characters of one expression: more than any list of words that a person writes


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
                wrong = _refused(expression)
                if wrong:
                    what = f"{name}, expression {number}: {wrong}"
                    raise errors.RecipeInvalid(where, what, "write it as RE2 does: github.com/google/re2/wiki/Syntax")


def _refused(expression: str) -> str | None:
    if len(expression) > _LONGEST:
        return f"longer than {_LONGEST} characters"
    return refusal_of(expression)


@dataclass(frozen=True)
class PatternsStep:
    """Applies a pack of patterns."""

    rules: Patterns

    @property
    def name(self) -> str:
        """The pack's name."""
        return self.rules.name

    def check(self) -> None:
        """Nothing is needed: the expressions were compiled when the pack was read."""

    def resources(self) -> dict[str, Any]:
        """The pack's own values."""
        return {"pack": self.rules.recorded()}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Drop pages, then lines; a page that loses all of its lines goes."""
        texts = documents["text"]
        found = first_match(texts, self.rules.drop_pages)
        codes: Codes = (found >= 0).astype(np.int8)
        details = {n: self.rules.drop_pages[found[n]] for n in np.flatnonzero(codes).tolist()}
        return self._cut(texts, codes, details) if self.rules.drop_lines else Verdict(REASONS, codes, texts, details)

    def _cut(self, texts: pa.StringArray, codes: Codes, details: dict[int, str]) -> Verdict:
        """Drop lines of the pages that stay, and pages that lose their last line."""
        rows = split_lines(texts)
        taken = first_match(rows.values, self.rules.drop_lines)
        owners = np.repeat(np.arange(len(texts)), np.diff(rows.offsets))
        dropped = np.flatnonzero((taken >= 0) & (codes[owners] == 0))
        stays = np.asarray(pc.greater(pc.binary_length(rows.values), 0), bool)
        stays[dropped] = False
        cut = np.bincount(owners[dropped], minlength=len(texts)) > 0
        counts = LineCounts(np.diff(rows.offsets), np.bincount(owners[stays], minlength=len(texts)))
        codes[cut & (counts.stay == 0)] = REASONS.index("page:no-lines")
        still = dropped[codes[owners[dropped]] == 0]
        numbers = still - rows.offsets[owners[still]]
        names = pa.array(self.rules.drop_lines).take(pa.array(taken[still]))
        ones = np.ones(len(still), np.int8)
        lines = dropped_lines(owners[still], numbers, ones, rows.values.take(pa.array(still)), names)
        text = _without(texts, rows.values, rows.offsets, dropped, cut)
        return Verdict(REASONS, codes, text, details, lines, LINE_REASONS, counts=counts)


def first_match(texts: pa.StringArray, expressions: Iterable[str]) -> I64:
    """For each text the number of the first expression that it holds, or -1."""
    found = np.full(len(texts), -1, np.int64)
    for number, expression in enumerate(expressions):
        held = np.asarray(pc.match_substring_regex(texts, expression), bool)
        found[held & (found < 0)] = number
    return found


def _without(texts: pa.StringArray, lines: pa.StringArray, offsets: I64, dropped: I64, changed: Any) -> pa.StringArray:
    """The texts that changed, put together again of the lines that stay; the others as they came."""
    if not changed.any():
        return texts
    stays = np.ones(len(lines), bool)
    stays[dropped] = False
    bounds = np.concatenate([[0], np.cumsum(stays)])[offsets].astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(bounds, lines.filter(pa.array(stays))), "\n")
    return pc.if_else(pa.array(changed), joined, texts)
