"""The quality and repetition rules of Gopher, and the step of packs of the kind "gopher".

The rules are those of Rae et al. 2021 ("Scaling Language Models: Methods, Analysis & Insights from Training Gopher",
arXiv 2112.11446), appendix A.1.1, "Quality Filtering" and then "Repetition Removal" (table A1). They drop pages and
change no text. A word is a white-space word. The paper does not say what a bullet is, whether case matters in stop
words, or how overlapping n-grams count; implementations differ there, so these are values of the pack as well.

*Duplicate* means equal to an earlier line, paragraph or n-gram of the same page. Shares are of the characters of the
page, white space included; the characters of the most frequent n-gram count its inner spaces, those of duplicate
n-grams do not. N-grams are compared exactly, not by hashes: an n-gram is the pair of the two shorter ones in it, and
pairs of numbers are grouped by sorting. What occurs once in a document is not part of a longer repeat, so each round
examines only the repeats of the previous round, and work and memory stay linear in the words.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import F64, I64, Bools, offsets_of
from corpusforge.clean.measures import (
    Findings,
    Lines,
    Words,
    beginning_with,
    characters_in,
    ending_with,
    repeats,
    shares,
    split_at_runs,
    split_paragraphs,
    sums,
)
from corpusforge.clean.pack import Pack, PackStep, rule
from corpusforge.clean.step import KEPT, Verdict
from corpusforge.text import line_spans, text_bytes


@dataclass(frozen=True)
class GopherRules(Pack):
    """A pack of the kind "gopher"."""

    kind: ClassVar[str] = "gopher"

    # Quality.
    min_words: int = rule(0, "words of a page, at least")
    max_words: int = rule(0, "words of a page, at most")
    min_mean_word_characters: float = rule(0.0, "mean word length, at least")
    max_mean_word_characters: float = rule(0.0, "mean word length, at most")
    uncounted_characters: tuple[str, ...] = rule(
        (), "words of these characters alone do not count in the four rules above"
    )
    hash_marks: tuple[str, ...] = rule((), "symbols limited by max_symbols_a_word")
    ellipses: tuple[str, ...] = rule((), "likewise; also line ends for max_ellipsis_lines")
    max_symbols_a_word: float = rule(0.0, "symbols of either kind for each word, at most")
    bullets: tuple[str, ...] = rule((), "beginnings of a line, after white space, that make it a bullet")
    max_bullet_lines: float = rule(0.0, "share of lines with a bullet, at most")
    max_ellipsis_lines: float = rule(0.0, "share of lines ending in an ellipsis, at most")
    min_alphabetic_words: float = rule(0.0, "share of words with a letter, at least")
    stop_words: tuple[str, ...] = rule((), "words of which min_stop_words must occur")
    stop_words_any_case: bool = rule(False, "compare stop words in lower case")
    min_stop_words: int = rule(0, "different stop words of a page, at least")
    # Repetition.
    max_duplicate_paragraphs: float = rule(0.0, "share of paragraphs that are duplicates, at most")
    max_duplicate_paragraph_characters: float = rule(0.0, "share of characters in duplicate paragraphs, at most")
    max_duplicate_lines: float = rule(0.0, "share of lines that are duplicates, at most")
    max_duplicate_line_characters: float = rule(0.0, "share of characters in duplicate lines, at most")
    max_top_2_gram: float = rule(0.0, "share of characters in the most frequent 2-gram, at most")
    max_top_3_gram: float = rule(0.0, "share of characters in the most frequent 3-gram, at most")
    max_top_4_gram: float = rule(0.0, "share of characters in the most frequent 4-gram, at most")
    duplicate_ngrams_in_turn: bool = rule(
        False, "words of a duplicate n-gram begin no other and are not remembered as a first one"
    )
    max_duplicate_5_grams: float = rule(0.0, "share of characters in duplicate 5-grams, at most")
    max_duplicate_6_grams: float = rule(0.0, "share of characters in duplicate 6-grams, at most")
    max_duplicate_7_grams: float = rule(0.0, "share of characters in duplicate 7-grams, at most")
    max_duplicate_8_grams: float = rule(0.0, "share of characters in duplicate 8-grams, at most")
    max_duplicate_9_grams: float = rule(0.0, "share of characters in duplicate 9-grams, at most")
    max_duplicate_10_grams: float = rule(0.0, "share of characters in duplicate 10-grams, at most")

    def check(self, where: str) -> None:
        """Raises `errors.RecipeInvalid` for characters that are not single ones, or stop words that are missing."""
        odd = [entry for entry in self.uncounted_characters if len(entry) != 1]
        if odd:
            raise errors.RecipeInvalid(where, f"uncounted_characters has {odd[0][:40]!r}", "give single characters")
        if self.min_stop_words and not self.stop_words:
            raise errors.RecipeInvalid(where, "stop_words is empty", "list stop words, or leave out min_stop_words")


_REPETITION_REASONS = (
    "page:duplicate-paragraphs",
    "page:duplicate-paragraph-characters",
    "page:duplicate-lines",
    "page:duplicate-line-characters",
    "page:top-2-gram",
    "page:top-3-gram",
    "page:top-4-gram",
    "page:duplicate-5-grams",
    "page:duplicate-6-grams",
    "page:duplicate-7-grams",
    "page:duplicate-8-grams",
    "page:duplicate-9-grams",
    "page:duplicate-10-grams",
)
"""In the order in which they are tried."""

REASONS = (
    "kept",
    "page:few-words",
    "page:many-words",
    "page:short-words",
    "page:long-words",
    "page:hash-marks",
    "page:ellipses",
    "page:bullet-lines",
    "page:ellipsis-lines",
    "page:few-alphabetic-words",
    "page:few-stop-words",
    *_REPETITION_REASONS,
)
"""Reason of each code. Rules are tried in this order."""


@dataclass(frozen=True)
class GopherStep(PackStep):
    """Applies a pack of the kind "gopher"."""

    rules: GopherRules

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Drop pages that break a rule."""
        findings = Findings(REASONS, documents["text"])
        judge_quality(findings, self.rules)
        findings.narrow()
        judge_repetition(findings, self.rules)
        return Verdict(REASONS, findings.codes, documents["text"], findings.details)


