"""Split rows of UTF-8 text into words, in columns: the common part of the splitters of all families.

A splitter takes the bytes of many rows (documents or sentences) and returns one Arrow column of words with the offsets
of the rows in it. Text is processed in chunks of bounded size that end where no word can be torn, so the working memory
depends neither on the size of a batch nor on that of a document.

`CharacterSplitter` normalizes character by character. The `tokenizers` library stays the single source of truth: it
normalizes each character once, its answer is kept, and NumPy splices the answers in. Rows in which the result for a
character depends on its neighbors go to the library whole.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I32, I64, U8, Bools, offsets_of, ranges

CHUNK_BYTES = 1 << 20
"""Text handled at once: large enough to make NumPy calls cheap, small enough that its arrays stay near the cache."""

CHARACTER_BYTES = np.array([1] * 192 + [2] * 32 + [3] * 16 + [4] * 16, np.int64)
"""Bytes of a UTF-8 character by its first byte."""


class Words(NamedTuple):
    """Row i owns ``values[offsets[i]:offsets[i + 1]]``; ``by_library``: rows that went to the library whole."""

    values: pa.StringArray
    offsets: I64
    by_library: int


class Segmentation(Protocol):
    """How a family normalizes text and segments it into words: a frozen, hashable, picklable value."""

    def splitter(self) -> Splitter:
        """The splitter of this process with these settings; it keeps what it learned about characters."""


class Splitter(abc.ABC):
    """Splits rows of text into words that are encoded independently of each other.

    ``keeps_space``: white space has tokens too, so it matters which row the space between two rows belongs to.
    ``mark``: a prefix of every word; columns of words omit it, and `marked` adds it.
    """

    keeps_space: bool = False
    mark: str = ""

    @abc.abstractmethod
    def words_of(self, text: str) -> list[str]:
        """The library's words of one text."""

    @abc.abstractmethod
    def _split(self, data: U8, starts: I64) -> Words:
        """Words of a chunk. Offsets: of the row it begins in, of every row that begins at ``starts``, and its end."""

    def split(self, data: U8, rows: I64) -> Words:
        """Words of all rows; row i is ``data[rows[i]:rows[i + 1]]``, whole characters, valid UTF-8."""
        parts = list(self.chunks(data, rows))
        values = pa.concat_arrays([part.values for part in parts]) if parts else pa.array([], pa.string())
        offsets = np.empty(len(rows), np.int64)
        row = base = 0
        for part in parts:
            begun = len(part.offsets) - 2  # rows that begin in this chunk; its first offset continues an earlier row
            offsets[row : row + begun] = base + part.offsets[1:-1]
            row, base = row + begun, base + len(part.values)
        offsets[row:] = base
        return Words(values, offsets, sum(part.by_library for part in parts))

    def chunks(self, data: U8, rows: I64, size: int = CHUNK_BYTES) -> Iterator[Words]:
        """The same in chunks of about ``size`` bytes, which end at `chunk_end` or between rows.

        Offsets of a chunk: of the row it begins in, of every row that begins in it, and its end.
        """
        at, stop = int(rows[0]), int(rows[-1])
        while at < stop:
            until = min(self.chunk_end(data, at + size, stop, rows), stop)
            low, high = np.searchsorted(rows, [at, until])
            starts = np.concatenate([[0], rows[low : min(high, len(rows) - 1)] - at])
            yield self._split(data[at:until], starts)
            at = until

    def marked(self, words: pa.StringArray) -> pa.StringArray:
        """These words as they are encoded and counted."""
        return pc.binary_join_element_wise(self.mark, words, "") if self.mark else words

    def chunk_end(self, data: U8, wanted: int, stop: int, rows: I64) -> int:
        """The first place from ``wanted`` on that follows ASCII white space or lies between two rows."""
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
        """Blank the odd rows, split the others, and insert the library's words of the odd rows."""
        ends = np.append(starts[1:], len(data))
        rest, of_library = data.copy(), {}
        # Python loop: such rows need the library's own rules, and they are very rare.
        for row in odd.tolist():
            begin, end = int(starts[row]), int(ends[row])
            words_of_row = self.words_of(data[begin:end].tobytes().decode())
            of_library[row] = [word.removeprefix(self.mark) for word in words_of_row]
            rest[begin:end] = 0x20
        words = self._split(rest, starts)
        parts, extra, at = [], np.zeros(len(words.offsets), np.int64), 0
        for row, inserted in of_library.items():
            until = int(words.offsets[row])
            parts += [words.values.slice(at, until - at), pa.array(inserted, pa.string())]
            extra[row + 1] = len(inserted)
            at = until
        values = pa.concat_arrays([*parts, words.values.slice(at)])
        return Words(values, words.offsets + np.cumsum(extra), len(of_library) + words.by_library)


