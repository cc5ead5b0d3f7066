"""Columns of text to columns of words, cut exactly as the `tokenizers` library cuts them for BERT.

In: UTF-8 bytes of many rows (documents or sentences). Out: one Arrow column of words and the offsets of the rows in it.
The decision: the library stays the single source of truth. What it does to a character does not depend on the
neighbours (google-research/bert `tokenization.py` BasicTokenizer; huggingface/tokenizers `normalizers/bert.rs`), so
every character met is shown to the library once, its answer kept, and the answers are spliced in by NumPy. The one
exception is canonical reordering of combining marks that stay in the text (some two hundred of rare scripts, which
have a combining class and are not stripped); rows with such a mark go to the library whole.
"""

from __future__ import annotations

import dataclasses
import functools
import unicodedata

import numpy as np
import numpy.typing as npt
from tokenizers import normalizers, pre_tokenizers

from corpusforge.text import I64, U8
from corpusforge.tokens.columns import CHARACTER_BYTES, Splitter, Words, code_points, ragged_positions, without_spaces

_SPACE, _WORD, _ALONE = 0, 1, 2  # classes of a byte after normalisation; _ALONE: a word by itself
_KEEP, _LEAD, _TAIL = 0, 1, 2  # classes of a byte before: kept or mapped as it is, replaced, behind a lead byte
_UNSEEN, _ODD = -1, -2


@dataclasses.dataclass(frozen=True)
class Normalization:
    """Settings of the library's BertNormalizer. ``strip_accents`` None: follows ``lowercase``, as BERT did."""

    lowercase: bool = True
    strip_accents: bool | None = None
    isolate_chinese: bool = True
    clean: bool = True

    def normalizer(self) -> normalizers.Normalizer:
        """The library's object with these settings."""
        return normalizers.BertNormalizer(
            clean_text=self.clean,
            handle_chinese_chars=self.isolate_chinese,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )

    def splitter(self) -> WordSplitter:
        """The process's splitter with these settings; it keeps what it learned about characters."""
        return splitter_for(self)


UNCASED = Normalization()
"""As bert-base-uncased cuts text."""


@functools.cache
def splitter_for(normalization: Normalization) -> WordSplitter:
    """The process's splitter with these settings; it keeps what it learned about characters."""
    return WordSplitter(normalization)


class WordSplitter(Splitter):
    """Cuts rows of text into normalised words.

    >>> splitter = WordSplitter(Normalization(lowercase=True))
    >>> splitter.words_of("Don't panic, Zoë! 東京")
    ['don', "'", 't', 'panic', ',', 'zoe', '!', '東', '京']
    """

    def __init__(self, normalization: Normalization) -> None:
        self.normalization = normalization
        self._normalizer = normalization.normalizer()
        self._pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._index = np.full(0x110000, _UNSEEN, np.int32)  # code point -> number of its replacement
        self._replacements: list[bytes] = []
        self._flat, self._lengths = np.empty(0, np.uint8), np.empty(0, np.int64)
        self._read_ascii()

    def __reduce__(self) -> tuple[object, tuple[Normalization]]:
        return splitter_for, (self.normalization,)

    def words_of(self, text: str) -> list[str]:
        """What the library makes of one text, whole."""
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(self._normalizer.normalize_str(text))]

    def _split(self, data: U8, starts: I64) -> Words:
        raw = data.tobytes()
        classes = np.frombuffer(raw.translate(self._before), np.uint8)
        if not classes.any():
            return self._regroup(raw.translate(self._after), starts)
        leads = np.flatnonzero(classes == _LEAD)
        points = code_points(data, leads)
        numbers = self._numbers(points)
        odd = np.unique(np.searchsorted(starts, leads[numbers == _ODD], "right") - 1)
        if len(odd):
            return self._with_library(data, starts, odd)
        return self._regroup(*self._splice(raw, leads, numbers, starts))

    def _splice(self, raw: bytes, leads: I64, numbers: npt.NDArray[np.int32], starts: I64) -> tuple[bytes, I64]:
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

    def _regroup(self, text: bytes, begins: I64) -> Words:
        """Cut normalised text at spaces, around words of one character, and where rows begin."""
        classes = np.frombuffer(text.translate(self._classes), np.uint8)
        inside = classes == _WORD
        opens = classes == _ALONE
        opens[1:] |= inside[1:] & ~inside[:-1]
        opens[:1] |= inside[:1]
        forced = begins[begins < len(text)]
        opens[forced] |= inside[forced]
        return without_spaces(text, opens, begins)

    def _numbers(self, points: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        numbers = self._index[points]
        if (numbers == _UNSEEN).any():
            # A Python loop with a reason: one library call for each character never met before in this process.
            for point in np.unique(points[numbers == _UNSEEN]).tolist():
                self._learn(point)
            self._lengths = np.array([len(r) for r in self._replacements], np.int64)
            self._flat = np.frombuffer(b"".join(self._replacements), np.uint8)
            numbers = self._index[points]
        return numbers

    def _answer(self, character: str) -> str:
        """What stands for a character between two letters: "" dropped, " " white space, " ! " a word by itself."""
        return " ".join(self.words_of(f"a{character}a"))[1:-1]

    def _learn(self, point: int) -> None:
        answer = self._answer(chr(point))
        if any(unicodedata.combining(c) for c in answer) and self._decomposes:
            self._index[point] = _ODD
            return
        self._index[point] = len(self._replacements)
        self._replacements.append(answer.encode())

    @property
    def _decomposes(self) -> bool:
        strip = self.normalization.strip_accents
        return self.normalization.lowercase if strip is None else strip

    def _read_ascii(self) -> None:
        """Tables over single bytes: what becomes of ASCII, and the class of every byte of normalised text."""
        before = [_KEEP] * 128 + [_TAIL] * 64 + [_LEAD] * 64
        after, classes = list(range(256)), [_WORD] * 256
        for byte in range(128):
            answer = self._answer(chr(byte))
            if answer == "":
                before[byte] = _LEAD
            else:
                after[byte] = ord(answer[len(answer) // 2])  # "x", " " or " ! "
                classes[after[byte]] = _SPACE if answer == " " else _ALONE if answer[0] == " " else _WORD
        self._before, self._after, self._classes = bytes(before), bytes(after), bytes(classes)
        self._replaced = bytes(b for b in range(256) if before[b] != _KEEP)
