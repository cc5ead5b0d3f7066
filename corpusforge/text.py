"""Columns of text: flatten to rows, judge rows, regroup by offsets; and where sentences end.

The unit is an Arrow string column. *Flatten* turns documents into one long column of lines or byte spans, vectorised
kernels *judge* every row, *regroup* goes back by offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


class Rows(NamedTuple):
    """Values of many documents in one column; document i owns ``values[offsets[i]:offsets[i + 1]]``."""

    values: pa.StringArray
    offsets: I64


class Spans(NamedTuple):
    """Byte spans in one buffer; document i owns spans ``offsets[i]`` to ``offsets[i + 1]``.

    ``data``: the UTF-8 bytes of all documents; span j is ``data[starts[j]:stops[j]]``, trimmed of white space, never
    empty; every character that is no white space lies in exactly one span. ``bases[i]``: where document i begins in
    ``data``.
    """

    data: U8
    starts: I64
    stops: I64
    offsets: I64
    bases: I64


def text_bytes(text: pa.StringArray) -> tuple[U8, I64]:
    """The UTF-8 bytes of a column and its ``n + 1`` offsets into them, without copying."""
    offsets = np.frombuffer(text.buffers()[1], np.int32, len(text) + 1, text.offset * 4).astype(np.int64)
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    return data, offsets


def split_lines(text: pa.StringArray) -> Rows:
    """The lines of every document by the rules of ``str.splitlines``, each stripped as ``str.strip`` does.

    >>> split_lines(pa.array([" a \\r\\n\\n b", "", "c"])).values.to_pylist()
    ['a', '', 'b', 'c']
    """
    spans = line_spans(text)
    return Rows(byte_slices(spans.data, spans.starts, spans.stops), spans.offsets)


def line_spans(text: pa.StringArray) -> Spans:
    """The same lines as byte spans. Unlike sentences they may be empty: start == stop."""
    data, offsets = text_bytes(text)
    stops = _break_stops(data, int(offsets[0]), int(offsets[-1]))
    # "\r\n" is one break; where a document ends between the two, its own end still cuts (from offsets).
    inside = np.minimum(stops, len(data) - 1)
    crlf = (data[stops - 1] == 0x0D) & (data[inside] == 0x0A) & (stops < offsets[-1])
    cuts = _union(offsets, stops[~crlf])
    starts, stops = _trim(data, cuts)
    return Spans(data, starts, stops, np.searchsorted(cuts, offsets), offsets[:-1])


def _trim(data: U8, cuts: I64) -> tuple[I64, I64]:
    """Starts and stops of the pieces between cuts without white space; start == stop where nothing is left."""
    starts, stops = cuts[:-1].copy(), cuts[1:].copy()
    last = len(data) - 1
    # Two rounds settle nearly all pieces of ASCII; the rest, and what may end in wide white space, goes to Arrow.
    for _ in range(2):
        starts += (starts < stops) & _SPACE[data[np.minimum(starts, last)]]
        stops -= (starts < stops) & _SPACE[data[stops - 1]]
    unsure = _SPACE_EDGE[data[np.minimum(starts, last)]] | _SPACE_EDGE[data[stops - 1]]
    odd = np.flatnonzero(unsure & (starts < stops))
    if len(odd):
        pieces = byte_slices(data, starts[odd], stops[odd])
        left = np.diff(text_bytes(pc.utf8_ltrim_whitespace(pieces))[1])
        right = np.diff(text_bytes(pc.utf8_rtrim_whitespace(pieces))[1])
        starts[odd], stops[odd] = stops[odd] - left, starts[odd] + right
        stops[odd[left == 0]] = starts[odd[left == 0]]
    return starts, stops


def byte_slices(data: U8, starts: I64, stops: I64) -> pa.StringArray:
    """The texts ``data[starts[i]:stops[i]]`` as a column; spans ascend and do not overlap."""
    if not len(starts):
        return pa.array([], pa.string())
    cuts = np.stack([starts, stops], 1).reshape(-1)
    return _slices(data, cuts).take(pa.array(np.arange(0, len(cuts), 2)))


def _slices(data: U8, cuts: I64) -> pa.StringArray:
    """A string column of ``data[cuts[i]:cuts[i + 1]]`` that shares ``data``."""
    return pa.StringArray.from_buffers(len(cuts) - 1, pa.py_buffer(cuts.astype(np.int32)), pa.py_buffer(data))


def _break_stops(data: U8, low: int, high: int) -> I64:
    """Ascending offsets behind every line break of str.splitlines in ``data[low:high]``.

    \\n \\v \\f \\r \\x1c \\x1d \\x1e, and beyond ASCII NEL (C2 85), LS (E2 80 A8) and PS (E2 80 A9).
    """
    view = data[low:high]
    stops = np.flatnonzero(((view - 0x0A) <= 3) | ((view - 0x1C) <= 2)) + (low + 1)
    leads = np.flatnonzero((view == 0xC2) | (view == 0xE2)) + low
    second = data[leads + 1]
    nel = leads[(data[leads] == 0xC2) & (second == 0x85)] + 2
    wide = leads[(data[leads] == 0xE2) & (second == 0x80)]
    wide = wide[(data[wide + 2] | 1) == 0xA9] + 3
    return _union(stops, nel, wide) if len(nel) or len(wide) else stops


def _union(*ascending: I64) -> I64:
    """Distinct values of ascending arrays, ascending. Merges runs; np.unique would hash (NumPy 2.3)."""
    merged = np.sort(np.concatenate(ascending), kind="stable")
    fresh = np.ones(len(merged), bool)
    np.not_equal(merged[1:], merged[:-1], out=fresh[1:])
    return np.asarray(merged[fresh])


# Where sentences end: the built-in splitter.
#
# A *cluster* is a run of end marks. A line break always ends a sentence, and so does a document. Otherwise a cluster,
# with the closing quotes and brackets behind it, ends one
#   1. before white space and a plausible start, unless it is an ellipsis, or one dot behind an abbreviation, an
#      initial, or the number of a list item;
#   2. without white space where it holds an ideographic mark (。！？｡), or holds ! ? … right behind an ideograph.
# A decision looks at most _GAP characters ahead and never over a document's edge: results do not depend on neighbours.

_GAP = 64  # white space longer than this ends a sentence whatever follows
_CLOSERS = 4  # so many closing characters may follow an end mark
_WORD = 8  # bytes looked at before a dot; all listed abbreviations are shorter

_ALWAYS = "mr mrs ms dr prof st mt rev gen col lt sgt capt gov sen rep hon messrs maj adm vs cf al viz ca approx"
"""Never end a sentence: titles before names, connectives. Most are among the abbreviations Punkt learned for English
(Kiss and Strunk, Computational Linguistics 32(4), 2006; NLTK punkt_tab/english). Left out are those that end
sentences too: inc, ltd, corp, co, jr, etc."""
_BEFORE_DIGITS = (
    "no nos vol vols fig figs eq eqs sec secs ch chap pp pg art jan feb mar apr jun jul aug sep sept oct nov dec"
)
"""Do not end a sentence before a digit: references and dates. Before a word ("The answer is no. We ...") they do."""


def _packed(*words: str) -> I64:
    """Words of up to seven bytes as sorted big-endian integers."""
    return np.array(sorted(int.from_bytes(w.encode(), "big") for w in words), np.int64)


def _bytes_in(*ranges: range | bytes) -> npt.NDArray[np.bool_]:
    """A table of 256: whether a byte is in one of these."""
    table = np.zeros(256, bool)
    table[[b for r in ranges for b in r]] = True
    return table


_ALWAYS_CODES, _BEFORE_DIGIT_CODES = _packed(*_ALWAYS.split()), _packed(*_BEFORE_DIGITS.split())
_WIDE_SPACES = _packed(*"\x85\xa0\u1680\u202f\u205f\u3000\u2028\u2029", *map(chr, range(0x2000, 0x200B)))
_WIDE_CLOSERS = _packed(*"»’”」』）】》〉］｝〕〗")
_CJK_MARKS, _WIDE_MARKS = _packed(*"。！？｡"), _packed(*"。！？｡…")
_SPACE = _bytes_in(range(0x09, 0x0E), range(0x1C, 0x21))
_SPACE_EDGE = _SPACE | _bytes_in(range(0x80, 0xC0), b"\xc2\xe1\xe2\xe3")  # may be part of white space
_CLOSER = _bytes_in(b"\"')]}")
_MARK = _bytes_in(b".!?")
_DIGIT = _bytes_in(range(0x30, 0x3A))
_LETTER = _bytes_in(range(0x41, 0x5B), range(0x61, 0x7B), range(0x80, 0x100))
_IDEOGRAPH = _bytes_in(range(0xE3, 0xEA), b"\xef")
_STARTER = _bytes_in(range(0x41, 0x5B), range(0x30, 0x3A), range(0xC2, 0xF5), b"\"'([{<$#@")
# Letters of two bytes (U+0080 to U+07FF) in lower case start no sentence, as a to z do not.
_LOWER = np.array([chr(c).islower() for c in range(0x800)])


def sentence_spans(text: pa.StringArray) -> Spans:
    """The sentences of every document, by the built-in splitter (no resource needed, any language).

    >>> spans = sentence_spans(pa.array(["He saw Dr. Wu at 3.5 km.  She left!\\n你好。再见。", "", "End"]))
    >>> [bytes(spans.data[a:b]).decode() for a, b in zip(spans.starts, spans.stops)]
    ['He saw Dr. Wu at 3.5 km.', 'She left!', '你好。', '再见。', 'End']
    >>> spans.offsets.tolist()
    [0, 4, 4, 5]
    """
    data, offsets = text_bytes(text)
    breaks = _break_stops(data, int(offsets[0]), int(offsets[-1]))
    cuts = _union(offsets, breaks, _sentence_stops(data, offsets))
    starts, stops = _trim(data, cuts)
    kept = starts < stops
    starts, stops = starts[kept], stops[kept]
    return Spans(data, starts, stops, np.searchsorted(starts, offsets), offsets[:-1])


class _Places(NamedTuple):
    """Reads bytes relative to candidates; 0 beyond the edges ``low`` and ``high`` of each one's document."""

    data: U8
    low: I64
    high: I64

    def byte(self, where: I64) -> I64:
        inside = (where >= self.low) & (where < self.high)
        return np.where(inside, self.data[np.where(inside, where, 0)], 0).astype(np.int64)

    def character(self, where: I64) -> tuple[I64, I64]:
        """Code (its bytes as an integer) and width of the characters of one to three bytes at ``where``."""
        first = self.byte(where)
        width = 1 + (first >= 0xC2) + (first >= 0xE0).astype(np.int64)
        code = np.where(width > 1, first << 8 | self.byte(where + 1), first)
        return np.where(width > 2, code << 8 | self.byte(where + 2), code), width

    def rows(self, chosen: I64 | npt.NDArray[np.bool_]) -> _Places:
        return _Places(self.data, self.low[chosen], self.high[chosen])


