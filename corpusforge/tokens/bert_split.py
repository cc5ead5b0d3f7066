"""Split text into words exactly as `tokenizers` does for BERT: at spaces, around punctuation and Chinese characters.

What the library does to a character does not depend on its neighbors (google-research/bert `tokenization.py`
BasicTokenizer; huggingface/tokenizers `normalizers/bert.rs`), so `CharacterSplitter` applies. The one exception is
canonical reordering of combining marks that stay in the text (some two hundred of rare scripts, which have a combining
class and are not stripped); rows with such a mark go to the library whole.
"""

from __future__ import annotations

import dataclasses
import functools
import unicodedata

import numpy as np
from tokenizers import normalizers, pre_tokenizers

from corpusforge.arrays import I64
from corpusforge.tokens.splitting import KEEP, LEAD, TAIL, CharacterSplitter, Words, without_spaces

_SPACE, _WORD, _ALONE = 0, 1, 2  # classes of a byte after normalization; _ALONE: a word by itself


@dataclasses.dataclass(frozen=True)
class BertSegmentation:
    """Settings of the library's BertNormalizer. ``strip_accents`` None: follows ``lowercase``, as in BERT."""

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

    def splitter(self) -> BertSplitter:
        """The splitter of this process with these settings; it keeps what it learned about characters."""
        return splitter_for(self)


UNCASED = BertSegmentation()
"""As in bert-base-uncased."""


@functools.cache
def splitter_for(segmentation: BertSegmentation) -> BertSplitter:
    """The splitter of this process with these settings."""
    return BertSplitter(segmentation)


class BertSplitter(CharacterSplitter):
    """Splits rows of text into normalized words.

    >>> splitter = BertSplitter(BertSegmentation(lowercase=True))
    >>> splitter.words_of("Don't panic, Zoë! 東京")
    ['don', "'", 't', 'panic', ',', 'zoe', '!', '東', '京']
    """

    def __init__(self, segmentation: BertSegmentation) -> None:
        super().__init__()
        self.segmentation = segmentation
        self._normalizer = segmentation.normalizer()
        self._pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._read_ascii()

    def __reduce__(self) -> tuple[object, tuple[BertSegmentation]]:
        return splitter_for, (self.segmentation,)

    def words_of(self, text: str) -> list[str]:
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(self._normalizer.normalize_str(text))]

    def _regroup(self, text: bytes, begins: I64) -> Words:
        """Segment normalized text at spaces, around words of one character, and where rows begin."""
        classes = np.frombuffer(text.translate(self._classes), np.uint8)
        inside = classes == _WORD
        opens = classes == _ALONE
        opens[1:] |= inside[1:] & ~inside[:-1]
        opens[:1] |= inside[:1]
        forced = begins[begins < len(text)]
        opens[forced] |= inside[forced]
        return without_spaces(text, opens, begins)

    def _answer(self, character: str) -> str:
        """What replaces a character between two letters: "" dropped, " " white space, " ! " a word by itself."""
        return " ".join(self.words_of(f"a{character}a"))[1:-1]

    def _replacement(self, character: str) -> str | None:
        answer = self._answer(character)
        return None if any(unicodedata.combining(c) for c in answer) and self._decomposes else answer

    @property
    def _decomposes(self) -> bool:
        strip = self.segmentation.strip_accents
        return self.segmentation.lowercase if strip is None else strip

    def _read_ascii(self) -> None:
        """Build the tables over single bytes: what replaces ASCII, and the class of every byte of normalized text."""
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
