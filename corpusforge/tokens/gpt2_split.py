"""Split text into pre-tokens exactly as `tokenizers` does for GPT-2 and RoBERTa.

Nothing is dropped or changed, so the column of pre-tokens is the text itself with offsets. The pattern (openai/gpt-2,
src/encoder.py)

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

uses four classes of characters and nothing else about them, so it is a rule about runs of one class:

- a pre-token begins with every run, except that one 0x20 before a run that is not white space belongs to that run;
- of a longer run of white space before something else, the last character is by itself (or belongs to that run);
- an apostrophe that begins a pre-token takes s, t, re, ve, m, ll or d with it, and a new one begins after them.

The class of a character comes from the library, which is called once for every new character.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from tokenizers import pre_tokenizers

from corpusforge.arrays import I64, U8, Bools
from corpusforge.tokens.splitting import CHARACTER_BYTES, Splitter, Words, code_points

_SPACE, _LETTER, _NUMBER, _OTHER, _UNSEEN = 0, 1, 2, 3, 9

_CONTRACTIONS = (b"s", b"t", b"re", b"ve", b"m", b"ll", b"d")


def byte_letters() -> list[str]:
    """The character that represents each byte in tokens (openai/gpt-2, src/encoder.py, bytes_to_unicode).

    Printable bytes of Latin-1 represent themselves; the others are numbered from U+0100 on.

    >>> byte_letters()[0x41], byte_letters()[0x20], byte_letters()[0x0A]
    ('A', 'Ġ', 'Ċ')
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(0x100 + others.index(byte)) for byte in range(256)]


LETTERS = byte_letters()
BYTES = {letter: byte for byte, letter in enumerate(LETTERS)}
"""The characters by byte, and the bytes by character."""


@dataclasses.dataclass(frozen=True)
class Gpt2Segmentation:
    """Settings of the library's ByteLevel. ``add_prefix_space``: a row that begins without a space gets one."""

    add_prefix_space: bool = False

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        """The library's object with these settings."""
        return pre_tokenizers.ByteLevel(add_prefix_space=self.add_prefix_space)

    def splitter(self) -> Gpt2Splitter:
        """The splitter of this process with these settings; it keeps what it learned about characters."""
        return splitter_for(self)


GPT2 = Gpt2Segmentation()
"""As in GPT-2 and RoBERTa."""


@functools.cache
def splitter_for(segmentation: Gpt2Segmentation) -> Gpt2Splitter:
    """The splitter of this process with these settings."""
    return Gpt2Splitter(segmentation)


