"""Normalisation character by character: each is shown to the library once, and its answer spliced in by NumPy.

In: UTF-8 bytes of a chunk. Out: its normalised text, for a family to cut into words. The decision: the library stays
the single source of truth; what depends on more than one character goes to it row by row.
"""

from __future__ import annotations

import abc

import numpy as np

from corpusforge.arrays import I32, I64, U8
from corpusforge.tokens.columns import CHARACTER_BYTES, Splitter, Words, code_points, ragged_positions

KEEP, LEAD, TAIL = 0, 1, 2  # classes of a byte: kept or mapped as it is, replaced, behind a lead byte
UNSEEN, ODD = -1, -2


class CharacterSplitter(Splitter):
    """A splitter that keeps what it learned about characters; a family says what becomes of each, and where to cut."""

    def __init__(self) -> None:
        self._index = np.full(0x110000, UNSEEN, np.int32)  # code point -> number of its replacement
        self._replacements: list[bytes] = []
        self._flat, self._lengths = np.empty(0, np.uint8), np.empty(0, np.int64)

    @abc.abstractmethod
    def _replacement(self, character: str) -> str | None:
        """What stands for a character in normalised text; None: its neighbours matter."""

    @abc.abstractmethod
    def _regroup(self, text: bytes, begins: I64) -> Words:
        """Cut normalised text into words; rows begin at ``begins``."""

    def _map_bytes(self, before: list[int], after: list[int]) -> None:
        """Set the tables over single bytes: their class, and what becomes of those that are kept."""
        self._before, self._after = bytes(before), bytes(after)
        self._replaced = bytes(b for b in range(256) if before[b] != KEEP)

    def _split(self, data: U8, starts: I64) -> Words:
        raw = data.tobytes()
        classes = np.frombuffer(raw.translate(self._before), np.uint8)
        if not classes.any():
            return self._regroup(raw.translate(self._after), starts)
        leads = np.flatnonzero(classes == LEAD)
        numbers = self._numbers(code_points(data, leads))
        odd = rows_of(starts, leads[numbers == ODD])
        if len(odd):
            return self._with_library(data, starts, odd)
        return self._regroup(*self._splice(raw, leads, numbers, starts))

    def _splice(self, raw: bytes, leads: I64, numbers: I32, starts: I64) -> tuple[bytes, I64]:
        """Put replacements where their characters stood; also where each row begins now."""
        lengths = self._lengths[numbers]
        firsts = np.concatenate([[0], np.cumsum(self._lengths)])[numbers]
        widths = CHARACTER_BYTES[np.frombuffer(raw, np.uint8)[leads]]
        shift = np.concatenate([[0], np.cumsum(lengths - widths)])  # growth of the text before each of them
        inserted = ragged_positions(leads + shift[:-1], lengths)
        text = np.empty(len(raw) + int(shift[-1]), np.uint8)
        kept = np.ones(len(text), np.bool_)
        kept[inserted] = False
        text[kept] = np.frombuffer(raw.translate(self._after, self._replaced), np.uint8)
        text[inserted] = self._flat[ragged_positions(firsts, lengths)]
        return text.tobytes(), starts + shift[np.searchsorted(leads, starts)]

    def _numbers(self, points: I64) -> I32:
        numbers = self._index[points]
        if (numbers == UNSEEN).any():
            # A Python loop with a reason: one library call for each character never met before in this process.
            for point in np.unique(points[numbers == UNSEEN]).tolist():
                self._learn(point)
            self._lengths = np.array([len(r) for r in self._replacements], np.int64)
            self._flat = np.frombuffer(b"".join(self._replacements), np.uint8)
            numbers = self._index[points]
        return numbers

    def _learn(self, point: int) -> None:
        answer = self._replacement(chr(point))
        if answer is None:
            self._index[point] = ODD
            return
        self._index[point] = len(self._replacements)
        self._replacements.append(answer.encode())


def rows_of(starts: I64, positions: I64) -> I64:
    """The rows in which these bytes lie, each once."""
    return np.unique(np.searchsorted(starts, positions, "right") - 1)