def _listed(values: I64, table: I64) -> npt.NDArray[np.bool_]:
    return np.asarray(table[np.minimum(np.searchsorted(table, values), len(table) - 1)] == values)


class _Clusters(NamedTuple):
    """Runs of end marks. ``cjk``: holds an ideographic one; ``loud``: holds ! ? or …"""

    starts: I64
    stops: I64
    cjk: npt.NDArray[np.bool_]
    loud: npt.NDArray[np.bool_]
    places: _Places


def _clusters(data: U8, offsets: I64) -> _Clusters:
    view = data[offsets[0] : offsets[-1]]
    at = np.flatnonzero(
        (view == 0x2E) | (view == 0x21) | (view == 0x3F) | (view == 0xE2) | (view == 0xE3) | (view == 0xEF)
    )
    at += offsets[0]
    document = np.searchsorted(offsets, at, "right") - 1
    places = _Places(data, offsets[document], offsets[document + 1])
    code, width = places.character(at)
    mark = (width == 1) | _listed(code, _WIDE_MARKS)
    at, width, code, document, places = at[mark], width[mark], code[mark], document[mark], places.rows(mark)
    fresh = np.ones(len(at), bool)
    fresh[1:] = (at[1:] != at[:-1] + width[:-1]) | (document[1:] != document[:-1])
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(at))[: len(first)] - 1
    cjk = _listed(code, _CJK_MARKS)
    loud = (code != 0x2E) & ~cjk
    if len(first):
        cjk, loud = np.logical_or.reduceat(cjk, first), np.logical_or.reduceat(loud, first)
    return _Clusters(at[first], at[last] + width[last], cjk, loud, places.rows(first))


