"""The quality rules of Gopher, and the step of packs of the kind "gopher".

Comes in: a batch of DOCUMENTS. Goes out: which pages stay; no text changes. The rules are those of Rae et al. 2021
("Scaling Language Models: Methods, Analysis & Insights from Training Gopher", arXiv 2112.11446), appendix A.1.1,
"Quality Filtering"; those of "Repetition Removal" are in `gopher_repetition` and look at what these left.
A word is a white-space word. What the paper leaves open is a value of the pack.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, Bools
from corpusforge.clean import gopher_repetition
from corpusforge.clean.gopher_rules import GopherRules
from corpusforge.clean.limits import Findings, shares
from corpusforge.clean.pieces import beginning_with, ending_with, sums
from corpusforge.clean.step import Verdict
from corpusforge.clean.words import Words
from corpusforge.text import line_spans, text_bytes

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
    *gopher_repetition.REASONS,
)
"""Reason of each code. Rules are tried in this order."""


@dataclass(frozen=True)
class GopherStep:
    """The step of a pack of this kind."""

    rules: GopherRules

    @property
    def name(self) -> str:
        """The name of the pack."""
        return self.rules.name

    def check(self) -> None:
        """Nothing is needed."""

    def resources(self) -> dict[str, Any]:
        """The pack's own values."""
        return {"pack": self.rules.values()}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Which pages stay."""
        found = Findings(REASONS, documents["text"])
        judge_quality(found, self.rules)
        found.narrow()
        gopher_repetition.judge_repetition(found, self.rules)
        return Verdict(REASONS, found.codes, documents["text"], found.details)


def judge_quality(found: Findings, rules: GopherRules) -> None:
    """The rules of quality, in the order of the paper."""
    words = found.words
    counted = _counted(words, rules)
    numbers = words.counts if counted is None else sums(counted, words.offsets)
    lengths = words.characters if counted is None else np.where(counted, words.characters, 0)
    means = shares(sums(lengths, words.offsets), numbers)
    found.at_least("page:few-words", "words", numbers, rules.min_words)
    found.at_most("page:many-words", "words", numbers, rules.max_words)
    found.at_least("page:short-words", "mean word length", means, rules.min_mean_word_characters)
    found.at_most("page:long-words", "mean word length", means, rules.max_mean_word_characters)
    found.narrow()
    _judge_symbols(found, rules)
    _judge_lines(found, rules)
    found.narrow()
    words = found.words
    alphabetic = sums(_of_vocabulary(words, _alphabetic(words.vocabulary)), words.offsets)
    share = shares(alphabetic, words.counts)
    found.at_least("page:few-alphabetic-words", "words with a letter", share, rules.min_alphabetic_words)
    found.at_least("page:few-stop-words", "stop words", _stop_words(words, rules), rules.min_stop_words)


def _judge_symbols(found: Findings, rules: GopherRules) -> None:
    for reason, symbols in (("page:hash-marks", rules.hash_marks), ("page:ellipses", rules.ellipses)):
        rate = shares(_occurrences(found.texts, symbols), found.words.counts)
        label = reason.removeprefix("page:").replace("-", " ") + " a word"
        found.at_most(reason, label, rate, rules.max_symbols_a_word)


def _judge_lines(found: Findings, rules: GopherRules) -> None:
    lines = line_spans(found.texts)
    count = np.diff(lines.offsets)
    spans = (lines.data, lines.starts, lines.stops)
    bullets = shares(sums(beginning_with(*spans, rules.bullets), lines.offsets), count)
    found.at_most("page:bullet-lines", "lines with a bullet", bullets, rules.max_bullet_lines)
    ellipses = shares(sums(ending_with(*spans, rules.ellipses), lines.offsets), count)
    found.at_most("page:ellipsis-lines", "lines ending with an ellipsis", ellipses, rules.max_ellipsis_lines)


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
        # Few texts hold one; these Arrow counts, at 200 MB/s, for hits may overlap and lie across two texts.
        holding = np.unique(np.searchsorted(offsets, at, "right") - 1)
        total[holding] += np.asarray(pc.count_substring(texts.take(pa.array(holding)), symbol))
    return total


def _of_vocabulary(words: Words, mask: Bools) -> Bools:
    return np.asarray(mask[words.numbers])


def _counted(words: Words, rules: GopherRules) -> Bools | None:
    """Which words count towards the number and the length of words; None: all do."""
    if not rules.uncounted_characters:
        return None
    characters = "".join(rules.uncounted_characters)
    counted = np.ones(len(words.vocabulary), bool)
    plain = not re.search("[A-Za-z]", characters)
    numbers = _without_ascii_letters(words.vocabulary) if plain else np.arange(len(counted))
    # A Python loop with a reason: only words without a letter of ASCII, once each for the whole batch.
    stripped = map(str.strip, words.vocabulary.take(pa.array(numbers)).to_pylist(), itertools.repeat(characters))
    counted[numbers] = np.fromiter(map(bool, stripped), bool, len(numbers))
    return _of_vocabulary(words, counted)


def _alphabetic(vocabulary: pa.StringArray) -> Bools:
    """Which words hold a character that `str.isalpha` calls one."""
    found = np.ones(len(vocabulary), bool)
    numbers = _without_ascii_letters(vocabulary)
    # A Python loop with a reason: Arrow's tables of letters are of another version of Unicode; these words are few.
    letters = (any(map(str.isalpha, word)) for word in vocabulary.take(pa.array(numbers)).to_pylist())
    found[numbers] = np.fromiter(letters, bool, len(numbers))
    return found


def _without_ascii_letters(vocabulary: pa.StringArray) -> I64:
    plain = pc.match_substring_regex(vocabulary, "[A-Za-z]")
    return np.flatnonzero(~plain.to_numpy(zero_copy_only=False))


def _stop_words(words: Words, rules: GopherRules) -> I64:
    """How many different stop words each document holds."""
    listed, vocabulary = pa.array(rules.stop_words, pa.string()), words.vocabulary
    if rules.stop_words_any_case:
        listed, vocabulary = pc.utf8_lower(listed), pc.utf8_lower(vocabulary)
    places = pc.index_in(vocabulary, listed).fill_null(-1)
    which = np.asarray(places).astype(np.int64)[words.numbers]
    among = np.flatnonzero(which >= 0)
    seen = np.zeros((len(words.counts), max(len(listed), 1)), bool)
    seen[words.documents[among], which[among]] = True
    return np.asarray(seen.sum(axis=1))
