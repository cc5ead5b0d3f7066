"""The repetition rules of Gopher: pages that repeat their own lines, paragraphs or n-grams of words.

Comes in: the text and the words of a batch, and which pages are still in. Goes out: which of them go, and what was
measured. The rules are those of Rae et al. 2021 (arXiv 2112.11446), appendix A.1.1, "Repetition Removal", table A1.

N-grams are compared as what they are, not by hashes: an n-gram is the pair of the two shorter ones in it, and pairs of
numbers are grouped by sorting. What occurs once in a document is no part of a longer repeat, so each round looks only
at what the round before found repeated, and work and memory stay linear in the words.

*Duplicate* means equal to an earlier one on the same page. Shares are of the characters of the page, white space
included; the characters of the most frequent n-gram count its inner spaces, those of duplicate n-grams do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from corpusforge.arrays import I64
from corpusforge.clean.gopher_rules import GopherRules
from corpusforge.clean.limits import Findings, shares
from corpusforge.clean.pieces import Pieces, characters_in, repeats, split_at_runs, split_paragraphs, sums
from corpusforge.clean.step import KEPT
from corpusforge.clean.words import Words

REASONS = (
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

    def within(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Repeated:
        """Some of the places."""
        return self if chosen.all() else self._replace(places=self.places[chosen], groups=self.groups[chosen])


def judge_repetition(found: Findings, rules: GopherRules) -> None:
    """The rules of repetition: paragraphs and lines, then n-grams of words."""
    characters = np.asarray(pc.utf8_length(found.texts)).astype(np.int64)
    _judge_pieces("paragraph", split_paragraphs(found.texts, found.words), characters, rules, found)
    _judge_pieces("line", split_at_runs(found.texts), characters, rules, found)
    found.narrow()
    _judge_ngrams(rules, found)


def _judge_pieces(unit: str, pieces: Pieces, characters: I64, rules: GopherRules, found: Findings) -> None:
    again = repeats(pieces)
    share = shares(sums(again, pieces.offsets), np.diff(pieces.offsets))
    limit = getattr(rules, f"max_duplicate_{unit}s")
    found.at_most(f"page:duplicate-{unit}s", f"duplicate {unit}s", share, limit)
    share = shares(characters_in(pieces.choose(again)), characters)
    limit = getattr(rules, f"max_duplicate_{unit}_characters")
    found.at_most(f"page:duplicate-{unit}-characters", f"characters in duplicate {unit}s", share, limit)


def _judge_ngrams(rules: GopherRules, found: Findings) -> None:
    words = found.words
    characters = np.asarray(pc.utf8_length(found.texts)).astype(np.int64)
    before = np.append(0, np.cumsum(words.characters))
    repeated = _repeated_words(words)
    for n in range(2, max(_DUPLICATE) + 1):
        repeated = _longer(repeated, words, n)
        if n in _TOP:
            share = shares(_top_characters(repeated, words, before, n), characters)
            found.at_most(f"page:top-{n}-gram", f"top {n}-gram", share, getattr(rules, f"max_top_{n}_gram"))
        if n in _DUPLICATE:
            limit = getattr(rules, f"max_duplicate_{n}_grams")
            share = shares(_duplicate_characters(repeated, words, before, n), characters)
            if rules.duplicate_ngrams_in_turn and limit:
                _take_turns(repeated, words, before, n, share, np.flatnonzero(share > limit), characters)
            found.at_most(f"page:duplicate-{n}-grams", f"duplicate {n}-grams", share, limit)
        stays = found.codes[found.numbers] == KEPT
        repeated = repeated.within(stays[words.documents[repeated.places]])


def _repeated_words(words: Words) -> Repeated:
    keys = words.documents * len(words.vocabulary) + words.numbers
    return _grouped(keys, np.arange(len(keys)))


def _longer(shorter: Repeated, words: Words, n: int) -> Repeated:
    """Repeated n-grams, from those of n - 1 words: both that begin and end one are repeated as well."""
    places = shorter.places
    first = np.flatnonzero(places[1:] == places[:-1] + 1)
    if n == 2:
        owners = words.documents[places]
        first = first[owners[first] == owners[first + 1]]
    return _grouped(shorter.groups[first] * len(shorter.firsts) + shorter.groups[first + 1], places[first])


def _grouped(keys: I64, places: I64) -> Repeated:
    """The places whose key occurs more than once. Groups are numbered in the order of their keys."""
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
    share: np.ndarray[tuple[int], np.dtype[np.float64]],
    suspects: I64,
    characters: I64,
) -> None:
    """Replace the share of suspects by what reading word by word gives, which is never more.

    A duplicate n-gram is jumped over whole; one that begins inside it is neither counted nor remembered.
    """
    bounds = np.searchsorted(repeated.places, words.offsets)
    # A Python loop with a reason: each step depends on the one before; only pages that nearly all must go.
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
