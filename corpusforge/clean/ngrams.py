"""Normalized words of documents, and hashes of their n-grams.

A word is a run of letters and digits in lower case; everything else separates ("the company's", "the company 's"), and
an ideograph or kana is a word of its own. So texts match whatever their punctuation, spaces, case, tokenization and
composition of characters.

Text is put into composed form first (Unicode NFC), in which "é" is one character, however it was typed. Most text is in
that form already, so only rows with a character that could change (a combining mark after a letter, a jamo, a
compatibility ideograph) are normalized; they are found by the first two bytes of characters beyond ASCII.
"""

from __future__ import annotations

import functools
import unicodedata
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, U8, U64, Bools
from corpusforge.seeds import mix
from corpusforge.text import text_bytes

ALONE = (range(0x3005, 0x3008), range(0x3041, 0xA000), range(0xF900, 0xFB00))
"""Ideographs and kana: words of one character."""
WORD_BYTES = 64  # hashed of a longer word, so that text without spaces costs no more than other text
_SPACE = 0x20
_RADIX = np.uint64(0x9E3779B97F4A7C15)  # odd: 2^64 over the golden ratio, as in SplitMix64
_MASKS = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)
_NORMAL = np.array([b if b > 0x7F or chr(b).isalnum() else _SPACE for b in range(256)], np.uint8)
_NORMAL[0x41:0x5B] += 0x20


