"""Text in composed form (Unicode NFC): "é" is one character, however it was typed.

Most text is in that form already, so only rows with a character that could change (a combining mark after a letter, a
jamo, a compatibility ideograph) are normalized; finding them reads the first two bytes of characters beyond ASCII.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, U8, Bools
from corpusforge.text import text_bytes

_CODES = 0x30000  # all that has a canonical decomposition lies below (CJK Compatibility Ideographs Supplement)
_JAMO = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))
"""Vowels and final consonants, which join the syllable before (The Unicode Standard, 3.12)."""


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
    made = [unicodedata.normalize("NFC", text) for text in texts.filter(chosen).to_pylist()]
    return pc.replace_with_mask(texts, chosen, pa.array(made, pa.string()))


def _unsettled(data: U8) -> I64:
    """Where characters stand that composing may change."""
    wide = np.flatnonzero(data >= 0xC2)
    tables = _tables() if len(wide) else None
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
    """Code points of the characters beyond ASCII that begin at some places."""
    lead = data[at].astype(np.int64)
    rest = [data[np.minimum(at + k, len(data) - 1)].astype(np.int64) & 0x3F for k in (1, 2, 3)]
    two = (lead & 0x1F) << 6 | rest[0]
    three = (lead & 0x0F) << 12 | rest[0] << 6 | rest[1]
    four = (lead & 0x07) << 18 | rest[0] << 12 | rest[1] << 6 | rest[2]
    return np.asarray(np.where(lead < 0xE0, two, np.where(lead < 0xF0, three, four)))


class _Tables(NamedTuple):
    """Of code points: whether composing may change them, whether they are marks that have an order. Of the first two
    bytes of characters: whether one of these begins so."""

    changes: Bools
    marks: Bools
    pairs: Bools


@functools.cache
def _tables() -> _Tables:
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
    return _Tables(changes, marks, pairs)