def judge_quality(findings: Findings, rules: GopherRules) -> None:
    """The rules of quality, in the order of the paper."""
    words = findings.words
    counted = _counted(words, rules)
    numbers = words.counts if counted is None else sums(counted, words.offsets)
    lengths = words.characters if counted is None else np.where(counted, words.characters, 0)
    means = shares(sums(lengths, words.offsets), numbers)
    findings.at_least("page:few-words", "words", numbers, rules.min_words)
    findings.at_most("page:many-words", "words", numbers, rules.max_words)
    findings.at_least("page:short-words", "mean word length", means, rules.min_mean_word_characters)
    findings.at_most("page:long-words", "mean word length", means, rules.max_mean_word_characters)
    findings.narrow()
    _judge_symbols(findings, rules)
    _judge_lines(findings, rules)
    findings.narrow()
    words = findings.words
    alphabetic = sums(_of_vocabulary(words, _alphabetic(words.vocabulary)), words.offsets)
    share = shares(alphabetic, words.counts)
    findings.at_least("page:few-alphabetic-words", "words with a letter", share, rules.min_alphabetic_words)
    findings.at_least("page:few-stop-words", "stop words", _stop_words(words, rules), rules.min_stop_words)


def _judge_symbols(findings: Findings, rules: GopherRules) -> None:
    for reason, symbols in (("page:hash-marks", rules.hash_marks), ("page:ellipses", rules.ellipses)):
        rate = shares(_occurrences(findings.texts, symbols), findings.words.counts)
        label = reason.removeprefix("page:").replace("-", " ") + " a word"
        findings.at_most(reason, label, rate, rules.max_symbols_a_word)


def _judge_lines(findings: Findings, rules: GopherRules) -> None:
    lines = line_spans(findings.texts)
    count = np.diff(lines.offsets)
    spans = (lines.data, lines.starts, lines.stops)
    bullets = shares(sums(beginning_with(*spans, rules.bullets), lines.offsets), count)
    findings.at_most("page:bullet-lines", "lines with a bullet", bullets, rules.max_bullet_lines)
    ellipses = shares(sums(ending_with(*spans, rules.ellipses), lines.offsets), count)
    findings.at_most("page:ellipsis-lines", "lines ending with an ellipsis", ellipses, rules.max_ellipsis_lines)


def _occurrences(texts: pa.StringArray, symbols: tuple[str, ...]) -> I64:
    """How often each text holds one of the symbols, as `str.count` of each, added up."""
    total = np.zeros(len(texts), np.int64)
    data, offsets = text_bytes(texts)
    low, high = int(offsets[0]), int(offsets[-1])
    for symbol in symbols:
        code = symbol.encode()
        at = np.flatnonzero(data[low : max(high - len(code) + 1, low)] == code[0]) + low
        for k, byte in enumerate(code[1:], 1):
            at = at[data[at + k] == byte]
        # Few texts hold one. Arrow counts in these, at 200 MB/s, because hits may overlap or span two texts.
        holding = np.unique(np.searchsorted(offsets, at, "right") - 1)
        total[holding] += np.asarray(pc.count_substring(texts.take(pa.array(holding)), symbol))
    return total


