"""Split text into words as SentencePiece's families do: normalized, split at white space, ``▁word``.

Columns of words omit the U+2581 (`Splitter.mark`). Rows in which neighbors matter go to the library whole: quotes in
pairs (ALBERT turns `` and '' into "), a literal U+2581, and, where a compiled character map is applied (to grapheme
clusters: huggingface/tokenizers, normalizers/precompiled.rs), characters that may join a cluster with a neighbor.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import unicodedata
from typing import Any

import numpy as np
from tokenizers import normalizers, pre_tokenizers

from corpusforge.arrays import I64, U8
from corpusforge.tokens.splitting import (
    CHUNK_BYTES,
    KEEP,
    LEAD,
    TAIL,
    CharacterSplitter,
    Words,
    rows_of,
    without_spaces,
)

SPACE = "\u2581"
"""The character that SentencePiece writes for a space (google/sentencepiece, kSpaceSymbol)."""

WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
WHITE += "\u202f\u205f\u3000"
"""Unicode's White_Space: where the library's WhitespaceSplit splits."""

_JOINING = frozenset("\r\u0e33\u0eb3\uff9e\uff9f\u0d4e")
"""Letters and signs that join a cluster despite their category (Unicode, GraphemeBreakProperty.txt)."""


@dataclasses.dataclass(frozen=True)
class SentencePieceSegmentation:
    """Steps of normalization, in their order. ``charsmap``: a compiled character map, base64; "": none."""

    quotes: bool = True
    strip_accents: bool = True
    lowercase: bool = True
    charsmap: str = ""

    def normalizer(self) -> Any:
        """The library's object with these settings."""
        steps = self.steps()
        if self.charsmap:
            steps.append(normalizers.Precompiled(base64.b64decode(self.charsmap)))
        return normalizers.Sequence(steps)

    def steps(self) -> list[Any]:
        """The library's objects before the character map."""
        steps: list[Any] = []
        if self.quotes:
            steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if self.strip_accents:
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        if self.lowercase:
            steps.append(normalizers.Lowercase())
        return steps

    def pre_tokenizer(self) -> Any:
        """The library's object that splits normalized text."""
        metaspace = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
        return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])

    def splitter(self) -> SentencePieceSplitter:
        """The splitter of this process with these settings; it keeps what it learned about characters."""
        return splitter_for(self)


@functools.cache
def splitter_for(segmentation: SentencePieceSegmentation) -> SentencePieceSplitter:
    """The splitter of this process with these settings; it keeps what it learned about characters."""
    return SentencePieceSplitter(segmentation)


class SentencePieceSplitter(CharacterSplitter):
    """Splits rows of text into normalized words that begin with U+2581.

    >>> SentencePieceSplitter(SentencePieceSegmentation()).words_of("Don't panic,  Zoë!")
    ["▁don't", '▁panic,', '▁zoe!']
    """

    mark = SPACE

    def __init__(self, segmentation: SentencePieceSegmentation) -> None:
        super().__init__()
        self.segmentation = segmentation
        self._normalizer, self._pre_tokenizer = segmentation.normalizer(), segmentation.pre_tokenizer()
        self._steps = normalizers.Sequence(segmentation.steps())
        self._line_ends_split = self.words_of("a\r\na \ra") == [f"{SPACE}a"] * 3
        self._read_ascii()

    def __reduce__(self) -> tuple[object, tuple[SentencePieceSegmentation]]:
        return splitter_for, (self.segmentation,)

    def words_of(self, text: str) -> list[str]:
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(self._normalizer.normalize_str(text))]

    def chunk_end(self, data: U8, wanted: int, stop: int, rows: I64) -> int:
        """The first place between two rows, or between ASCII white space and what cannot join a cluster."""
        row = int(np.searchsorted(rows, wanted))
        nearest = int(rows[row]) if row < len(rows) else stop
        for at in range(wanted, nearest, CHUNK_BYTES):
            block = data[at : min(at + CHUNK_BYTES + 1, nearest)]
            white = (block[:-1] == 0x20) | (block[:-1] == 0x0A)
            apart = (block[1:] < 0x80) | ((block[1:] >= 0xE4) & (block[1:] < 0xEA))  # ASCII, U+4000 to U+9FFF
            places = np.flatnonzero(white & apart)
            if len(places):
                return at + int(places[0]) + 1
        return nearest

    def _split(self, data: U8, starts: I64) -> Words:
        if self.segmentation.quotes:
            doubled = (data[1:] == data[:-1]) & ((data[1:] == 0x60) | (data[1:] == 0x27))
            if doubled.any():
                return self._with_library(data, starts, rows_of(starts, np.flatnonzero(doubled)))
        return super()._split(data, starts)

    def _regroup(self, text: bytes, begins: I64) -> Words:
        """Segment normalized text at spaces and where rows begin."""
        inside = np.frombuffer(text, np.uint8) != 0x20
        opens = inside.copy()
        opens[1:] &= ~inside[:-1]
        forced = begins[begins < len(text)]
        opens[forced] |= inside[forced]
        return without_spaces(text, opens, begins)

    def _answer(self, character: str) -> str:
        """What replaces a character in normalized text, white space as " "."""
        return "".join(" " if c in WHITE else c for c in self._normalizer.normalize_str(character))

    def _replacement(self, character: str) -> str | None:
        answer = self._answer(character)
        mapped = self._steps.normalize_str(character) if self.segmentation.charsmap else ""
        return None if SPACE in answer or any(map(self._joins, mapped)) else answer

    def _joins(self, character: str) -> bool:
        # CR and LF are one cluster. Where it is white space like each of them, words do not depend on it.
        return joins_cluster(character) and not (character == "\r" and self._line_ends_split)

    def _read_ascii(self) -> None:
        """Build the tables over single bytes: what replaces ASCII, and which bytes need a look-up."""
        before, after = [KEEP] * 128 + [TAIL] * 64 + [LEAD] * 64, list(range(256))
        for byte in range(128):
            answer = self._answer(chr(byte))
            if len(answer) == 1 and answer.isascii() and not (self.segmentation.charsmap and self._joins(chr(byte))):
                after[byte] = ord(answer)
            else:
                before[byte] = LEAD
        self._map_bytes(before, after)


def joins_cluster(character: str) -> bool:
    """Whether a character may share a grapheme cluster with its neighbor; errs on the side of yes."""
    point = ord(character)
    if character in _JOINING or 0x1F1E6 <= point <= 0x1F1FF or 0x1F3FB <= point <= 0x1F3FF:
        return True
    if 0x1100 <= point < 0x1200 or 0xA960 <= point < 0xA980 or 0xD7B0 <= point < 0xD800:  # jamo
        return True
    if 0x11000 <= point < 0x12000 or point >= 0xE0000:  # Indic scripts with letters that precede; tags
        return True
    return unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf", "Cn", "Zl", "Zp")
