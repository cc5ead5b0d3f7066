"""Split text into sentences: the built-in splitter, for any language and without resources.

`sentence_spans` takes a column of documents and returns their sentences as byte spans. Lines always end sentences;
inside a line the decision is made for a *cluster* (a run of end marks with the closing quotes, brackets and reference
marks like ``[12]`` after it). A cluster ends a sentence

1. before white space and a plausible start: not a lower-case letter (a to z may start a sentence only in a document
   without capitals), also after opening quotes and dashes. A *faint* cluster (an ellipsis; one dot after an
   abbreviation, an initial or a single letter) needs more: a word that often begins sentences and hardly ever occurs in
   names. Dots of titles, list items and "No. 5" never end a sentence;
2. without white space where it holds an ideographic mark (。！？｡), or holds ! ? … right after an ideograph.

Documents do not influence their neighbors. What a dot means is guessed from lists of words, after Kiss and Strunk,
Computational Linguistics 32(4), 2006, whose Punkt learns such lists; docs/cleaning.md says how far the two agree.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I64, U8, Bools
from corpusforge.text import SPACE, WIDE_SPACE, Spans, break_stops, bytes_in, text_bytes, trim, union

WORD = 8  # letters of the longest word in a list

TITLES = "mr mrs ms dr prof mt rev gen col lt sgt capt cmdr gov sen rep hon messrs maj adm vs cf viz"
"""Never end a sentence: titles before names, connectives. Most are among the abbreviations Punkt learned for English
(NLTK punkt_tab/english/abbrev_types.txt)."""
BEFORE_DIGITS = "no nos vol vols fig figs eq eqs sec secs ch chap pp pg art op"
"""References: do not end a sentence before a digit, but do before a word ("The answer is no. We ...")."""
ABBREVIATIONS = (
    "inc corp co cos ltd llc plc bros jr sr esq etc al ca st ph ed eds trans dept univ assn ave blvd ft approx govt spp"
    " jan feb mar apr jun jul aug sep sept oct nov dec tues thurs"
    " ala ariz ark calif colo conn fla ga ky md mich minn neb nev okla penn tenn tex va vt wis wyo"
)
"""Often followed by names, numbers and brackets, but may end a sentence: firms, names, months, states of the USA as the
Associated Press writes them."""
STARTERS = (
    "the a an this that these those he she it we you they i his her its our your their my there here what when where"
    " who why how which while in on at by for from with as if to after before during since until although though"
    " because however but and or so yet nor some many most all both each every another other such one two several few"
    " also then thus now once only even still just perhaps maybe later"
)
"""English function words that begin sentences and are hardly ever part of a name."""


def packed(*words: str) -> I64:
    """Words of up to eight ASCII bytes, or characters of up to three, as sorted big-endian integers."""
    return np.array(sorted(int.from_bytes(w.encode(), "big") for w in words), np.int64)


TITLE_CODES, DIGIT_CODES = packed(*TITLES.split()), packed(*BEFORE_DIGITS.split())
SHORT_CODES, STARTER_CODES = packed(*ABBREVIATIONS.split()), packed(*STARTERS.split())
WIDE_CLOSERS = packed(*"»’”」』）】》〉］｝〕〗")
WIDE_OPENERS = packed(*"«‹¿¡“‘’”„‚「『（【《〈［｛〔〖")
DASHES = packed(*"-*–—•·")
CJK_MARKS, WIDE_MARKS = packed(*"。！？｡"), packed(*"。！？｡…")
CLOSER = bytes_in(b"\"')]}")
OPENER = bytes_in(b"\"'([{<")
MARK = bytes_in(b".!?")
DIGIT = bytes_in(range(0x30, 0x3A))
LETTER = bytes_in(range(0x41, 0x5B), range(0x61, 0x7B), range(0x80, 0x100))
IN_REFERENCE = bytes_in(range(0x30, 0x3A), range(0x41, 0x5B), range(0x61, 0x7B), b" ")
IDEOGRAPH = bytes_in(range(0xE3, 0xEA), b"\xef")
START = bytes_in(range(0x41, 0x5B), range(0x30, 0x3A), range(0xC2, 0xF5), b"$#@")
BEFORE_INITIAL = bytes_in(range(0x21), b'.([{"-/&')
# Letters of two bytes (U+0080 to U+07FF) in lower case start no sentence, as a to z do not.
LOWER = np.array([chr(c).islower() for c in range(0x800)])

GAP = 64  # white space of this length ends a sentence, whatever follows
CLOSERS = 4  # closing characters after an end mark, at most
REFERENCES = 4  # reference marks after those, at most
REFERENCE_BYTES = 6  # inside the brackets: "12", "n 7", "edit"
OPENERS = 3  # quotes, brackets, dashes (with a space) before a start, at most
AT_ONCE = 1 << 17  # clusters judged at once: bounds memory at 40 MiB; the end marks of 16 MB of usual text


def sentence_spans(text: pa.StringArray) -> Spans:
    """The sentences of every document, by the built-in splitter (no resource needed, any language).

    >>> spans = sentence_spans(pa.array(["He saw Dr. Wu at 3.5 km.  She left!\\n你好。再见。", "", "End"]))
    >>> [bytes(spans.data[a:b]).decode() for a, b in zip(spans.starts, spans.stops)]
    ['He saw Dr. Wu at 3.5 km.', 'She left!', '你好。', '再见。', 'End']
    >>> spans.offsets.tolist()
    [0, 4, 4, 5]
    """
    data, offsets = text_bytes(text)
    breaks = break_stops(data, int(offsets[0]), int(offsets[-1]))
    cuts = union(offsets, breaks, sentence_stops(data, offsets))
    starts, stops = trim(data, cuts)
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

    def rows(self, chosen: I64 | Bools | slice) -> _Places:
        return _Places(self.data, self.low[chosen], self.high[chosen])


def _listed(values: I64, table: I64) -> Bools:
    return np.asarray(table[np.minimum(np.searchsorted(table, values), len(table) - 1)] == values)


def _either(code: I64, width: I64, narrow: Bools, wide: I64) -> Bools:
    """Whether a character is one of a set: its ASCII members as a table, the others as sorted codes."""
    return np.asarray(np.where(width == 1, narrow[code & 0xFF], _listed(code, wide)))


class _Clusters(NamedTuple):
    """Runs of end marks. ``cjk``: holds an ideographic one; ``loud``: holds ! or ?; ``dots``: holds …"""

    starts: I64
    stops: I64
    cjk: Bools
    loud: Bools
    dots: Bools
    places: _Places

    def rows(self, chosen: slice) -> _Clusters:
        kinds = self.cjk[chosen], self.loud[chosen], self.dots[chosen]
        return _Clusters(self.starts[chosen], self.stops[chosen], *kinds, self.places.rows(chosen))


class _Capitals:
    """Which documents hold a letter A to Z; computed once, on demand."""

    def __init__(self, data: U8, offsets: I64) -> None:
        self.data, self.offsets = data, offsets

    @functools.cached_property
    def present(self) -> Bools:
        first = self.offsets[0]
        capitals = np.flatnonzero((self.data[first : self.offsets[-1]] - np.uint8(0x41)) < 26) + first
        return np.diff(np.searchsorted(capitals, self.offsets)) > 0


def _clusters(data: U8, offsets: I64) -> _Clusters:
    view = data[offsets[0] : offsets[-1]]
    at = np.flatnonzero(
        (view == 0x2E) | (view == 0x21) | (view == 0x3F) | (view == 0xE2) | (view == 0xE3) | (view == 0xEF)
    )
    at += offsets[0]
    document = np.searchsorted(offsets, at, "right") - 1
    places = _Places(data, offsets[document], offsets[document + 1])
    code, width = places.character(at)
    mark = (width == 1) | _listed(code, WIDE_MARKS)
    at, width, code, document, places = at[mark], width[mark], code[mark], document[mark], places.rows(mark)
    fresh = np.ones(len(at), bool)
    fresh[1:] = (at[1:] != at[:-1] + width[:-1]) | (document[1:] != document[:-1])
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(at))[: len(first)] - 1
    cjk, loud = _listed(code, CJK_MARKS), (code == 0x21) | (code == 0x3F)
    dots = ~cjk & (width > 1)
    if len(first):
        cjk, loud, dots = (np.logical_or.reduceat(kind, first) for kind in (cjk, loud, dots))
    return _Clusters(at[first], at[last] + width[last], cjk, loud, dots, places.rows(first))


def sentence_stops(data: U8, offsets: I64) -> I64:
    """Offsets after the last character of every sentence that ends inside a line, ascending.

    Document i is ``data[offsets[i]:offsets[i + 1]]``; documents do not influence their neighbors.
    """
    clusters, capitals = _clusters(data, offsets), _Capitals(data, offsets)
    parts = (slice(first, first + AT_ONCE) for first in range(0, len(clusters.starts), AT_ONCE))
    return np.concatenate([np.zeros(0, np.int64), *(_stops(clusters.rows(part), capitals) for part in parts)])


def _stops(clusters: _Clusters, capitals: _Capitals) -> I64:
    """The stops of the clusters that end a sentence."""
    places = clusters.places
    stops = _after_closers(places, clusters.stops)
    before = places.byte(clusters.starts - 3)
    continues = _either(*places.character(stops), MARK, WIDE_MARKS)
    ends_cjk = (clusters.cjk | ((clusters.loud | clusters.dots) & IDEOGRAPH[before])) & ~continues
    space = _skip_space(places, stops)
    near = np.flatnonzero((space > stops) & (space - stops < GAP))
    ends = space - stops >= GAP
    start = _after_openers(places.rows(near), space[near])
    near = near[_may_start(places.rows(near), start) | _starts_small(places.rows(near), start, capitals)]
    ends[near] = True
    quiet = near[~clusters.cjk[near] & ~clusters.loud[near]]
    ends[quiet] = _dots_end(clusters, quiet, space[quiet])
    return stops[ends | ends_cjk]


def _dots_end(clusters: _Clusters, quiet: I64, space: I64) -> Bools:
    """Whether clusters of dots only end a sentence, where the next may start after ``space``."""
    places, dots = clusters.places.rows(quiet), clusters.starts[quiet]
    one = (clusters.stops[quiet] - dots == 1) & ~clusters.dots[quiet]
    never, faint = _dot_belongs(places, dots, places.byte(space))
    ends = ~(one & never)
    doubtful = np.flatnonzero(~one | (faint & ends))
    ends[doubtful] = _starts_often(places.rows(doubtful), space[doubtful])
    return np.asarray(ends)


def _after_closers(places: _Places, stops: I64) -> I64:
    """The offset after closing quotes, brackets, and reference marks such as ``[12]`` that follow them."""
    stops = stops.copy()
    active = np.arange(len(stops))
    for _ in range(CLOSERS):
        code, width = places.rows(active).character(stops[active])
        closes = _either(code, width, CLOSER, WIDE_CLOSERS)
        active = active[closes]
        stops[active] += width[closes]
    active = np.arange(len(stops))
    for _ in range(REFERENCES):
        active = active[places.rows(active).byte(stops[active]) == 0x5B]
        ahead = np.array([places.rows(active).byte(stops[active] + k) for k in range(1, REFERENCE_BYTES + 2)])
        ahead = ahead.reshape(REFERENCE_BYTES + 1, len(active))
        inside = np.logical_and.accumulate(IN_REFERENCE[ahead]).sum(0)
        closes = (inside > 0) & (ahead[np.minimum(inside, REFERENCE_BYTES), np.arange(len(active))] == 0x5D)
        stops[active[closes]] += inside[closes] + 2
        active = active[closes]
    return stops


def _skip_space(places: _Places, where: I64) -> I64:
    """The offset after the white space at ``where``, or at least GAP bytes ahead in it."""
    where = where.copy()
    active = np.arange(len(where))
    for _ in range(GAP):
        code, width = places.rows(active).character(where[active])
        space = _either(code, width, SPACE, WIDE_SPACE)
        active = active[space]
        if not len(active):
            break
        where[active] += width[space]
    return where


def _after_openers(places: _Places, where: I64) -> I64:
    """The offset after opening quotes, brackets, and dashes with the space after them."""
    where = where.copy()
    active = np.arange(len(where))
    for _ in range(OPENERS):
        code, width = places.rows(active).character(where[active])
        dash = _listed(code, DASHES)
        opens = dash | _either(code, width, OPENER, WIDE_OPENERS)
        active, dash = active[opens], dash[opens]
        where[active] += width[opens]
        after = active[dash]
        where[after] += places.rows(after).byte(where[after]) == 0x20
    return where


def _may_start(places: _Places, where: I64) -> Bools:
    """Whether a sentence may start at these offsets: upper case, digit, most characters beyond ASCII."""
    code, width = places.character(where)
    small = (width == 2) & LOWER[np.where(width == 2, (code >> 8 & 0x1F) << 6 | code & 0x3F, 0)]
    space = _either(code, width, SPACE, WIDE_SPACE)
    return np.asarray(START[places.byte(where)] & ~small & ~space)


def _starts_small(places: _Places, where: I64, capitals: _Capitals) -> Bools:
    """Whether a letter a to z starts a sentence at these offsets, as in a document without capitals."""
    first = places.byte(where)
    small = np.flatnonzero((first >= 0x61) & (first <= 0x7A))
    if len(small):
        small = small[~capitals.present[np.searchsorted(capitals.offsets, where[small], "right") - 1]]
    starts = np.zeros(len(where), bool)
    starts[small] = True
    return starts


def _starts_often(places: _Places, where: I64) -> Bools:
    """Whether the word at these offsets is one of STARTERS and not an initial ("A.")."""
    ahead = np.array([places.byte(where + k) for k in range(WORD + 1)]).reshape(WORD + 1, len(where))
    letters = np.logical_and.accumulate(LETTER[ahead]).sum(0)
    code = np.zeros(len(where), np.int64)
    for k in range(WORD):
        code = np.where(k < letters, code << 8 | (ahead[k] & 0x7F) | 0x20, code)
    plain = np.logical_and.accumulate(ahead < 0x80).sum(0) >= letters
    after = ahead[np.minimum(letters, WORD), np.arange(len(where))]
    initial = (letters == 1) & (after == 0x2E)
    return np.asarray(plain & (letters <= WORD) & ~initial & _listed(code, STARTER_CODES))


def _dot_belongs(places: _Places, dots: I64, following: I64) -> tuple[Bools, Bools]:
    """Whether a dot never ends a sentence, and whether it is faint, by the text before it."""
    back = np.array([places.byte(dots - k) for k in range(1, WORD + 3)]).reshape(WORD + 2, len(dots))
    columns = np.arange(len(dots))
    # General punctuation (E2 80 xx) and the no-break space (C2 A0) are not letters, though beyond ASCII.
    wide = (back[1:-1] == 0x80) & (back[2:] == 0xE2) | (back[:-2] == 0xA0) & (back[1:-1] == 0xC2)
    back = back[:WORD]
    letters = np.logical_and.accumulate(LETTER[back] & ~wide).sum(0)
    digits = np.logical_and.accumulate(DIGIT[back]).sum(0)
    code = np.zeros(len(dots), np.int64)
    for k in range(WORD - 1):
        code += np.where(k < letters, ((back[k] & 0x7F) | 0x20) << (8 * k), 0)
    plain = (letters < WORD) & (np.logical_and.accumulate(back < 0x80).sum(0) >= letters)
    edge = np.minimum(letters, WORD - 1)
    previous = back[edge, columns]
    # "U.S.", "B.Sc.", "5 m.", "“A.", but not "won't." or "won’t."; a letter of two bytes is one letter.
    single = (letters == 1) | ((letters == 2) & (back[0] < 0xC0) & (back[1] >= 0xC3) & (back[1] < 0xE0))
    faint = single & (BEFORE_INITIAL[previous] | wide[edge, columns] & (previous != 0x99))
    faint |= (letters == 2) & (previous == 0x2E)
    faint |= plain & _listed(code, SHORT_CODES)
    faint |= (letters == 0) & SPACE[back[0]] & (back[1] == 0x2E)  # the last dot of ". . ."
    number = digits + (letters == 1)
    above = back[np.minimum(number, WORD - 1), columns]
    item = (number >= 1) & (number <= 3) & ((above == 0) | (above == 0x0A))
    reference = DIGIT[following] & _listed(code, DIGIT_CODES)
    return item | plain & (reference | _listed(code, TITLE_CODES)), faint
