"""MinHash signatures of spans of sentences and of whole documents.

Comes in: byte spans of sentences (`text.Spans`). Goes out: ``uint32[n, permutations]``, a signature a span or document,
and which of them are real.

What is signed is a *set of shingles*: all runs of ``shingle_words`` words (`words`) of the span's sentences joined,
and never of a word beyond the span: the same span signs the same wherever it stands. A span of fewer words than a
shingle has one shingle, of all its words; one without words has no signature. Two signatures agree in a position with
a probability of the Jaccard similarity of the two sets (Broder 1997), so the share of equal positions estimates it.

Decision: shingles lie in the order of the text, so the set of a span is a range of them, and a signature is a minimum
over a range (`minima`). Neighbouring spans share the work on their sentences without a row for each sentence and for
what crosses from one into the next.

A shingle's 32 bits come from a well mixed 64-bit hash and are made odd, for 0 would be the smallest under every
permutation.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import I64, U32, U64, Bools
from corpusforge.dedupe.minima import range_minima
from corpusforge.dedupe.words import Words, hash_words
from corpusforge.text import Spans

_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd: no bits are lost (any odd number with mixed bits would do)


class Sets(NamedTuple):
    """Sets of shingles: set i is ``hashes[starts[i]:stops[i]]``, empty where there is none to sign."""

    hashes: U32
    starts: I64
    stops: I64

    def take(self, rows: slice | I64 | Bools) -> Sets:
        """Some of the sets."""
        return Sets(self.hashes, self.starts[rows], self.stops[rows])

    def fingerprints(self) -> U64:
        """One hash a set, equal where the same shingles were counted as often, never 0; 0 where there is no set."""
        sums = np.zeros(len(self.hashes) + 1, np.uint64)
        np.cumsum(seeds.mix(self.hashes.astype(np.uint64)), out=sums[1:])
        found = seeds.mix(sums[self.stops] - sums[self.starts])
        return np.where(self.stops > self.starts, np.maximum(found, np.uint64(1)), np.uint64(0))


class Shingles(NamedTuple):
    """The shingles of a column of sentences, in the order of the text."""

    hashes: U32  # shingle i begins with word i; those that run over the end of their document are in no set
    words: Words
    documents: I64  # document i owns sentences documents[i]:documents[i + 1]
    size: int  # words a shingle

    def span_sets(self, length: int = 3) -> Sets:
        """The shingles of the span of ``length`` sentences that begins at each sentence.

        There is no span too near the end of a document, and none where all sentences have no words.
        """
        offsets = self.words.offsets
        sentences = len(offsets) - 1
        behind = np.minimum(np.arange(sentences) + length, sentences)
        ends = np.repeat(self.documents[1:], np.diff(self.documents))
        inside = np.arange(sentences) + length <= ends
        return self._sets(offsets[:-1], np.where(inside, offsets[behind], offsets[:-1]))

    def document_sets(self) -> Sets:
        """The shingles of each document; there are none where a document has no words."""
        bounds = self.words.offsets[self.documents]
        return self._sets(bounds[:-1], bounds[1:])

    def _sets(self, starts: I64, stops: I64) -> Sets:
        """The shingles of words ``starts[i]:stops[i]``: of few words one more, put behind all others."""
        real = stops > starts
        short = np.flatnonzero(real & (stops - starts < self.size))
        whole = _whole_hashes(self.words.hashes, starts[short], stops[short])
        starts, stops = np.where(real, starts, 0), np.where(real, stops - (self.size - 1), 0)
        starts[short] = len(self.hashes) + np.arange(len(short))
        stops[short] = starts[short] + 1
        return Sets(np.concatenate([self.hashes, whole]) if len(short) else self.hashes, starts, stops)


@dataclasses.dataclass(frozen=True)
class Signer:
    """How signatures are taken; two compare only where all of this is equal."""

    permutations: int = 64
    shingle_words: int = 5
    seed: int = 0
    fold_numbers: bool = False

    def shingles(self, sentences: Spans) -> Shingles:
        """Hash words and shingles once, for spans and documents alike."""
        words = hash_words(sentences, fold_numbers=self.fold_numbers)
        hashes = _shingle_hashes(words.hashes, self.shingle_words)
        return Shingles(hashes, words, sentences.offsets, self.shingle_words)

    def span_signatures(self, shingles: Shingles, length: int = 3) -> tuple[U32, Bools]:
        """The signature of the span that begins at each sentence, and where there is one (`Shingles.span_sets`)."""
        return self.sign(shingles.span_sets(length))

    def document_signatures(self, shingles: Shingles) -> tuple[U32, Bools]:
        """The signature of each document, and which documents have words."""
        return self.sign(shingles.document_sets())

    def sign(self, sets: Sets) -> tuple[U32, Bools]:
        """The signature of each set, and which sets have any shingles; the rows of the others are 0."""
        signatures = np.zeros((len(sets.starts), self.permutations), np.uint32)
        real = sets.stops > sets.starts
        signatures[real] = range_minima(sets.hashes, self.multipliers(), sets.starts[real], sets.stops[real])
        return signatures, real

    def multipliers(self) -> U32:
        """The odd multiplier of each permutation."""
        drawn = seeds.words(self.seed, "minhash", np.arange(self.permutations, dtype=np.uint64))
        return (drawn >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


def _shingle_hashes(words: U64, length: int) -> U32:
    """The hash of the ``length`` words from each word on."""
    count = max(0, len(words) - length + 1)
    found = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):
        for k in range(length):
            found = found * _BASE + words[k : k + count]
    return _finish(found)


def _whole_hashes(words: U64, starts: I64, stops: I64) -> U32:
    """The hash of words ``starts[i]:stops[i]``, of ranges shorter than a shingle."""
    found = np.zeros(len(starts), np.uint64)
    with np.errstate(over="ignore"):
        for k in range(int((stops - starts).max(initial=0))):
            inside = starts + k < stops
            found[inside] = found[inside] * _BASE + words[starts[inside] + k]
    return _finish(found)


def _finish(found: U64) -> U32:
    return (seeds.mix(found) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
