"""Which lines stay: every line of a column of documents judged at once.

Comes in: a string column. Goes out: `Judged`: where each line lies, the code of the first rule that took it, and the
text of the lines that lost citations. The order of the rules is that of tensorflow-datasets 4.9.10,
``text/c4_utils.py``, ``clean_page``: the tests of one line run in the order of the codes, and the first decides.

Lines are never copied to be judged: a rule looks at bytes of the column's own buffer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.clean.rules import Rules
from corpusforge.text import I64, U8, byte_slices, line_spans, text_bytes

KEPT, LONG_WORD, NO_MARK, FEW_WORDS, LOREM_IPSUM, JAVASCRIPT, CURLY_BRACE, POLICY = range(8)

REASONS = (
    "kept",
    "line:long-word",
    "line:no-terminal-punctuation",
    "line:few-words",
    "page:lorem-ipsum",
    "line:javascript",
    "page:curly-brace",
    "line:policy",
)
"""Reason of each code. A page reason takes the whole page."""

Codes = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]

# Characters whose str.lower() holds an ASCII letter though they are none: İ and the Kelvin sign K.
_TRICKY = np.array([0xC4B0, 0xE284AA])
_SPACE_CODES = np.array(sorted(int.from_bytes(chr(c).encode(), "big") for c in range(128, 0x3001) if chr(c).isspace()))


class Lines(NamedTuple):
    """Stripped lines as byte spans, in order; document i owns ``offsets[i]`` to ``offsets[i + 1]``."""

    data: U8
    starts: I64
    stops: I64
    offsets: I64


class Judged(NamedTuple):
    """``codes``: one a line. ``words``: its white-space words. ``cited``: numbers of the lines that lost citations,
    ascending, and ``cited_texts`` what is left of them."""

    lines: Lines
    codes: Codes
    words: I64
    cited: I64
    cited_texts: pa.StringArray


def judge_lines(text: pa.StringArray, rules: Rules) -> Judged:
    """Judge every line of every document."""
    spans = line_spans(text)
    lines = Lines(spans.data, spans.starts, spans.stops, spans.offsets)
    view = _Bytes.of(lines)
    long_word = _long_words(view, lines, rules.max_word_characters)
    cited, texts = _without_citations(lines, rules)
    codes, words = _judge(view, lines, rules)
    if len(cited):
        inner, offsets = text_bytes(texts)
        again = Lines(inner, offsets[:-1], offsets[1:], offsets[[0, -1]])
        codes[cited], words[cited] = _judge(_Bytes.of(again), again, rules)
        words[cited] -= np.asarray(pc.utf8_is_space(pc.utf8_slice_codeunits(texts, 0, 1)), bool)
    codes[long_word] = LONG_WORD
    return Judged(lines, codes, words, cited, texts)


class _Bytes(NamedTuple):
    """What the rules share about one buffer: where words begin, and where odd characters stand."""

    low: int
    high: int
    word_starts: I64  # offsets of bytes that are no white space, behind one that is
    tricky: I64  # offsets of characters that lower-case into ASCII

    @classmethod
    def of(cls, lines: Lines) -> _Bytes:
        if not len(lines.starts):
            return cls(0, 0, np.empty(0, np.int64), np.empty(0, np.int64))
        low, high = int(lines.starts[0]), int(lines.stops[-1])
        view = lines.data[low:high]
        space = ((view - 0x09) <= 4) | ((view - 0x1C) <= 4)
        at = np.flatnonzero((view == 0xC2) | (view == 0xC4) | ((view - 0xE1) <= 2))
        width = 2 + (view[at] >= 0xE0).astype(np.int64)
        code = view[at].astype(np.int64) << 8 | view[at + 1]
        wide = width > 2
        code[wide] = code[wide] << 8 | view[at[wide] + 2]
        white = np.isin(code, _SPACE_CODES)
        for k in range(3):
            space[at[white & (width > k)] + k] = True
        starts = np.flatnonzero(space[:-1] & ~space[1:]) + (low + 1)
        return cls(low, high, starts, at[np.isin(code, _TRICKY)] + low)


def _judge(view: _Bytes, lines: Lines, rules: Rules) -> tuple[Codes, I64]:
    """Codes by all rules that look at a line without its citations, and the number of words."""
    codes = np.full(len(lines.starts), KEPT, np.int8)
    words = _count_words(view, lines)

    def take(code: int, found: Mask | I64) -> None:
        # Later rules first: the code of an earlier rule overwrites theirs.
        codes[found] = code

    content = lines.data[view.low : view.high].tobytes()
    lowered = content.lower()
    take(POLICY, _holding_lower(lowered, view, lines, rules.policy))
    take(CURLY_BRACE, _holding(content, view, lines, rules.curly_brace))
    take(JAVASCRIPT, _holding_lower(lowered, view, lines, rules.javascript))
    take(LOREM_IPSUM, _holding_lower(lowered, view, lines, rules.lorem_ipsum))
    take(FEW_WORDS, words < rules.min_words)
    if rules.end_marks:
        take(NO_MARK, ~_ends_in(lines, rules.end_marks) | _ends_in(lines, rules.no_end_marks))
    return codes, words


def _long_words(view: _Bytes, lines: Lines, limit: int) -> I64:
    """Numbers of the lines with a white-space word of more than ``limit`` characters."""
    if not limit or not len(lines.starts):
        return np.empty(0, np.int64)
    # A word of so many characters lies in a gap of at least as many bytes between the starts of words.
    edges = np.concatenate([[view.low], view.word_starts, [view.high]])
    gap = np.flatnonzero(np.diff(edges) > limit)
    first = np.searchsorted(lines.stops, edges[gap], "right")
    last = np.searchsorted(lines.starts, edges[gap + 1], "left")
    suspects = {int(i) for a, b in zip(first, last, strict=True) for i in range(a, b)}
    # A Python loop with a reason: only lines with a gap of a thousand bytes come here (none in most pages).
    long = [i for i in sorted(suspects) if any(len(word) > limit for word in _text_of(lines, i).split())]
    return np.array(long, np.int64)


def _text_of(lines: Lines, number: int) -> str:
    return lines.data[lines.starts[number] : lines.stops[number]].tobytes().decode()


def _count_words(view: _Bytes, lines: Lines) -> I64:
    """White-space words of each line. A line begins with no white space, or it would not be stripped."""
    inner = np.searchsorted(view.word_starts, lines.stops) - np.searchsorted(view.word_starts, lines.starts, "right")
    return inner + (lines.starts < lines.stops)


def _ends_in(lines: Lines, marks: tuple[str, ...]) -> Mask:
    """Whether a line ends in one of a few short strings."""
    ends = np.zeros(len(lines.starts), bool)
    for mark in marks:
        code = mark.encode()
        same = lines.stops - lines.starts >= len(code)
        for k, byte in enumerate(reversed(code), 1):
            same[same] = lines.data[lines.stops[same] - k] == byte
        ends |= same
    return ends


def _without_citations(lines: Lines, rules: Rules) -> tuple[I64, pa.StringArray]:
    """Numbers and texts of the lines that change when citations are deleted."""
    patterns = [r"\[\p{Nd}*\]"] if rules.numbered_citations else []
    patterns += [_escaped(text) for text in rules.citations]
    heads = {p[:2] for p in patterns}
    none = np.empty(0, np.int64), pa.array([], pa.string())
    if not patterns or not len(lines.starts):
        return none
    low, high = int(lines.starts[0]), int(lines.stops[-1])
    if heads == {r"\["}:
        opening = np.flatnonzero(lines.data[low:high] == 0x5B) + low
        numbers = np.unique(np.searchsorted(lines.stops, opening, "right"))
    else:
        numbers = np.arange(len(lines.starts))
    before = byte_slices(lines.data, lines.starts[numbers], lines.stops[numbers])
    after = pc.replace_substring_regex(before, pattern="|".join(patterns), replacement="")
    changed = pc.not_equal(pc.binary_length(before), pc.binary_length(after))
    return numbers[changed.to_numpy(zero_copy_only=False)], after.filter(changed)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c.isascii() and not c.isalnum() and c != " " else c for c in text)


def _holding_lower(lowered: bytes, view: _Bytes, lines: Lines, phrases: tuple[str, ...]) -> I64:
    """Numbers of the lines whose ``str.lower`` holds one of the (lower-case ASCII) phrases."""
    found = _holding(lowered, view, lines, phrases)
    if not len(view.tricky):
        return found
    odd = np.unique(np.searchsorted(lines.stops, view.tricky, "right"))
    more = [i for i in odd.tolist() if any(p in _text_of(lines, i).lower() for p in phrases)]
    return np.union1d(found, np.array(more, np.int64))


def _holding(content: bytes, view: _Bytes, lines: Lines, phrases: tuple[str, ...]) -> I64:
    """Numbers of the lines that hold one of the phrases. ``content``: the bytes from ``view.low`` on.

    A Python loop with a reason: one step a hit, and hits are rare; the search itself is C.
    """
    found = set()
    for phrase in phrases:
        needle = phrase.encode()
        at = content.find(needle)
        while at >= 0:
            number = int(np.searchsorted(lines.stops, at + view.low, "right"))
            inside = number < len(lines.starts) and lines.starts[number] <= at + view.low
            if inside and at + view.low + len(needle) <= lines.stops[number]:
                found.add(number)
                at = int(lines.stops[number]) - view.low - 1
            at = content.find(needle, at + 1)
    return np.array(sorted(found), np.int64)