def _of_vocabulary(words: Words, mask: Bools) -> Bools:
    return np.asarray(mask[words.numbers])


def _counted(words: Words, rules: GopherRules) -> Bools | None:
    """Which words count towards the number and the length of words; None: all of them."""
    if not rules.uncounted_characters:
        return None
    characters = "".join(rules.uncounted_characters)
    counted = np.ones(len(words.vocabulary), bool)
    no_letters = not re.search("[A-Za-z]", characters)
    numbers = _without_ascii_letters(words.vocabulary) if no_letters else np.arange(len(counted))
    # A Python loop with a reason: only words without an ASCII letter, each once per batch.
    stripped = map(str.strip, words.vocabulary.take(pa.array(numbers)).to_pylist(), itertools.repeat(characters))
    counted[numbers] = np.fromiter(map(bool, stripped), bool, len(numbers))
    return _of_vocabulary(words, counted)


def _alphabetic(vocabulary: pa.StringArray) -> Bools:
    """Which words hold a letter, as `str.isalpha` has it."""
    alphabetic = np.ones(len(vocabulary), bool)
    numbers = _without_ascii_letters(vocabulary)
    # A Python loop with a reason: Arrow's tables of letters are from another version of Unicode; these words are few.
    letters = (any(map(str.isalpha, word)) for word in vocabulary.take(pa.array(numbers)).to_pylist())
    alphabetic[numbers] = np.fromiter(letters, bool, len(numbers))
    return alphabetic


def _without_ascii_letters(vocabulary: pa.StringArray) -> I64:
    holds_one = pc.match_substring_regex(vocabulary, "[A-Za-z]")
    return np.flatnonzero(~holds_one.to_numpy(zero_copy_only=False))


def _stop_words(words: Words, rules: GopherRules) -> I64:
    """How many different stop words each document holds."""
    listed, vocabulary = pa.array(rules.stop_words, pa.string()), words.vocabulary
    if rules.stop_words_any_case:
        listed, vocabulary = pc.utf8_lower(listed), pc.utf8_lower(vocabulary)
    entries = pc.index_in(vocabulary, listed).fill_null(-1)
    entry = np.asarray(entries).astype(np.int64)[words.numbers]
    hits = np.flatnonzero(entry >= 0)
    occurs = np.zeros((len(words.counts), max(len(listed), 1)), bool)
    occurs[words.documents[hits], entry[hits]] = True
    return np.asarray(occurs.sum(axis=1))


_TOP = (2, 3, 4)
_DUPLICATE = (5, 6, 7, 8, 9, 10)
"""Lengths of n-grams: Rae et al. 2021, table A1."""

_PLACE_BITS = 40  # of a count and a place packed into one number


class Repeated(NamedTuple):
    """N-grams that occur more than once in their document.

    ``places``: number of the word with which each occurrence begins, ascending. ``groups``: number of the n-gram
    there. ``firsts``, ``counts``: by group, its first place and its occurrences.
    """

    places: I64
    groups: I64
    firsts: I64
    counts: I64

    def within(self, chosen: Bools) -> Repeated:
        """The places that a mask chooses."""
        return self if chosen.all() else self._replace(places=self.places[chosen], groups=self.groups[chosen])


def judge_repetition(findings: Findings, rules: GopherRules) -> None:
    """The rules of repetition: paragraphs and lines, then n-grams of words."""
    characters = np.asarray(pc.utf8_length(findings.texts)).astype(np.int64)
    _judge_duplicates("paragraph", split_paragraphs(findings.texts, findings.words), characters, rules, findings)
    _judge_duplicates("line", split_at_runs(findings.texts), characters, rules, findings)
    findings.narrow()
    _judge_ngrams(rules, findings)


def _judge_duplicates(kind: str, parts: Lines, characters: I64, rules: GopherRules, findings: Findings) -> None:
    repeated = repeats(parts)
    share = shares(sums(repeated, parts.offsets), np.diff(parts.offsets))
    limit = getattr(rules, f"max_duplicate_{kind}s")
    findings.at_most(f"page:duplicate-{kind}s", f"duplicate {kind}s", share, limit)
    share = shares(characters_in(parts.choose(repeated)), characters)
    limit = getattr(rules, f"max_duplicate_{kind}_characters")
    findings.at_most(f"page:duplicate-{kind}-characters", f"characters in duplicate {kind}s", share, limit)


