"""When two sentences say the same: normalise a column of sentences and hash every row of it.

Comes in: byte spans of sentences (`text.Spans`). Goes out: one 64-bit hash a sentence, and which have no words at all.

The normal form of a sentence is its words in lower case with one space between them. A *word* is a run of characters
that separate nothing; separators are all white space, punctuation and invisible characters, that is Unicode categories
Z, P, Cc and Cf. Symbols (S: ``+ $ < = >``, emoji) belong to words, so that "C" stays different from "C++". Lower case
is the simple mapping, character by character. With ``fold_numbers`` every decimal digit becomes ``0``; it is off by
default because it makes "rose 3.5 % in 2021" equal "rose 9.1 % in 1999".

Decision: ASCII sentences go through a byte table, the others through a code point table of the same content. Both end
in the same UTF-8 bytes, so "It's" and "It’s" are equal.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from corpusforge.arrays import I64, U8, U32, U64, Bools
from corpusforge.text import Spans, byte_slices, text_bytes

_SPACE = 0x20
_AT_ONCE = 8 << 20
"""Bytes of text normalised at once, of one large document too: takes about fifteen times as much memory."""
_SEPARATING = frozenset(["Zs", "Zl", "Zp", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Cc", "Cf"])

Codes = npt.NDArray[Any]
"""Characters as numbers: uint8 (ASCII) or uint32 (code points)."""


class Forms(NamedTuple):
    """Normal forms: form i is ``data[starts[i]:stops[i]]`` (bytes of UTF-8, or characters)."""

    data: Codes
    starts: I64
    stops: I64


def sentence_hashes(spans: Spans, *, fold_numbers: bool = False) -> tuple[U64, Bools]:
    """The xxh3-64 of every sentence's normal form, and which normal forms are empty (nothing but punctuation).

    >>> text = pa.array(['It is "so".', "it  is so"])
    >>> data, starts = np.frombuffer(text.buffers()[2], np.uint8), np.array([0, 11])
    >>> hashes, empty = sentence_hashes(Spans(data, starts, np.array([11, 20]), np.array([0, 1, 2]), starts))
    >>> bool(hashes[0] == hashes[1]), empty.tolist()
    (True, [False, False])
    """
    hashes = np.zeros(len(spans.starts), np.uint64)
    empty = np.zeros(len(spans.starts), np.bool_)
    edges = np.arange(spans.starts[0], spans.stops[-1], _AT_ONCE)[1:] if len(hashes) else np.zeros(0, np.int64)
    rows = [0, *np.searchsorted(spans.starts, edges).tolist(), len(hashes)]
    for first, last in itertools.pairwise(rows):
        part = spans._replace(starts=spans.starts[first:last], stops=spans.stops[first:last])
        for chosen, forms in _normal_forms(part, fold_numbers):
            hashes[first:last][chosen] = _hash_each(forms)
            empty[first:last][chosen] = forms.starts == forms.stops
    return hashes, empty


def normalise(spans: Spans, *, fold_numbers: bool = False) -> pa.StringArray:
    """The normal forms themselves, one a sentence: what `sentence_hashes` hashes.

    >>> data = np.frombuffer("Größe: 3,5 - «OK»!".encode(), np.uint8)
    >>> zero = np.zeros(1, np.int64)
    >>> normalise(Spans(data, zero, zero + len(data), np.array([0, 1]), zero)).to_pylist()
    ['größe 3 5 ok']
    """
    found: list[str] = [""] * len(spans.starts)
    for chosen, (data, starts, stops) in _normal_forms(spans, fold_numbers):
        view = data.tobytes()
        # Python loop with a reason: for inspection and tests; the stage only hashes.
        for row, a, b in zip(np.flatnonzero(chosen).tolist(), starts.tolist(), stops.tolist(), strict=True):
            found[row] = view[a:b].decode()
    return pa.array(found, pa.string())


def _normal_forms(spans: Spans, fold_numbers: bool) -> list[tuple[Bools, Forms]]:
    """The sentences in two groups, ASCII and not: (which rows, their normal forms in UTF-8)."""
    if not len(spans.starts):
        return []
    first, last = int(spans.starts[0]), int(spans.stops[-1])
    high = np.flatnonzero(spans.data[first:last] & 0x80) + first
    is_wide = np.searchsorted(high, spans.starts) < np.searchsorted(high, spans.stops)
    groups = []
    for chosen, forms_of in ((~is_wide, _ascii_forms), (is_wide, _wide_forms)):
        if chosen.any():
            data, offsets = text_bytes(byte_slices(spans.data, spans.starts[chosen], spans.stops[chosen]))
            groups.append((chosen, forms_of(data[: offsets[-1]], offsets, fold_numbers)))
    return groups


def _ascii_forms(data: U8, offsets: I64, fold_numbers: bool) -> Forms:
    return _collapse(ascii_table(fold_numbers)[data], offsets)


def _wide_forms(data: U8, offsets: I64, fold_numbers: bool) -> Forms:
    leads = np.cumsum((data & 0xC0) != 0x80)
    characters = np.concatenate([[0], leads])[offsets]
    codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), "<u4")
    packed, starts, stops = _collapse(code_table(fold_numbers)[codes], characters)
    widths = np.ones(len(packed) + 1, np.int64)
    widths[0] = 0
    for bound in (0x80, 0x800, 0x10000):
        widths[1:] += packed >= bound
    places = np.cumsum(widths)
    encoded = np.frombuffer(packed.astype("<u4").tobytes().decode("utf-32-le").encode(), np.uint8)
    return Forms(encoded, places[starts], places[stops])


def _collapse(mapped: Codes, offsets: I64) -> Forms:
    """Keep words and one separator behind each, then leave out separators at the ends of sentences."""
    in_word = mapped != _SPACE
    kept = in_word.copy()
    kept[1:] |= in_word[:-1]
    places = np.zeros(len(mapped) + 1, np.int32)  # a column of strings holds less than 2^31 bytes
    np.cumsum(kept, dtype=np.int32, out=places[1:])
    packed = np.compress(kept, mapped)  # three times as fast as mapped[kept]
    bounds = places[offsets].astype(np.int64)
    starts, stops = bounds[:-1].copy(), bounds[1:].copy()
    if len(packed):
        starts += (starts < stops) & (packed[np.minimum(starts, len(packed) - 1)] == _SPACE)
        stops -= (starts < stops) & (packed[stops - 1] == _SPACE)
    return Forms(packed, starts, stops)


def _hash_each(forms: Forms) -> U64:
    # Python loop with a reason: one C call a sentence (about 0.2 us) against a hundred bytes of text each.
    digest, view = xxhash.xxh3_64_intdigest, memoryview(forms.data.tobytes())
    pairs = zip(forms.starts.tolist(), forms.stops.tolist(), strict=True)
    return np.fromiter((digest(view[a:b]) for a, b in pairs), np.uint64, len(forms.starts))


@functools.cache
def ascii_table(fold_numbers: bool) -> U8:
    """The normal form of every ASCII byte, a space for separators (and for the other bytes)."""
    return np.concatenate([_mapped(np.arange(128), fold_numbers), np.full(128, _SPACE)]).astype(np.uint8)


@functools.cache
def code_table(fold_numbers: bool) -> U32:
    """The normal form of every code point, a space for separators."""
    # Planes 3 to 13 and 15 up hold ideographs and private characters, which are their own lower case; of plane 14 only
    # the tags are invisible.
    table = np.arange(0x110000, dtype=np.uint32)
    codes = np.r_[0:0xD800, 0xE000:0x30000, 0xE0000:0xE0080]
    table[codes] = _mapped(codes, fold_numbers)
    return table


def _mapped(codes: I64, fold_numbers: bool) -> U32:
    """The normal form of code points: their lower case, a space, or a zero. A tenth of what a loop of Python takes."""
    text = codes.astype("<u4").tobytes().decode("utf-32-le").replace("\u0130", "I")  # of two characters in lower case
    # Each on its own, between spaces: the lower case of a sigma depends on what is beside it.
    mapped = np.frombuffer(" ".join(text).lower().encode("utf-32-le"), "<u4")[::2].astype(np.uint32)
    kinds = list(map(unicodedata.category, text))
    if fold_numbers:
        mapped[np.fromiter(map("Nd".__eq__, kinds), np.bool_, len(kinds))] = ord("0")
    mapped[np.fromiter(map(_SEPARATING.__contains__, kinds), np.bool_, len(kinds))] = _SPACE
    return mapped