KEEP, LEAD, TAIL = 0, 1, 2  # classes of a byte: kept or mapped by a table; first byte of a replaced character; others
UNSEEN, ODD = -1, -2


class CharacterSplitter(Splitter):
    """A splitter that normalizes character by character; subclasses replace each and decide where words begin."""

    def __init__(self) -> None:
        self._index = np.full(0x110000, UNSEEN, np.int32)  # code point -> number of its replacement
        self._replacements: list[bytes] = []
        self._flat, self._lengths = np.empty(0, np.uint8), np.empty(0, np.int64)

    @abc.abstractmethod
    def _replacement(self, character: str) -> str | None:
        """What replaces a character in normalized text; None: that depends on its neighbors."""

    @abc.abstractmethod
    def _regroup(self, text: bytes, begins: I64) -> Words:
        """Segment normalized text into words; rows begin at ``begins``."""

    def _map_bytes(self, before: list[int], after: list[int]) -> None:
        """Set the tables over single bytes: their class, and what kept ones are mapped to."""
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
        """Replace characters; also return where each row begins now."""
        lengths = self._lengths[numbers]
        firsts = offsets_of(self._lengths)[numbers]
        widths = CHARACTER_BYTES[np.frombuffer(raw, np.uint8)[leads]]
        shift = offsets_of(lengths - widths)  # growth of the text before each of them
        inserted = ranges(leads + shift[:-1], lengths)
        text = np.empty(len(raw) + int(shift[-1]), np.uint8)
        kept = np.ones(len(text), np.bool_)
        kept[inserted] = False
        text[kept] = np.frombuffer(raw.translate(self._after, self._replaced), np.uint8)
        text[inserted] = self._flat[ranges(firsts, lengths)]
        return text.tobytes(), starts + shift[np.searchsorted(leads, starts)]

    def _numbers(self, points: I64) -> I32:
        numbers = self._index[points]
        if (numbers == UNSEEN).any():
            # Python loop: one library call for each character that is new to this process.
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


def without_spaces(text: bytes, opens: Bools, begins: I64) -> Words:
    """Words of normalized text: they begin at ``opens`` and end at a space or the next one; rows at ``begins``."""
    places = np.flatnonzero(opens)
    letters = text.translate(None, b" ")
    spaces = np.cumsum(np.frombuffer(text, np.uint8) == 0x20, dtype=np.int32)
    ends = np.append(places - spaces[places], len(letters)).astype(np.int32)
    values = pa.StringArray.from_buffers(len(places), pa.py_buffer(ends), pa.py_buffer(letters))
    return Words(values, np.append(np.searchsorted(places, begins), len(places)), 0)


def rows_of(starts: I64, positions: I64) -> I64:
    """The rows in which these bytes lie, each once."""
    return np.unique(np.searchsorted(starts, positions, "right") - 1)


def code_points(data: U8, leads: I64) -> I64:
    """Code points of the characters that begin at ``leads``, ``[leads]``."""
    padded = np.append(data, np.zeros(3, np.uint8))
    first = data[leads].astype(np.int64)
    second, third, fourth = ((padded[leads + k] & 0x3F).astype(np.int64) for k in (1, 2, 3))
    two = (first & 0x1F) << 6 | second
    three = (first & 0x0F) << 12 | second << 6 | third
    four = (first & 0x07) << 18 | second << 12 | third << 6 | fourth
    return np.select([first < 0x80, first < 0xE0, first < 0xF0], [first, two, three], four)
