"""Normalize text for comparison: the hash of every sentence's normal form, and of every word.

The normal form of a sentence is its words in lower case with one space between them. A *word* is a run of characters
that are not separators; separators are all white space, punctuation and invisible characters, that is, the Unicode
categories Z, P, Cc and Cf. Symbols (S: ``+ $ < = >``, emoji) belong to words, so that "C" stays different from "C++".
Lower case is the simple mapping, character by character. With ``fold_numbers`` every decimal digit becomes ``0``; this
is off by default because it makes "rose 3.5 % in 2021" equal "rose 9.1 % in 1999".

ASCII sentences go through a byte table, all others through a code point table of the same content. Both end in the same
UTF-8 bytes, so "It's" and "It’s" are equal.

`hash_words` gives one 64-bit hash per word, from which shingles are made. In scripts without spaces between words every
character is a word of its own (`_UNSPACED`); otherwise a paragraph of Chinese would be a handful of words, and no
near-duplicate of it would share a shingle of five. Words are lower-cased in place, in the bytes of the text, and hashed
eight bytes at a time for all words at once. The few characters whose lower case has another length in UTF-8 (the Kelvin
sign, the Turkish I with a dot) stay as they are in place; words that contain one are hashed one by one.
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
"""Bytes of text normalized at once, also within one large document: needs about fifteen times as much memory."""
_SEPARATING = frozenset(["Zs", "Zl", "Zp", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Cc", "Cf"])

Codes = npt.NDArray[Any]
"""Characters as numbers: uint8 (ASCII) or uint32 (code points)."""


class Forms(NamedTuple):
    """Normal forms: form i is ``data[starts[i]:stops[i]]`` (bytes of UTF-8, or characters)."""

    data: Codes
    starts: I64
    stops: I64


def sentence_hashes(spans: Spans, *, fold_numbers: bool = False) -> tuple[U64, Bools]:
    """The xxh3-64 of every sentence's normal form, and which normal forms are empty (only punctuation).

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


def _normal_forms(spans: Spans, fold_numbers: bool) -> list[tuple[Bools, Forms]]:
    """Normal forms in two groups, of ASCII sentences and of the others: (which rows, their forms in UTF-8)."""
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
    """Keep words and one separator after each, then drop separators at the ends of sentences."""
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
    # Python loop: one C call per sentence (about 0.2 us) for a hundred bytes of text.
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
    """The normal form of code points: their lower case, a space, or a zero. Ten times as fast as a Python loop."""
    text = codes.astype("<u4").tobytes().decode("utf-32-le").replace("\u0130", "I")  # its lower case has two characters
    # Separated by spaces, because the lower case of a sigma depends on its neighbors.
    mapped = np.frombuffer(" ".join(text).lower().encode("utf-32-le"), "<u4")[::2].astype(np.uint32)
    kinds = list(map(unicodedata.category, text))
    if fold_numbers:
        mapped[np.fromiter(map("Nd".__eq__, kinds), np.bool_, len(kinds))] = ord("0")
    mapped[np.fromiter(map(_SEPARATING.__contains__, kinds), np.bool_, len(kinds))] = _SPACE
    return mapped


LONG_WORD = 64
"""Words of more bytes than this are hashed one by one with xxh3-64. English words have up to sixteen bytes; longer ones
are addresses and encoded data, and without a bound a word of a megabyte would take 131,072 rounds."""

_BLOCK = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio, as in `seeds`
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # CJK ideographs, extension A
    (0x4E00, 0x9FFF),  # CJK ideographs
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0x20000, 0x3FFFF),  # CJK ideographs, extensions B and up
)
"""Unicode blocks (Blocks.txt) of the line breaking classes ID, CJ and SA of UAX 14: text without spaces. Korean has
spaces and is not among them."""


class Words(NamedTuple):
    """Words of a column of sentences; sentence i owns words ``offsets[i]`` to ``offsets[i + 1]``."""

    hashes: U64
    offsets: I64