class NormalWords:
    """Words as ascending byte spans of ``data``; document i owns words ``offsets[i]`` to ``offsets[i + 1]``."""

    def __init__(self, data: U8, starts: I64, stops: I64, offsets: I64) -> None:
        self.data, self.starts, self.stops, self.offsets = data, starts, stops, offsets
        self._powers: dict[int, U64] = {}

    @cached_property
    def hashes(self) -> U64:
        """A hash of every word."""
        data = np.concatenate([self.data, np.zeros(8, np.uint8)])
        chunks = np.ndarray((len(data) - 7,), "<u8", data.data, strides=(1,))
        left = np.minimum(self.stops - self.starts, WORD_BYTES)
        hashes = mix((chunks[self.starts] & _MASKS[np.minimum(left, 8)]) ^ (self.stops - self.starts).astype(np.uint64))
        active = np.flatnonzero(left > 8)
        for k in range(8, WORD_BYTES, 8):
            rest = left[active] - k
            chunk = chunks[self.starts[active] + k] & _MASKS[np.minimum(rest, 8)]
            hashes[active] = mix(hashes[active] ^ chunk)
            active = active[rest > 8]
            if not len(active):
                break
        return hashes

    def ngrams(self, length: int) -> U64:
        """The hash of the n-gram of ``length`` words from each word on, for all words followed by enough others.

        The caller checks that it lies in one document d: from word i on it does if ``i + length <= offsets[d + 1]``.
        """
        count = max(0, len(self.starts) - length + 1)
        total, passed = np.zeros(count, np.uint64), 0
        with np.errstate(over="ignore"):
            for power in (p for p in (64, 32, 16, 8, 4, 2, 1) if p <= length):
                while passed + power <= length:
                    total += self._power(power)[passed : passed + count] * _radix(passed)
                    passed += power
            return mix(total)

    def ngrams_at(self, places: I64, length: int) -> U64:
        """The same for the words at ``places`` only."""
        total = np.zeros(len(places), np.uint64)
        with np.errstate(over="ignore"):
            for k in range(length):
                total += self.hashes[places + k] * _radix(k)
            return mix(total)

    def _power(self, length: int) -> U64:
        """Sums over 1, 2, 4, 8... words, each of two halves, so that 13 words take five steps."""
        if length == 1:
            return self.hashes
        if length not in self._powers:
            half = self._power(length // 2)
            with np.errstate(over="ignore"):
                self._powers[length] = half[: -(length // 2)] + half[length // 2 :] * _radix(length // 2)
        return self._powers[length]

    def text(self, first: int, length: int) -> str:
        """Consecutive words as text, for people."""
        words = zip(self.starts[first : first + length], self.stops[first : first + length], strict=True)
        return " ".join(self.data[a:b].tobytes().decode("utf-8", "replace") for a, b in words)


def _radix(power: int) -> np.uint64:
    return np.uint64(pow(int(_RADIX), power, 1 << 64))


def normal_words(text: pa.StringArray) -> NormalWords:
    """The words of every document in normal form.

    >>> words = normal_words(pa.array(["The Company's — 2nd!", "", "École 你好。"]))
    >>> [words.text(a, b - a) for a, b in zip(words.offsets[:-1].tolist(), words.offsets[1:].tolist())]
    ['the company s 2nd', '', 'école 你 好']
    """
    data, offsets = text_bytes(composed(text))
    low, high = int(offsets[0]), int(offsets[-1])
    normal = _NORMAL[data[low:high]]
    bounds = offsets - low
    alone = _split_wide(normal)
    inside = normal != _SPACE
    starts, stops = inside.copy(), inside.copy()
    starts[1:] &= ~inside[:-1]
    stops[:-1] &= ~inside[1:]
    filled = np.flatnonzero(np.diff(bounds))
    starts[bounds[filled]] = inside[bounds[filled]]
    stops[bounds[filled + 1] - 1] = inside[bounds[filled + 1] - 1]
    if len(alone):
        starts[alone] = True
        starts[(alone + 3)[inside[np.minimum(alone + 3, len(inside) - 1)] & (alone + 3 < len(inside))]] = True
        stops[alone + 2] = True
        stops[(alone - 1)[inside[np.maximum(alone - 1, 0)] & (alone > 0)]] = True
    begins = np.flatnonzero(starts)
    return NormalWords(normal, begins, np.flatnonzero(stops) + 1, np.searchsorted(begins, bounds))


def _split_wide(normal: U8) -> I64:
    """Put characters beyond ASCII into normal form, in place; returns where those begin that are words of their own."""
    at = np.flatnonzero(normal >= 0xC2)
    if not len(at):
        return at
    forms, alone = _tables()
    lead = normal[at]
    two, three = at[lead < 0xE0], at[(lead >= 0xE0) & (lead < 0xF0)]
    codes = (normal[two] & 0x1F).astype(np.int64) << 6 | normal[two + 1] & 0x3F
    form = forms[codes]
    normal[two], normal[two + 1] = form >> 6 | 0xC0, form & 0x3F | 0x80
    spaces = [(two[form == 0], 2)]
    codes = (normal[three] & 0x0F).astype(np.int64) << 12 | (normal[three + 1] & 0x3F).astype(np.int64) << 6
    codes |= normal[three + 2] & 0x3F
    form = forms[codes]
    normal[three], normal[three + 1] = form >> 12 | 0xE0, form >> 6 & 0x3F | 0x80
    normal[three + 2] = form & 0x3F | 0x80
    four = at[lead == 0xF0]
    spaces += [(three[form == 0], 3), (four[normal[four + 1] == 0x9F], 4)]  # U+1F000 to U+1FFFF: pictures
    for places, width in spaces:
        for k in range(width):
            normal[places + k] = _SPACE
    return np.asarray(three[alone[codes]])


@functools.cache
def _tables() -> tuple[I64, Bools]:
    """For code points up to U+FFFF: the normal form (0: a separator), and whether it is a word of its own.

    Letters, marks and numbers by Unicode's categories, in lower case where that takes as many bytes.
    """
    forms = np.zeros(0x10000, np.int64)
    # A Python loop with a reason: 60,000 look-ups once a process, a few hundredths of a second.
    for code in (*range(0x80, 0xD800), *range(0xE000, 0x10000)):
        if unicodedata.category(chr(code))[0] in "LMN":
            low = ord(chr(code).lower()[0])
            forms[code] = low if (low < 0x80, low < 0x800) == (False, code < 0x800) else code
    alone = np.zeros(0x10000, bool)
    for codes in ALONE:
        alone[codes] = True
    return forms, alone & (forms > 0)


_CODES = 0x30000  # canonical decompositions exist only below (CJK Compatibility Ideographs Supplement)
_JAMO = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))
"""Vowels and final consonants, which join the preceding syllable (The Unicode Standard, 3.12)."""


def composed(texts: pa.StringArray) -> pa.StringArray:
    """The column in NFC.

    >>> composed(pa.array(["e\\u0301t\\u00e9", "plain"])).to_pylist()
    ['été', 'plain']
    """
    data, offsets = text_bytes(texts)
    low = int(offsets[0])
    places = _unsettled(data[low : offsets[-1]])
    if not len(places):
        return texts
    rows = np.zeros(len(texts), bool)
    rows[np.searchsorted(offsets - low, places, "right") - 1] = True
    chosen = pa.array(rows)
    # A Python loop with a reason: Arrow's `utf8_normalize` (25.0) gives NFD for NFC, and is no faster.
    normalized = [unicodedata.normalize("NFC", text) for text in texts.filter(chosen).to_pylist()]
    return pc.replace_with_mask(texts, chosen, pa.array(normalized, pa.string()))


def _unsettled(data: U8) -> I64:
    """The offsets of characters that composing may change."""
    wide = np.flatnonzero(data >= 0xC2)
    tables = _nfc_tables() if len(wide) else None
    if tables is None:
        return wide
    pairs = data[wide].astype(np.int64) << 8 | data[wide + 1]
    wide = wide[tables.pairs[pairs]]
    codes = _codes(data, wide)
    known = np.minimum(codes, _CODES - 1)
    changes, mark = tables.changes[known], tables.marks[known]
    # Consecutive marks may have to be reordered.
    width = np.where(codes < 0x800, 2, np.where(codes < 0x10000, 3, 4))
    row = mark[:-1] & mark[1:] & (wide[:-1] + width[:-1] == wide[1:])
    changes[1:] |= row
    return np.asarray(wide[changes])


def _codes(data: U8, at: I64) -> I64:
    """Code points of the characters beyond ASCII that begin at these offsets."""
    lead = data[at].astype(np.int64)
    rest = [data[np.minimum(at + k, len(data) - 1)].astype(np.int64) & 0x3F for k in (1, 2, 3)]
    two = (lead & 0x1F) << 6 | rest[0]
    three = (lead & 0x0F) << 12 | rest[0] << 6 | rest[1]
    four = (lead & 0x07) << 18 | rest[0] << 12 | rest[1] << 6 | rest[2]
    return np.asarray(np.where(lead < 0xE0, two, np.where(lead < 0xF0, three, four)))


class _NfcTables(NamedTuple):
    """``changes``, ``marks``: of code points, whether composing may change them, whether they are ordered marks.
    ``pairs``: whether one of these begins with these two bytes."""

    changes: Bools
    marks: Bools
    pairs: Bools


@functools.cache
def _nfc_tables() -> _NfcTables:
    changes, marks, pairs = np.zeros(_CODES, bool), np.zeros(_CODES, bool), np.zeros(1 << 16, bool)
    for codes in _JAMO:
        changes[codes] = True
    # A Python loop with a reason: 200,000 look-ups once a process, a tenth of a second.
    for code in (*range(0x80, 0xD800), *range(0xE000, _CODES)):
        letter = chr(code)
        marks[code] = unicodedata.combining(letter) > 0
        parts = unicodedata.decomposition(letter)
        if parts and parts[0] != "<":
            if not unicodedata.is_normalized("NFC", letter):
                changes[code] = True
            elif " " in parts:
                changes[int(parts.split()[1], 16)] = True
    for code in np.flatnonzero(changes | marks).tolist():
        lead, second = chr(code).encode()[:2]
        pairs[lead << 8 | second] = True
    return _NfcTables(changes, marks, pairs)
