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
from tokenizers import normalizers, pre_tokenizers

from corpusforge.arrays import I64
from corpusforge.tokens.characters import KEEP, LEAD, TAIL, CharacterSplitter
from corpusforge.tokens.columns import Words, without_spaces

_SPACE, _WORD, _ALONE = 0, 1, 2  # classes of a byte after normalisation; _ALONE: a word by itself


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


class WordSplitter(CharacterSplitter):
    """Cuts rows of text into normalised words.

    >>> splitter = WordSplitter(Normalization(lowercase=True))
    >>> splitter.words_of("Don't panic, Zoë! 東京")
    ['don', "'", 't', 'panic', ',', 'zoe', '!', '東', '京']
    """

    def __init__(self, normalization: Normalization) -> None:
        super().__init__()
        self.normalization = normalization
        self._normalizer = normalization.normalizer()
        self._pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._read_ascii()

    def __reduce__(self) -> tuple[object, tuple[Normalization]]:
        return splitter_for, (self.normalization,)

    def words_of(self, text: str) -> list[str]:
        """What the library makes of one text, whole."""
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(self._normalizer.normalize_str(text))]

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

    def _answer(self, character: str) -> str:
        """What stands for a character between two letters: "" dropped, " " white space, " ! " a word by itself."""
        return " ".join(self.words_of(f"a{character}a"))[1:-1]

    def _replacement(self, character: str) -> str | None:
        answer = self._answer(character)
        return None if any(unicodedata.combining(c) for c in answer) and self._decomposes else answer

    @property
    def _decomposes(self) -> bool:
        strip = self.normalization.strip_accents
        return self.normalization.lowercase if strip is None else strip

    def _read_ascii(self) -> None:
        """Tables over single bytes: what becomes of ASCII, and the class of every byte of normalised text."""
        before = [KEEP] * 128 + [TAIL] * 64 + [LEAD] * 64
        after, classes = list(range(256)), [_WORD] * 256
        for byte in range(128):
            answer = self._answer(chr(byte))
            if answer == "":
                before[byte] = LEAD
            else:
                after[byte] = ord(answer[len(answer) // 2])  # "x", " " or " ! "
                classes[after[byte]] = _SPACE if answer == " " else _ALONE if answer[0] == " " else _WORD
        self._map_bytes(before, after)
        self._classes = bytes(classes)