class _Bytes(NamedTuple):
    """Text in its normal form, byte by byte: separators are 0, and ``cuts`` marks where a word must end."""

    data: U8
    cuts: Bools
    odd: I64  # positions of characters whose lower case has another length


def hash_words(sentences: Spans, *, fold_numbers: bool = False) -> Words:
    """The hash of every word of every sentence.

    >>> data = np.frombuffer(b"So it is. IT, IS", np.uint8)
    >>> words = hash_words(Spans(data, np.array([0, 10]), np.array([9, 16]), np.array([0, 2]), np.array([0])))
    >>> words.offsets.tolist(), (words.hashes[1:3] == words.hashes[3:]).tolist()
    ([0, 3, 5], [True, True])
    """
    if not len(sentences.starts):
        return Words(np.zeros(0, np.uint64), np.zeros(1, np.int64))
    first, last = int(sentences.starts[0]), int(sentences.stops[-1])
    text = sentences.data[first:last]
    normal = _normal_bytes(text, fold_numbers)
    normal.cuts[sentences.starts - first] = True
    starts, stops = _word_bounds(normal)
    hashes = _hash_blocks(normal.data, starts, stops)
    _hash_long(hashes, normal.data, starts, stops)
    _hash_odd(hashes, text, starts, stops, normal.odd, fold_numbers)
    offsets = np.searchsorted(starts, np.append(sentences.starts - first, last - first))
    return Words(hashes, offsets)


def whole_documents(text: pa.StringArray) -> Spans:
    """Every document of a column as one sentence. Its words are the same, since no sentence ends inside a word."""
    data, offsets = text_bytes(text)
    return Spans(data, offsets[:-1], offsets[1:], np.arange(len(offsets)), offsets[:-1])


def hash_word(word: bytes) -> int:
    """The hash that `hash_words` gives a word; ``word`` is in its normal form.

    >>> hex(hash_word(b"so"))
    '0x...'
    """
    data = np.frombuffer(word, np.uint8)
    hashes = _hash_blocks(data, np.zeros(1, np.int64), np.full(1, len(data)))
    _hash_long(hashes, data, np.zeros(1, np.int64), np.full(1, len(data)))
    return int(hashes[0])


def _normal_bytes(text: U8, fold_numbers: bool) -> _Bytes:
    """Lower-case text and mark separators in place; decode only where bytes are not ASCII."""
    data = _byte_table(fold_numbers).take(text)
    cuts = np.zeros(len(text) + 1, np.bool_)
    leads = np.flatnonzero(text >= 0xC0)
    if not len(leads):
        return _Bytes(data, cuts, leads)
    codes, widths = _characters(text, leads)
    mapped = code_table(fold_numbers)[codes]
    separates = mapped == _SPACE
    changed = (mapped != codes) & ~separates
    same_length = _utf8_width(mapped) == widths
    _write(data, leads[changed & same_length], mapped[changed & same_length], widths[changed & same_length])
    for k in range(4):
        inside = separates & (widths > k)
        data[leads[inside] + k] = 0
    alone = _is_unspaced(mapped)  # in the normal form: a Thai digit folded to 0 is a digit like others
    cuts[leads[alone]] = True
    cuts[leads[alone] + widths[alone]] = True
    return _Bytes(data, cuts, leads[changed & ~same_length])


def _characters(text: U8, leads: I64) -> tuple[I64, I64]:
    """Code points and widths in bytes of the characters that begin at ``leads``, each of two bytes or more."""
    lead = text[leads].astype(np.int64)
    widths = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    codes = lead & (0xFF >> (widths + 1))
    for k in range(1, 4):
        more = widths > k
        codes[more] = codes[more] << 6 | (text[leads[more] + k] & 0x3F)
    return codes, widths


def _utf8_width(codes: U32) -> I64:
    return 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)