def _judge_ngrams(rules: GopherRules, findings: Findings) -> None:
    words = findings.words
    characters = np.asarray(pc.utf8_length(findings.texts)).astype(np.int64)
    before = offsets_of(words.characters)  # characters before each word
    repeated = _repeated_words(words)
    for n in range(2, max(_DUPLICATE) + 1):
        repeated = _longer(repeated, words, n)
        if n in _TOP:
            share = shares(_top_characters(repeated, words, before, n), characters)
            findings.at_most(f"page:top-{n}-gram", f"top {n}-gram", share, getattr(rules, f"max_top_{n}_gram"))
        if n in _DUPLICATE:
            limit = getattr(rules, f"max_duplicate_{n}_grams")
            share = shares(_duplicate_characters(repeated, words, before, n), characters)
            if rules.duplicate_ngrams_in_turn and limit:
                _take_turns(repeated, words, before, n, share, np.flatnonzero(share > limit), characters)
            findings.at_most(f"page:duplicate-{n}-grams", f"duplicate {n}-grams", share, limit)
        stays = findings.codes[findings.numbers] == KEPT
        repeated = repeated.within(stays[words.documents[repeated.places]])


def _repeated_words(words: Words) -> Repeated:
    keys = words.documents * len(words.vocabulary) + words.numbers
    return _grouped(keys, np.arange(len(keys)))


def _longer(shorter: Repeated, words: Words, n: int) -> Repeated:
    """Repeated n-grams, from those of n - 1 words: the two that begin and end an n-gram are repeated as well."""
    places = shorter.places
    first = np.flatnonzero(places[1:] == places[:-1] + 1)
    if n == 2:
        owners = words.documents[places]
        first = first[owners[first] == owners[first + 1]]
    return _grouped(shorter.groups[first] * len(shorter.firsts) + shorter.groups[first + 1], places[first])


def _grouped(keys: I64, places: I64) -> Repeated:
    """The places whose key occurs more than once; groups are numbered in the order of their keys."""
    order = np.argsort(keys)
    ordered = keys[order]
    fresh = np.ones(len(keys) + 1, bool)
    fresh[1:-1] = ordered[1:] != ordered[:-1]
    several = ~(fresh[:-1] & fresh[1:])
    order, begins = order[several], np.flatnonzero(fresh[:-1][several])
    groups = np.full(len(keys), -1, np.int64)
    groups[order] = np.cumsum(fresh[:-1][several]) - 1
    firsts = np.minimum.reduceat(places[order], begins) if len(begins) else begins
    chosen = groups >= 0
    return Repeated(places[chosen], groups[chosen], firsts, np.diff(np.append(begins, len(order))))


def _top_characters(repeated: Repeated, words: Words, before: I64, n: int) -> I64:
    """Characters of the most frequent n-gram of each document, all occurrences; of equals the earliest.

    Occurrences that overlap count in full, and where no n-gram repeats the first one is the most frequent: both as
    in datatrove 0.10.1, ``gopher_repetition_filter.py``.
    """
    best = np.zeros(len(words.counts), np.int64)
    best[words.counts >= n] = (1 << _PLACE_BITS) | _later(words.offsets[:-1][words.counts >= n])
    owners = words.documents[repeated.firsts]
    np.maximum.at(best, owners, repeated.counts << _PLACE_BITS | _later(repeated.firsts))
    count = best >> _PLACE_BITS
    first = np.where(count, _later(best & ((1 << _PLACE_BITS) - 1)), 0)
    last = np.minimum(first + n, len(before) - 1)
    return np.asarray(count * (before[last] - before[first] + n - 1))


def _later(places: I64) -> I64:
    """Numbers that are smaller the later the place."""
    return (1 << _PLACE_BITS) - 1 - places


def _duplicate_characters(repeated: Repeated, words: Words, before: I64, n: int) -> I64:
    """Characters of the words of each document that lie in an n-gram equal to an earlier one, each word once."""
    places = repeated.places[repeated.places != repeated.firsts[repeated.groups]]
    covered = np.maximum(places, np.append(0, places[:-1] + n)) if len(places) else places
    total = np.zeros(len(words.counts), np.int64)
    np.add.at(total, words.documents[places], before[places + n] - before[covered])
    return total


def _take_turns(
    repeated: Repeated,
    words: Words,
    before: I64,
    n: int,
    share: F64,
    suspects: I64,
    characters: I64,
) -> None:
    """Replace the share of suspects by that of reading word by word, which is never larger.

    After a duplicate n-gram reading continues at its end; one that begins inside it is neither counted nor remembered.
    """
    bounds = np.searchsorted(repeated.places, words.offsets)
    # A Python loop with a reason: each step depends on the previous one; only a few pages, most of which are dropped.
    for number in suspects.tolist():
        low, high = bounds[number], bounds[number + 1]
        seen: set[int] = set()
        after, total = 0, 0
        for place, group in zip(repeated.places[low:high].tolist(), repeated.groups[low:high].tolist(), strict=True):
            if place < after:
                continue
            if group in seen:
                after = place + n
                total += int(before[after] - before[place])
            seen.add(group)
        share[number] = total / characters[number]
