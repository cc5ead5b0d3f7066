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
from corpusforge.dedupe.minima import U32, range_minima
from corpusforge.dedupe.normalise import Bools
from corpusforge.dedupe.words import Words, hash_words
from corpusforge.seeds import U64
from corpusforge.text import I64, Spans

_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd: no bits are lost (any odd number with mixed bits would do)


class Shingles(NamedTuple):
    """The shingles of a column of sentences, in the order of the text: what signatures are taken of."""

    hashes: U32  # shingle i begins with word i; those that run over the end of their document are never used
    words: Words
    documents: I64  # document i owns sentences documents[i]:documents[i + 1]


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
        return Shingles(_shingle_hashes(words.hashes, self.shingle_words), words, sentences.offsets)

    def span_signatures(self, shingles: Shingles, length: int = 3) -> tuple[U32, Bools]:
        """The signature of the span of ``length`` sentences that begins at each sentence, and where there is one.

        There is none too near the end of a document, and where all sentences have no words.
        """
        offsets, documents = shingles.words.offsets, shingles.documents
        sentences = len(offsets) - 1
        stops = np.minimum(np.arange(sentences) + length, sentences)
        ends = np.repeat(documents[1:], np.diff(documents))
        real = (np.arange(sentences) + length <= ends) & (offsets[stops] > offsets[:-1])
        return self._sign(shingles, offsets[:-1], offsets[stops], real)

    def document_signatures(self, shingles: Shingles) -> tuple[U32, Bools]:
        """The signature of each document, and which documents have words."""
        bounds = shingles.words.offsets[shingles.documents]
        return self._sign(shingles, bounds[:-1], bounds[1:], bounds[1:] > bounds[:-1])

    def _sign(self, shingles: Shingles, starts: I64, stops: I64, real: Bools) -> tuple[U32, Bools]:
        """Signatures of words ``starts[i]:stops[i]``; rows that are not real are 0."""
        signatures = np.zeros((len(starts), self.permutations), np.uint32)
        rows = np.flatnonzero(real)
        starts, stops = starts[rows], stops[rows] - (self.shingle_words - 1)
        short = np.flatnonzero(stops <= starts)
        hashes = shingles.hashes
        if len(short):
            whole = _whole_hashes(shingles.words.hashes, starts[short], stops[short] + self.shingle_words - 1)
            starts[short] = len(hashes) + np.arange(len(short))
            stops[short] = starts[short] + 1
            hashes = np.concatenate([hashes, whole])
        signatures[rows] = range_minima(hashes, self.multipliers(), starts, stops)
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
        for k in range(int((stops - starts).max())):
            inside = starts + k < stops
            found[inside] = found[inside] * _BASE + words[starts[inside] + k]
    return _finish(found)


def _finish(found: U64) -> U32:
    return (seeds.mix(found) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
