"""Rows of UTF-8 text to words, whatever the family: chunks of bounded size, and the flat arrays they come back in.

In: bytes of many rows (documents or sentences). Out: one Arrow column of words and the offsets of the rows in it. The
decision: a family's own rule sees one chunk at a time, cut where no word can be torn, so that the working memory of
splitting depends neither on the size of a batch nor on that of a document.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, U8, Bools

CHUNK_BYTES = 1 << 20
"""Text handled at once: large enough to make NumPy calls cheap, small enough that its arrays stay near the cache."""


class Words(NamedTuple):
    """Row i owns ``values[offsets[i]:offsets[i + 1]]``; ``by_library``: rows that went to the library whole."""

    values: pa.StringArray
    offsets: I64
    by_library: int


class Cutting(Protocol):
    """How a family normalises text and cuts it into words: a frozen, hashable, picklable value."""

    def splitter(self) -> Splitter:
        """The process's splitter of this kind; it keeps what it learned about characters."""


class Splitter(abc.ABC):
    """Cuts rows of text into words that are encoded independently of each other.

    ``keeps_space``: white space has tokens too, so that it matters which row the space between two rows belongs to.
    ``mark``: what stands before every word; columns of words come without it, `marked` puts it there.
    """

    keeps_space: bool = False
    mark: str = ""

    @abc.abstractmethod
    def words_of(self, text: str) -> list[str]:
        """What the library makes of one text, whole."""

    @abc.abstractmethod
    def _split(self, data: U8, starts: I64) -> Words:
        """Words of a chunk: the offsets of the row it begins in, every row that begins at ``starts``, its end."""

    def split(self, data: U8, rows: I64) -> Words:
        """Words of all rows; row i is ``data[rows[i]:rows[i + 1]]``, whole characters, valid UTF-8."""
        parts = list(self.chunks(data, rows))
        values = pa.concat_arrays([part.values for part in parts]) if parts else pa.array([], pa.string())
        offsets = np.empty(len(rows), np.int64)
        row = base = 0
        for part in parts:
            begun = len(part.offsets) - 2  # rows that begin in this part; its first piece goes on from the one before
            offsets[row : row + begun] = base + part.offsets[1:-1]
            row, base = row + begun, base + len(part.values)
        offsets[row:] = base
        return Words(values, offsets, sum(part.by_library for part in parts))

    def chunks(self, data: U8, rows: I64, size: int = CHUNK_BYTES) -> Iterator[Words]:
        """The same in pieces of about ``size`` bytes, cut where `cut_place` allows or between rows.

        The offsets of a piece are those of: the row it begins in, every row that begins in it, its end.
        """
        at, stop = int(rows[0]), int(rows[-1])
        while at < stop:
            until = min(self.cut_place(data, at + size, stop, rows), stop)
            low, high = np.searchsorted(rows, [at, until])
            starts = np.concatenate([[0], rows[low : min(high, len(rows) - 1)] - at])
            yield self._split(data[at:until], starts)
            at = until

    def marked(self, words: pa.StringArray) -> pa.StringArray:
        """These words as they are encoded and counted."""
        return pc.binary_join_element_wise(self.mark, words, "") if self.mark else words

    def cut_place(self, data: U8, wanted: int, stop: int, rows: I64) -> int:
        """The first place from ``wanted`` on behind ASCII white space or between two rows."""
        row = int(np.searchsorted(rows, wanted))
        nearest = int(rows[row]) if row < len(rows) else stop
        at = wanted
        while at < nearest:
            block = data[at : min(at + 4096, nearest)]
            spaces = np.flatnonzero((block == 0x20) | (block == 0x0A))
            if len(spaces):
                return at + int(spaces[0]) + 1
            at += len(block)
        return nearest

    def _with_library(self, data: U8, starts: I64, odd: I64) -> Words:
        """Blank the odd rows, split the others, and put the library's words for the odd rows in their place."""
        ends = np.append(starts[1:], len(data))
        rest, found = data.copy(), {}
        # A Python loop with a reason: such rows need the library's own rules, and they are very rare.
        for row in odd.tolist():
            begin, end = int(starts[row]), int(ends[row])
            found[row] = [word.removeprefix(self.mark) for word in self.words_of(data[begin:end].tobytes().decode())]
            rest[begin:end] = 0x20
        words = self._split(rest, starts)
        pieces, extra, at = [], np.zeros(len(words.offsets), np.int64), 0
        for row, inserted in found.items():
            until = int(words.offsets[row])
            pieces += [words.values.slice(at, until - at), pa.array(inserted, pa.string())]
            extra[row + 1] = len(inserted)
            at = until
        values = pa.concat_arrays([*pieces, words.values.slice(at)])
        return Words(values, words.offsets + np.cumsum(extra), len(found) + words.by_library)


def without_spaces(text: bytes, opens: Bools, begins: I64) -> Words:
    """Words of normalised text: they begin at ``opens`` and end at a space or the next one; rows at ``begins``."""
    places = np.flatnonzero(opens)
    letters = text.translate(None, b" ")
    spaces = np.cumsum(np.frombuffer(text, np.uint8) == 0x20, dtype=np.int32)
    ends = np.append(places - spaces[places], len(letters)).astype(np.int32)
    values = pa.StringArray.from_buffers(len(places), pa.py_buffer(ends), pa.py_buffer(letters))
    return Words(values, np.append(np.searchsorted(places, begins), len(places)), 0)


def ragged_positions(firsts: I64, lengths: I64) -> I64:
    """The positions ``first, first + 1, ...`` of many runs, one run after another.

    >>> ragged_positions(np.array([10, 3]), np.array([2, 3])).tolist()
    [10, 11, 3, 4, 5]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(firsts - ends + lengths, lengths) + np.arange(total)


CHARACTER_BYTES = np.array([1] * 192 + [2] * 32 + [3] * 16 + [4] * 16, np.int64)
"""Bytes of a UTF-8 character by its first byte."""


def code_points(data: U8, leads: I64) -> I64:
    """Code points of the characters that begin at ``leads``, ``[leads]``."""
    padded = np.append(data, np.zeros(3, np.uint8))
    first = data[leads].astype(np.int64)
    second, third, fourth = ((padded[leads + k] & 0x3F).astype(np.int64) for k in (1, 2, 3))
    two = (first & 0x1F) << 6 | second
    three = (first & 0x0F) << 12 | second << 6 | third
    four = (first & 0x07) << 18 | second << 12 | third << 6 | fourth
    return np.select([first < 0x80, first < 0xE0, first < 0xF0], [first, two, three], four)