def _write(data: U8, leads: I64, codes: U32, widths: I64) -> None:
    """Overwrite the characters at ``leads`` with others of the same width, of two bytes or more."""
    for width, mark in ((2, 0xC0), (3, 0xE0), (4, 0xF0)):
        chosen = widths == width
        at, code = leads[chosen], codes[chosen]
        for k in range(width):
            bits = code >> (6 * (width - 1 - k))
            data[at + k] = bits | mark if k == 0 else bits & 0x3F | 0x80


def _is_unspaced(codes: U32) -> Bools:
    bounds = np.array([bound for low, high in _UNSPACED for bound in (low, high + 1)])
    return np.asarray(np.searchsorted(bounds, codes, "right") % 2 == 1)


def _word_bounds(normal: _Bytes) -> tuple[I64, I64]:
    """Where words start and stop, ascending."""
    inside = np.zeros(len(normal.data) + 2, np.bool_)
    np.not_equal(normal.data, 0, out=inside[1:-1])
    before, after = inside[:-1], inside[1:]
    begins = after & (~before | normal.cuts)
    ends = before & (~after | normal.cuts)
    return np.flatnonzero(begins), np.flatnonzero(ends)


def _hash_blocks(data: U8, starts: I64, stops: I64) -> U64:
    """Hash words in blocks of eight bytes, all words at once, in as many rounds as the longest word has blocks."""
    padded = np.zeros(len(data) + _BLOCK, np.uint8)
    padded[: len(data)] = data
    # Block i begins at byte i: a view that overlaps itself, so that one lookup loads eight bytes of a word.
    blocks = np.ndarray((len(data),), "<u8", padded, strides=(1,))
    hashes = _step(np.zeros(len(starts), np.uint64), blocks[starts] & _mask(stops - starts))
    left = np.flatnonzero((stops - starts > _BLOCK) & (stops - starts <= LONG_WORD))
    at = starts[left] + _BLOCK
    while len(left):
        size = stops[left] - at
        hashes[left] = _step(hashes[left], blocks[at] & _mask(size))
        more = size > _BLOCK
        left, at = left[more], at[more] + _BLOCK
    return hashes


def _step(hashes: U64, blocks: U64) -> U64:
    """Mix one block into each hash: a bijection of the block, so words of up to eight bytes never collide."""
    with np.errstate(over="ignore"):
        mixed = (hashes ^ blocks) * _MULTIPLIER
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))


def _mask(sizes: I64) -> U64:
    return _MASKS[np.minimum(sizes, _BLOCK)]


_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_BLOCK + 1)], np.uint64)


def _hash_long(hashes: U64, data: U8, starts: I64, stops: I64) -> None:
    # Python loop: one C call for each word that is too long to be one.
    for word in np.flatnonzero(stops - starts > LONG_WORD).tolist():
        hashes[word] = xxhash.xxh3_64_intdigest(data[starts[word] : stops[word]].tobytes())


def _hash_odd(hashes: U64, text: U8, starts: I64, stops: I64, odd: I64, fold_numbers: bool) -> None:
    """Hash again the words that contain a character whose lower case has another length."""
    if not len(odd):
        return
    table, view, hashed = code_table(fold_numbers), text.tobytes(), dict[bytes, int]()
    words = np.searchsorted(starts, odd, "right") - 1
    words = words[np.concatenate([[True], words[1:] != words[:-1]])]
    # Python loop: such characters are rare in all languages but Turkish (one word in a hundred).
    for word, start, stop in zip(words.tolist(), starts[words].tolist(), stops[words].tolist(), strict=True):
        raw = view[start:stop]
        if raw not in hashed:
            hashed[raw] = hash_word("".join(chr(table[ord(c)]) for c in raw.decode()).encode())
        hashes[word] = hashed[raw]


@functools.cache
def _byte_table(fold_numbers: bool) -> U8:
    """Normal forms of bytes: 0 for separators, ASCII in lower case, others unchanged."""
    table = np.arange(256, dtype=np.uint8)
    table[:128] = ascii_table(fold_numbers)[:128]
    table[table == _SPACE] = 0
    return table