def _sentence_stops(data: U8, offsets: I64) -> I64:
    """Offsets behind the last character of every sentence that ends inside a line."""
    clusters = _clusters(data, offsets)
    places, stops = clusters.places, clusters.stops
    for _ in range(_CLOSERS):
        code, width = places.character(stops)
        closes = np.where(width == 1, _CLOSER[code & 0xFF], _listed(code, _WIDE_CLOSERS))
        stops = stops + np.where(closes, width, 0)
    before = places.byte(clusters.starts - 3)
    code, width = places.character(stops)
    goes_on = np.where(width == 1, _MARK[code & 0xFF], _listed(code, _WIDE_MARKS))
    ends_cjk = (clusters.cjk | (clusters.loud & _IDEOGRAPH[before])) & ~goes_on
    starts_next = _skip_space(places, stops)
    gap = starts_next > stops
    ends = gap & (_may_start(places, starts_next) | (starts_next - stops >= _GAP))
    dots = ~clusters.cjk & ~clusters.loud
    ends &= ~(dots & (clusters.stops - clusters.starts > 1))
    single = np.flatnonzero(ends & dots & (stops == clusters.stops))
    digit_next = _DIGIT[places.byte(starts_next)][single]
    ends[single] &= ~_abbreviates(places.rows(single), clusters.starts[single], digit_next)
    return stops[ends | ends_cjk]


