"""The rules of packs of the kind "c4", and which lines of a page they keep: all lines of a column judged at once.

No two implementations of C4 agree, so all constants come from the pack. The order of the rules is that of
tensorflow-datasets 4.9.10, ``text/c4_utils.py``, ``clean_page``: they run in the order of the codes, and the first that
applies decides. Rules of form (end mark, words) read the column's own bytes at the edges of lines; only the lines that
remain are copied, once, and searched for phrases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64, U8, Bools
from corpusforge.clean.measures import Lines, ending_with
from corpusforge.clean.pack import Pack, rule
from corpusforge.clean.step import KEPT, Codes
from corpusforge.text import WIDE_SPACE, byte_slices, escape, line_spans, text_bytes


@dataclass(frozen=True)
class Rules(Pack):
    """A pack of the kind "c4"."""

    kind: ClassVar[str] = "c4"

    max_page_characters: int = rule(0, "longest page, in characters; a longer one is dropped unread")
    min_paragraphs: int = rule(0, "lines of min_paragraph_characters that a page needs, cut at line feeds only")
    min_paragraph_characters: int = rule(0, "length of such a line")
    phrases_anywhere: bool = rule(False, "search the whole page for lorem_ipsum and curly_brace, not only kept lines")
    max_word_characters: int = rule(0, "longest white-space word; its line is dropped")
    numbered_citations: bool = rule(False, "delete [12] and []")
    citations: tuple[str, ...] = rule((), "delete these strings")
    end_marks: tuple[str, ...] = rule((), "a line must end in one of these")
    no_end_marks: tuple[str, ...] = rule((), "a line must not end in one of these")
    min_words: int = rule(0, "white-space words of a line, at least")
    words_with_citations: bool = rule(False, "count words before citations are deleted")
    min_characters: int = rule(
        0, "characters of a line without white space, at least; for text without spaces between words"
    )
    lorem_ipsum: tuple[str, ...] = rule((), "a lower-cased line with one drops its page")
    javascript: tuple[str, ...] = rule((), "a lower-cased line with one is dropped")
    curly_brace: tuple[str, ...] = rule((), "a line with one drops its page")
    policy: tuple[str, ...] = rule((), "a lower-cased line with one is dropped")
    badwords_in_lines: bool = rule(
        False, "an English bad word in a line kept so far drops the page, before any other step"
    )
    min_sentences: int = rule(0, "sentences of a page, at least, counted in its kept lines")
    builtin_sentences: bool = rule(False, "count sentences with the built-in splitter, whatever the setting")
    badword_fraction: float = rule(0.0, "share of the pages with a bad word to drop, drawn by hash of the URL")
    badword_substring_languages: tuple[str, ...] = rule((), "languages in which bad words need no word boundaries")
    badwords_removed: tuple[str, ...] = rule((), "entries, as language:entry, left out of the lists")

    @property
    def judges_lines(self) -> bool:
        """Whether any rule looks at lines; where none does, the text of a page stays as it came."""
        phrases = self.javascript or self.policy or self.badwords_in_lines
        if not self.phrases_anywhere:
            phrases = phrases or self.lorem_ipsum or self.curly_brace
        deleted = self.numbered_citations or self.citations
        form = self.end_marks or self.no_end_marks or self.min_words or self.min_characters or self.max_word_characters
        return bool(phrases or deleted or form or self.min_sentences)

    def check(self, where: str) -> None:
        """Raises `errors.RecipeInvalid` for a share above 1."""
        if self.badword_fraction > 1:
            raise errors.RecipeInvalid(where, f"badword_fraction = {self.badword_fraction:g}", "it is a share, 0 to 1")


LONG_WORD, NO_MARK, FEW_WORDS, FEW_CHARACTERS, LOREM_IPSUM, JAVASCRIPT, CURLY_BRACE, POLICY = range(1, 9)
BADWORD, BLANK = 9, 10

REASONS = (
    "kept",
    "line:long-word",
    "line:no-terminal-punctuation",
    "line:few-words",
    "line:few-characters",
    "page:lorem-ipsum",
    "line:javascript",
    "page:curly-brace",
    "line:policy",
    "page:badword",
    "line:blank",
)
"""Reason of each code. A page reason drops the whole page."""


_WHITE_SPACE = "[" + "".join(f"\\x{{{c:x}}}" for c in range(0x3001) if chr(c).isspace()) + "]+"
_HEAD = 64  # bytes of a line that are searched for its first words


class Judged(NamedTuple):
    """``codes``: one per line. ``amounts``: words of a line with the code FEW_WORDS, characters with FEW_CHARACTERS.
    ``formed``: numbers of the lines that pass the rules of form, ascending; ``texts``: these without citations.
    ``cited``: whether any of them had citations."""

    lines: Lines
    codes: Codes
    amounts: I64
    formed: I64
    texts: pa.StringArray
    cited: bool

    def texts_of(self, numbers: I64) -> pa.StringArray:
        """The texts of formed lines, given by ascending numbers."""
        if len(numbers) == len(self.formed):
            return self.texts
        return self.texts.take(pa.array(np.searchsorted(self.formed, numbers)))


def judge_lines(
    text: pa.StringArray, rules: Rules, has_badword: Callable[[pa.StringArray], Bools] | None = None
) -> Judged:
    """Judge every line of every document. ``has_badword``: called with the lines that would stay."""
    lines = Lines(*line_spans(text)[:4])
    codes, amounts = _judge_form(lines, rules)
    cited, without = _without_citations(lines, rules)
    if len(cited):
        codes[cited], amounts[cited] = _judge_cited(lines, cited, without, rules)
    codes[_long_words(lines, rules.max_word_characters)] = LONG_WORD
    codes[lines.starts == lines.stops] = BLANK  # a blank line fails other rules too; this reason is plainer
    formed = np.flatnonzero(codes == KEPT)
    texts = byte_slices(lines.data, lines.starts[formed], lines.stops[formed])
    kept = codes[cited] == KEPT
    if kept.any():
        mask = np.zeros(len(formed), bool)
        mask[np.searchsorted(formed, cited[kept])] = True
        texts = pc.replace_with_mask(texts, pa.array(mask), without.filter(pa.array(kept)))
    content = _judge_content(texts, rules)
    if has_badword:
        clean = np.flatnonzero(content == KEPT)
        content[clean[has_badword(texts.take(pa.array(clean)))]] = BADWORD
    codes[formed] = content
    return Judged(lines, codes, amounts, formed, texts, bool(kept.any()))


def _judge_form(lines: Lines, rules: Rules) -> tuple[Codes, I64]:
    """NO_MARK, FEW_WORDS, FEW_CHARACTERS or KEPT for each line, and its number of words or characters if too few."""
    codes = np.full(len(lines.starts), NO_MARK, np.int8)
    amounts = np.zeros(len(codes), np.int64)
    marked = np.arange(len(codes))
    if rules.end_marks:
        marked = _ending_in(lines, np.flatnonzero(lines.starts < lines.stops), rules.end_marks)
    codes[marked] = KEPT
    codes[_ending_in(lines, marked, rules.no_end_marks)] = NO_MARK
    marked = marked[codes[marked] == KEPT]
    if rules.min_words:
        count = _count_words(lines, marked, rules.min_words)
        few = count < rules.min_words
        codes[marked[few]], amounts[marked[few]] = FEW_WORDS, count[few]
        marked = marked[~few]
    if rules.min_characters:
        count = _count_characters(lines, marked)
        few = count < rules.min_characters
        codes[marked[few]], amounts[marked[few]] = FEW_CHARACTERS, count[few]
    return codes, amounts


def _judge_cited(lines: Lines, cited: I64, without: pa.StringArray, rules: Rules) -> tuple[Codes, I64]:
    """`_judge_form` of the lines that change when citations are deleted; ``without``: their texts afterwards."""
    data, offsets = text_bytes(without)
    inner = Lines(data, offsets[:-1], offsets[1:], offsets)
    if not rules.words_with_citations or not rules.min_words:
        codes, amounts = _judge_form(inner, rules)
    else:
        codes, amounts = _judge_form(inner, replace(rules, min_words=0))
        count = _count_words(lines, cited, rules.min_words)
        few = (count < rules.min_words) & ((codes == KEPT) | (codes == FEW_CHARACTERS))
        codes[few], amounts[few] = FEW_WORDS, count[few]
    bare = np.asarray(pc.equal(pc.binary_length(pc.utf8_trim_whitespace(without)), 0), bool)
    codes[bare & (codes == KEPT)] = BLANK
    return codes, amounts


def _count_characters(lines: Lines, numbers: I64) -> I64:
    """Characters of these lines that are not white space."""
    texts = byte_slices(lines.data, lines.starts[numbers], lines.stops[numbers])
    return np.asarray(pc.utf8_length(pc.replace_substring_regex(texts, _WHITE_SPACE, "")), np.int64)


def _ending_in(lines: Lines, numbers: I64, marks: tuple[str, ...]) -> I64:
    """Those of these lines that end in one of the marks."""
    if not marks:
        return numbers[:0]
    return numbers[ending_with(lines.data, lines.starts[numbers], lines.stops[numbers], marks)]


def _count_words(lines: Lines, numbers: I64, enough: int) -> I64:
    """White-space words of these lines, exact below ``enough``.

    Most lines have enough words in their first bytes. The others, and those with white space beyond ASCII there, are
    counted by `str.split` in a Python loop.
    """
    if len(lines.data) < _HEAD + 3:
        return np.array([len(_text_of(lines, n).split()) for n in numbers.tolist()], np.int64)
    sizes = lines.stops[numbers] - lines.starts[numbers]
    near_end = lines.starts[numbers] > len(lines.data) - _HEAD - 3
    starts = np.where(near_end, 0, lines.starts[numbers])
    heads = np.lib.stride_tricks.sliding_window_view(lines.data, _HEAD)[starts]
    space = ((heads - 0x09) <= 4) | ((heads - 0x1C) <= 4)
    begins = ~space
    begins[:, 1:] &= space[:, :-1]
    begins &= np.arange(_HEAD) < sizes[:, None]
    count = np.count_nonzero(begins, axis=1).astype(np.int64)
    unsure = near_end | ((count < enough) & (sizes > _HEAD)) | _with_wide_space(lines.data, heads, starts)
    for place in np.flatnonzero(unsure).tolist():
        count[place] = len(_text_of(lines, int(numbers[place])).split())
    return np.asarray(count)


def _with_wide_space(data: U8, heads: U8, starts: I64) -> Bools:
    """Whether the heads of lines hold white space beyond ASCII; ``heads``: shape ``[lines, _HEAD]``."""
    line, column = np.nonzero((heads == 0xC2) | ((heads - 0xE1) <= 2))
    at = starts[line] + column
    two = data[at].astype(np.int64) << 8 | data[at + 1]
    space = np.isin(two, WIDE_SPACE) | np.isin(two << 8 | data[at + 2], WIDE_SPACE)
    holds = np.zeros(len(heads), bool)
    holds[line[space]] = True
    return holds


def _long_words(lines: Lines, limit: int) -> I64:
    """Numbers of the lines with a white-space word of more than ``limit`` characters."""
    sizes = lines.stops - lines.starts
    if not limit or not (sizes > limit).any():
        return np.empty(0, np.int64)
    # A longer word covers a block of half as many bytes, which then holds no space.
    block, low, high = max(limit // 2, 1), int(lines.starts[0]), int(lines.stops[-1])
    blocks = (high - low) // block
    spaces = (lines.data[low : low + blocks * block] == 0x20).reshape(blocks, block).any(axis=1)
    owners = np.searchsorted(lines.stops, low + np.flatnonzero(~spaces) * block, "right")
    chosen = np.unique(owners[sizes[owners] > limit])
    # A Python loop with a reason: only lines of over a thousand bytes with five hundred in a row without a space.
    long = [n for n in chosen.tolist() if any(len(word) > limit for word in _text_of(lines, n).split())]
    return np.array(long, np.int64)


def _text_of(lines: Lines, number: int) -> str:
    return lines.data[lines.starts[number] : lines.stops[number]].tobytes().decode()


def _without_citations(lines: Lines, rules: Rules) -> tuple[I64, pa.StringArray]:
    """Numbers and texts of the lines that change when citations are deleted."""
    patterns = [r"\[\p{Nd}*\]"] if rules.numbered_citations else []
    patterns += map(escape, rules.citations)
    if not patterns or not len(lines.starts):
        return np.empty(0, np.int64), pa.array([], pa.string())
    numbers = np.arange(len(lines.starts))
    if all(text.startswith("[") for text in rules.citations):
        low, high = int(lines.starts[0]), int(lines.stops[-1])
        opening = np.flatnonzero(lines.data[low:high] == 0x5B) + low
        numbers = np.unique(np.searchsorted(lines.stops, opening, "right"))
    before = byte_slices(lines.data, lines.starts[numbers], lines.stops[numbers])
    after = pc.replace_substring_regex(before, pattern="|".join(patterns), replacement="")
    changed = pc.not_equal(pc.binary_length(before), pc.binary_length(after))
    return numbers[changed.to_numpy(zero_copy_only=False)], after.filter(changed)


def _judge_content(texts: pa.StringArray, rules: Rules) -> Codes:
    """LOREM_IPSUM, JAVASCRIPT, CURLY_BRACE, POLICY or KEPT for each text."""
    codes = np.full(len(texts), KEPT, np.int8)
    phrases = Phrases(texts)
    # Later rules first, so that earlier ones overwrite them.
    codes[phrases.holding_lowered(rules.policy)] = POLICY
    if not rules.phrases_anywhere:
        codes[phrases.holding(rules.curly_brace)] = CURLY_BRACE
    codes[phrases.holding_lowered(rules.javascript)] = JAVASCRIPT
    if not rules.phrases_anywhere:
        codes[phrases.holding_lowered(rules.lorem_ipsum)] = LOREM_IPSUM
    return codes


_INTO_ASCII = ("\u0130", "\u212a")
"""The letters beyond ASCII that `str.lower` turns into ASCII ones: dotted capital I and the Kelvin sign (Unicode 15,
UnicodeData.txt and SpecialCasing.txt)."""


class Phrases:
    """A column prepared for several searches."""

    def __init__(self, texts: pa.StringArray) -> None:
        data, self._offsets = text_bytes(texts)
        self._texts = texts
        self._content = data[self._offsets[0] : self._offsets[-1]].tobytes()
        self._lowered = self._content.lower()
        self._inexact = _holding(self._content, self._offsets, _INTO_ASCII)

    def holding(self, phrases: tuple[str, ...]) -> I64:
        """Numbers of the texts that hold one of the phrases, case included."""
        return _holding(self._content, self._offsets, phrases)

    def holding_lowered(self, phrases: tuple[str, ...]) -> I64:
        """Numbers of the texts whose lower case holds one of the phrases."""
        if not all(phrase.isascii() for phrase in phrases):
            # A Python loop with a reason: bytes are lower-cased as ASCII. Only c4-zh has such phrases.
            texts = enumerate(self._texts.to_pylist())
            return np.array([n for n, text in texts if any(p in text.lower() for p in phrases)], np.int64)
        numbers = _holding(self._lowered, self._offsets, phrases)
        if not len(self._inexact):
            return numbers
        # A Python loop with a reason: only the few texts with one of two rare letters.
        lower = {n: self._texts[n].as_py().lower() for n in self._inexact.tolist()}
        exact = [n for n, text in lower.items() if any(phrase in text for phrase in phrases)]
        return np.union1d(np.setdiff1d(numbers, self._inexact), np.array(exact, np.int64))


def _holding(content: bytes, offsets: I64, phrases: tuple[str, ...]) -> I64:
    """Numbers of the texts that hold one of the phrases; ``content`` begins at ``offsets[0]``.

    Python loops with a reason: one step for each text that holds a probe, which few do; the search itself is C.
    """
    edges, needles = offsets - offsets[0], [phrase.encode() for phrase in phrases]
    numbers: set[int] = set()
    for probe in _probes(phrases):
        at = content.find(probe)
        while at >= 0:
            number = int(np.searchsorted(edges, at, "right")) - 1
            start, stop = int(edges[number]), int(edges[number + 1])
            # A hit may span two texts or be only part of a phrase; either way this text is settled.
            if number not in numbers and any(content.find(needle, start, stop) >= 0 for needle in needles):
                numbers.add(number)
            at = content.find(probe, stop)
    return np.array(sorted(numbers), np.int64)


@cache
def _probes(phrases: tuple[str, ...]) -> tuple[bytes, ...]:
    """A few strings of which every phrase holds one: long words that phrases share, else whole phrases.

    >>> _probes(("use cookies", "cookie policy", "terms of use"))
    (b'cookie', b'terms of use')
    """
    probes, left = [], list(phrases)
    while left:
        words = {word for phrase in left for word in phrase.split() if len(word) > 4} | set(left)
        best = max(sorted(words), key=lambda word: (sum(word in phrase for phrase in left), len(word)))
        probes.append(best.encode())
        left = [phrase for phrase in left if best not in phrase]
    return tuple(probes)
