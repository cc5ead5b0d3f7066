"""Measures of documents held against the limits of a pack, rule by rule.

Comes in: one number a document and a limit. Goes out: the code of the first rule that a document breaks, and what was
measured ("top 2-gram 0.274 > 0.2"). Rules are tried in the order of their codes; a limit of 0 switches a rule off.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from corpusforge.arrays import F64, I64, Bools
from corpusforge.clean.step import KEPT, Codes
from corpusforge.clean.words import find_words

Numbers = I64 | F64


class Findings:
    """What became of the documents of a batch so far, and what is still in.

    ``reasons``: names of the codes; the first is "kept". ``codes``, ``details``: of all documents. ``texts``,
    ``words``: of the documents ``numbers``, those that rules are asked about; `narrow` leaves out what went.
    """

    def __init__(self, reasons: tuple[str, ...], texts: pa.StringArray) -> None:
        self.reasons = reasons
        self.codes: Codes = np.full(len(texts), KEPT, np.int8)
        self.details: dict[int, str] = {}
        self.texts, self.words = texts, find_words(texts)
        self.numbers: I64 = np.arange(len(texts))

    def narrow(self) -> None:
        """Go on with the documents that broke no rule so far."""
        kept = np.flatnonzero(self.codes[self.numbers] == KEPT)
        if len(kept) < len(self.numbers):
            self.texts = self.texts.take(pa.array(kept))
            self.words = self.words.choose(kept, self.texts)
            self.numbers = self.numbers[kept]

    def at_most(self, reason: str, label: str, values: Numbers, limit: float) -> None:
        """Documents with more than the limit go."""
        if limit:
            self._drop(reason, label, values, limit, ">", values > limit)

    def at_least(self, reason: str, label: str, values: Numbers, limit: float) -> None:
        """Documents with less than the limit go."""
        if limit:
            self._drop(reason, label, values, limit, "<", values < limit)

    def drop(self, reason: str, chosen: Bools) -> None:
        """Documents go for a reason that says it all."""
        kept = self.codes[self.numbers] == KEPT
        self.codes[self.numbers[chosen & kept]] = self.reasons.index(reason)

    def _drop(self, reason: str, label: str, values: Numbers, limit: float, sign: str, broken: Bools) -> None:
        chosen = np.flatnonzero(broken & (self.codes[self.numbers] == KEPT))
        self.codes[self.numbers[chosen]] = self.reasons.index(reason)
        for number, value in zip(self.numbers[chosen].tolist(), values[chosen].tolist(), strict=True):
            self.details[number] = f"{label} {_shown(value, limit)} {sign} {limit:g}"


def _shown(value: float, limit: float) -> str:
    """A number with three digits behind the point, or as many as tell it from the limit.

    >>> _shown(12, 50), _shown(0.27351, 0.2), _shown(0.300004, 0.3)
    ('12', '0.274', '0.300004')
    """
    if isinstance(value, int):
        return str(value)
    digits = next((d for d in range(3, 16) if round(value, d) != limit), 16)
    return f"{value:.{digits}f}"


def shares(part: Numbers, whole: Numbers) -> F64:
    """``part / whole``, 0 where there is nothing."""
    return np.asarray(part / np.maximum(whole, 1), np.float64)
