"""Normalized words of documents, and hashes of n of them in a row.

A word is a run of letters and digits in lower case; everything else separates ("the company's", "the company 's"), and
an ideograph or kana is a word of its own. So texts match whatever their punctuation, spaces, case, tokenization and
composition of characters.
"""

from __future__ import annotations

import functools
import unicodedata
from functools import cached_property

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I64, U8, U64, Bools
from corpusforge.clean.nfc import composed
from corpusforge.seeds import mix
from corpusforge.text import text_bytes

ALONE = (range(0x3005, 0x3008), range(0x3041, 0xA000), range(0xF900, 0xFB00))
"""Ideographs and kana: words of one character."""
WORD_BYTES = 64  # looked at of a longer word: so text without spaces costs no more than other text
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
        found = mix((chunks[self.starts] & _MASKS[np.minimum(left, 8)]) ^ (self.stops - self.starts).astype(np.uint64))
        active = np.flatnonzero(left > 8)
        for k in range(8, WORD_BYTES, 8):
            rest = left[active] - k
            chunk = chunks[self.starts[active] + k] & _MASKS[np.minimum(rest, 8)]
            found[active] = mix(found[active] ^ chunk)
            active = active[rest > 8]
            if not len(active):
                break
        return found

    def ngrams(self, length: int) -> U64:
        """The hash of ``length`` words from each word on, for all words followed by enough others in the batch.

        Whether they lie in one document is for the caller to see: word i does if ``i + length <= offsets[d + 1]``.
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
        """The same for some words only."""
        total = np.zeros(len(places), np.uint64)
        with np.errstate(over="ignore"):
            for k in range(length):
                total += self.hashes[places + k] * _radix(k)
            return mix(total)

    def _power(self, length: int) -> U64:
        """Sums over 1, 2, 4, 8... words, each made of two halves: so 13 words take five steps."""
        if length == 1:
            return self.hashes
        if length not in self._powers:
            half = self._power(length // 2)
            with np.errstate(over="ignore"):
                self._powers[length] = half[: -(length // 2)] + half[length // 2 :] * _radix(length // 2)
        return self._powers[length]

    def text(self, first: int, length: int) -> str:
        """Some words in a row, for people."""
        words = zip(self.starts[first : first + length], self.stops[first : first + length], strict=True)
        return " ".join(self.data[a:b].tobytes().decode("utf-8", "replace") for a, b in words)


def _radix(power: int) -> np.uint64:
    return np.uint64(pow(int(_RADIX), power, 1 << 64))


def normal_words(text: pa.StringArray) -> NormalWords:
    """The words of every document in normal form.

    >>> found = normal_words(pa.array(["The Company's — 2nd!", "", "École 你好。"]))
    >>> [found.text(a, b - a) for a, b in zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist())]
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
    """Put characters beyond ASCII into normal form, in place; returns where those begin that are words alone."""
    at = np.flatnonzero(normal >= 0xC2)
    if not len(at):
        return at
    forms, alone = _tables()
    lead = normal[at]
    two, three = at[lead < 0xE0], at[(lead >= 0xE0) & (lead < 0xF0)]
    codes = (normal[two] & 0x1F).astype(np.int64) << 6 | normal[two + 1] & 0x3F
    made = forms[codes]
    normal[two], normal[two + 1] = made >> 6 | 0xC0, made & 0x3F | 0x80
    spaces = [(two[made == 0], 2)]
    codes = (normal[three] & 0x0F).astype(np.int64) << 12 | (normal[three + 1] & 0x3F).astype(np.int64) << 6
    codes |= normal[three + 2] & 0x3F
    made = forms[codes]
    normal[three], normal[three + 1] = made >> 12 | 0xE0, made >> 6 & 0x3F | 0x80
    normal[three + 2] = made & 0x3F | 0x80
    four = at[lead == 0xF0]
    spaces += [(three[made == 0], 3), (four[normal[four + 1] == 0x9F], 4)]  # U+1F000 to U+1FFFF: pictures
    for places, width in spaces:
        for k in range(width):
            normal[places + k] = _SPACE
    return np.asarray(three[alone[codes]])


@functools.cache
def _tables() -> tuple[I64, Bools]:
    """Of code points up to U+FFFF: the normal form (0: separates), and whether it is a word alone.

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