class Gpt2Splitter(Splitter):
    """Splits rows of text into pre-tokens.

    >>> Gpt2Splitter(Gpt2Segmentation()).words_of("I don't  know 12%\\n")
    ['I', ' don', "'t", ' ', ' know', ' 12', '%', '\\n']
    """

    keeps_space = True

    def __init__(self, segmentation: Gpt2Segmentation) -> None:
        self.segmentation = segmentation
        self._library = segmentation.pre_tokenizer()
        self._classifier = Gpt2Segmentation().pre_tokenizer()
        self._classes = np.full(0x110000, _UNSEEN, np.uint8)  # of code points
        self._learn(range(128))
        # Later bytes of a character get its class in `_classes_of`; until then they must not look like spaces.
        self._ascii = bytes([*self._classes[:128].tolist(), *[_OTHER] * 128])

    def __reduce__(self) -> tuple[object, tuple[Gpt2Segmentation]]:
        return splitter_for, (self.segmentation,)

    def words_of(self, text: str) -> list[str]:
        words = [word for word, _ in self._library.pre_tokenize_str(text)]
        return [bytes(BYTES[letter] for letter in word).decode() for word in words]

    def chunk_end(self, data: U8, wanted: int, stop: int, rows: I64) -> int:
        """The first place from ``wanted`` on between something else and ASCII white space, or between two rows."""
        row = int(np.searchsorted(rows, wanted))
        nearest = int(rows[row]) if row < len(rows) else stop
        at = max(wanted, 4)  # no character is longer
        while at < nearest:
            block = data[at : min(at + 4096, nearest)]
            before = data[at - 1 : at - 1 + len(block)]
            # With prefix spaces a chunk must not begin with a line feed: it would get a space before it.
            white = block == 0x20 if self.segmentation.add_prefix_space else (block == 0x20) | (block == 0x0A)
            for place in np.flatnonzero(white & (before > 0x20)).tolist():  # nearly always the first
                last = data[at + place - 4 : at + place].tobytes().decode(errors="ignore")[-1]
                if not last.isspace():
                    return int(at + place)
            at += len(block)
        return nearest

    def _split(self, data: U8, starts: I64) -> Words:
        if self.segmentation.add_prefix_space:
            data, starts = _with_prefixes(data, starts)
        size = len(data)
        classes = self._classes_of(data)
        inside = starts[starts < size]
        opens = _run_starts(data, classes, inside)
        self._single_spaces(data, classes, opens, inside)
        _contractions(data, opens, inside)
        begins = np.flatnonzero(opens)
        offsets = np.append(begins, size).astype(np.int32)
        values = pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(data.tobytes()))
        return Words(values, np.append(np.searchsorted(begins, starts), len(begins)), 0)

    def _classes_of(self, data: U8) -> U8:
        """For every byte the class of its character."""
        raw = data.tobytes()
        classes = np.frombuffer(bytearray(raw.translate(self._ascii)), np.uint8)
        if raw.isascii():
            return classes
        leads = np.flatnonzero(data >= 0xC0)
        points = code_points(data, leads)
        of_character = self._classes[points]
        if (of_character == _UNSEEN).any():
            self._learn(np.unique(points[of_character == _UNSEEN]).tolist())
            of_character = self._classes[points]
        widths = CHARACTER_BYTES[data[leads]]
        for k in range(4):
            longer = widths > k
            classes[leads[longer] + k] = of_character[longer]
        return classes

    def _single_spaces(self, data: U8, classes: U8, opens: Bools, starts: I64) -> None:
        """Begin a pre-token at the last character of white space before something else."""
        space = classes == _SPACE
        last = space[:-1] & ~space[1:]
        last[starts[starts > 0] - 1] = False  # at the end of a row nothing follows
        places = np.flatnonzero(last)
        for _ in range(2):  # white space has at most three bytes
            places = places - ((data[places] & 0xC0) == 0x80)
        opens[places] = True

    def _learn(self, points: Iterable[int]) -> None:
        # Python loop: one library call for each character that is new to this process.
        for point in points:
            self._classes[point] = self._class_of(chr(point))

    def _class_of(self, character: str) -> int:
        """A character has the class of its two neighbors if the three stay together."""
        for neighbor, class_ in (("a", _LETTER), ("1", _NUMBER), ("!", _OTHER)):
            if len(self._classifier.pre_tokenize_str(neighbor + character + neighbor)) == 1:
                return class_
        return _SPACE


def _run_starts(data: U8, classes: U8, starts: I64) -> Bools:
    """Where a run of one class or a row begins; a 0x20 before a run belongs to it."""
    opens = np.empty(len(data), np.bool_)
    opens[:1] = True
    np.not_equal(classes[1:], classes[:-1], out=opens[1:])
    opens[1:] &= (data[:-1] != 0x20) | (classes[1:] == _SPACE)
    opens[starts] = True
    return opens


def _contractions(data: U8, opens: Bools, starts: I64) -> None:
    """Join an apostrophe that begins a pre-token with its ending."""
    marks = np.flatnonzero((data == 0x27) & opens)
    if not len(marks):
        return
    padded = np.append(data, np.zeros(3, np.uint8))
    first, second = padded[marks + 1], padded[marks + 2]
    lengths = np.zeros(len(marks), np.int64)
    for ending in _CONTRACTIONS:
        fits = first == ending[0]
        if len(ending) == 2:
            fits &= second == ending[1]
        lengths[fits] = 1 + len(ending)
    begins = np.zeros(len(data) + 3, np.bool_)
    begins[starts] = True
    lengths[begins[marks + 1] | ((lengths == 3) & begins[marks + 2])] = 0  # not across the end of a row
    marks, lengths = marks[lengths > 0], lengths[lengths > 0]
    opens[marks + 1] = False
    after = marks + lengths
    opens[after[after < len(data)]] = True


def _with_prefixes(data: U8, starts: I64) -> tuple[U8, I64]:
    """Insert a space before every row that is not empty and has none."""
    ends = np.append(starts[1:], len(data))
    bare = (starts < ends) & (np.append(data, 0)[starts] != 0x20)
    return np.insert(data, starts[bare], 0x20), starts + np.cumsum(bare) - bare