def _skip_space(places: _Places, where: I64) -> I64:
    """Behind the white space at ``where``, or at least _GAP bytes ahead in it."""
    where = where.copy()
    active = np.arange(len(where))
    for _ in range(_GAP):
        code, width = places.rows(active).character(where[active])
        space = np.where(width == 1, _SPACE[code & 0xFF], _listed(code, _WIDE_SPACES))
        active = active[space]
        if not len(active):
            break
        where[active] += width[space]
    return where


def _may_start(places: _Places, where: I64) -> npt.NDArray[np.bool_]:
    """Whether a sentence may start here: upper case, digit, opening quote or bracket, most beyond ASCII."""
    code, width = places.character(where)
    first = places.byte(where)
    small = (width == 2) & _LOWER[np.where(width == 2, (code >> 8 & 0x1F) << 6 | code & 0x3F, 0)]
    return np.asarray(_STARTER[first] & ~small)


def _abbreviates(places: _Places, dots: I64, digit_next: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether a single dot belongs to an abbreviation, an initial, or the number of a list item."""
    back = np.array([places.byte(dots - k) for k in range(1, _WORD + 1)]).reshape(_WORD, len(dots))
    letters = np.logical_and.accumulate(_LETTER[back]).sum(0)
    digits = np.logical_and.accumulate(_DIGIT[back]).sum(0)
    code = np.zeros(len(dots), np.int64)
    for k in range(_WORD - 1):
        code += np.where(k < letters, (back[k] | 0x20) << (8 * k), 0)
    short = letters < _WORD
    listed = short & (_listed(code, _ALWAYS_CODES) | (digit_next & _listed(code, _BEFORE_DIGIT_CODES)))
    previous = back[np.minimum(letters, _WORD - 1), np.arange(len(dots))]
    capital = (back[0] < 0x5B) & (back[0] != 0x49)
    initial = (letters == 1) & ((previous == 0x2E) | (capital & ~_DIGIT[previous]))
    above = back[np.minimum(digits, _WORD - 1), np.arange(len(dots))]
    item = (digits >= 1) & (digits <= 3) & ((above == 0) | (above == 0x0A))
    return np.asarray(listed | initial | item)
