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
import itertools
from typing import NamedTuple

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import F32, F64, I64, U32, U64, Bools
from corpusforge.dedupe.normalize import Words, hash_words
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


# MERGED DOCSTRING of corpusforge.dedupe.minima:
# The smallest hash of many ranges under many permutations at once.
#
# Comes in: 32-bit hashes in a row, and ranges of them that may overlap. Goes out: for each range and permutation the
# minimum of the permuted hashes.
#
# A permutation is ``(multiplier * hash) mod 2^32`` with an odd multiplier: a bijection of 32-bit words.
#
# Decision: permuted hashes are never reduced range by range. A table holds the minimum of the window of 2^k hashes from
# each hash on; doubling the windows is one pass over it. A range of 2^k to 2^(k+1) hashes is covered by two windows, so
# it costs two look-ups, however many ranges share its hashes. Longer ranges are cut into pieces of two of the widest
# windows. The table is built block by block, small enough to stay in the processor's cache.

LEVELS = 5
"""Doublings: windows of up to 32 hashes, pieces of up to 64 (own measurement: the fastest for spans of 70 words)."""
TABLE_CELLS = 1 << 16
"""Cells of a table, two of which are in use: 256 KiB each, for a cache of 1 MiB (own measurement: of tables of 2^14 to
2^18 cells these are the fastest)."""

_PIECE = 2 << LEVELS


class _Pieces(NamedTuple):
    """Pieces of ranges, in the order of blocks and, inside a block, of levels."""

    rows: I64  # where the minima of each piece go
    starts: I64
    stops: I64
    bounds: I64  # run i of pieces of one block and level is bounds[i]:bounds[i + 1]
    blocks: I64  # of each run
    levels: I64


def range_minima(hashes: U32, multipliers: U32, starts: I64, stops: I64) -> U32:
    """For each range the minimum of ``multiplier * hash mod 2^32`` under each multiplier; no range is empty.

    >>> hashes, multipliers = np.array([9, 7, 5, 3], np.uint32), np.array([1, 2**32 - 1], np.uint32)
    >>> range_minima(hashes, multipliers, np.array([0, 1]), np.array([3, 4])).tolist()
    [[5, 4294967287], [3, 4294967289]]
    """
    if not len(starts):
        return np.zeros((0, len(multipliers)), np.uint32)
    block_size = max(_PIECE, TABLE_CELLS // len(multipliers))
    owners, low, high = _cut(starts, stops)
    pieces = _in_blocks(low, high, block_size)
    minima = np.empty((len(low), len(multipliers)), np.uint32)
    room = np.empty((2, block_size + _PIECE, len(multipliers)), np.uint32)
    block, level, table = -1, 0, room[0]
    for run in range(len(pieces.blocks)):
        if pieces.blocks[run] != block:
            block, level = int(pieces.blocks[run]), 0
            here = hashes[block * block_size : (block + 1) * block_size + _PIECE]
            table = np.multiply(here[:, None], multipliers, out=room[0, : len(here)])
        for now in range(level, int(pieces.levels[run])):
            shift = 1 << now
            table = np.minimum(table[:-shift], table[shift:], out=room[(now + 1) % 2, : len(table) - shift])
        level = int(pieces.levels[run])
        chosen = slice(pieces.bounds[run], pieces.bounds[run + 1])
        found = table.take(pieces.starts[chosen] - block * block_size, axis=0)
        last = table.take(pieces.stops[chosen] - (block * block_size + (1 << level)), axis=0)
        minima[pieces.rows[chosen]] = np.minimum(found, last, out=found)
    return _fold(minima, owners, len(starts))


def _cut(starts: I64, stops: I64) -> tuple[I64, I64, I64]:
    """Cut ranges into pieces: the range of each, where it starts and where it stops.

    The first piece of every range comes first, then all others. The last piece of a long range reaches back into the
    one before it, which changes no minimum.
    """
    more = (stops - starts - 1) // _PIECE
    owners = np.repeat(np.arange(len(starts)), more)
    number = np.arange(1, len(owners) + 1) - np.repeat(np.cumsum(more) - more, more)
    high = np.minimum(starts[owners] + (number + 1) * _PIECE, stops[owners])
    owners = np.concatenate([np.arange(len(starts)), owners])
    low = np.concatenate([starts, high - _PIECE])
    return owners, low, np.concatenate([np.minimum(stops, starts + _PIECE), high])


def _fold(minima: U32, owners: I64, count: int) -> U32:
    """The minima of ranges from those of their pieces, which are in the order of `_cut`."""
    found, others = minima[:count], owners[count:]
    if len(others):
        fresh = np.flatnonzero(np.concatenate([[True], others[1:] != others[:-1]]))
        rest = np.minimum.reduceat(minima[count:], fresh, axis=0) if len(fresh) < len(others) else minima[count:]
        rows = others[fresh]
        found[rows] = np.minimum(found[rows], rest)
    return found


def _in_blocks(low: I64, high: I64, block_size: int) -> _Pieces:
    """Sort pieces by the block they start in and the windows that cover them."""
    levels = np.minimum(np.frexp(high - low)[1] - 1, LEVELS)
    runs = low // block_size * (LEVELS + 1) + levels
    order = np.argsort(runs, kind="stable")
    runs = runs[order]
    bounds = np.flatnonzero(np.concatenate([[True], runs[1:] != runs[:-1], [True]]))
    blocks, run_levels = np.divmod(runs[bounds[:-1]], LEVELS + 1)
    return _Pieces(order, low[order], high[order], bounds, blocks, run_levels)


# MERGED DOCSTRING of corpusforge.dedupe.jaccard:
# The true Jaccard similarity of pairs of sets of shingles.
#
# Comes in: shingle hashes in a row, and for each pair two ranges of them. Goes out: shared shingles by all shingles.
#
# Decision: all pairs of a block are sorted together, as 64-bit words of (pair, hash, side): equal hashes of both sides
# become neighbours. The hashes have 31 random bits, so of two spans of 70 shingles one in 400,000 pairs counts one
# shingle too many as shared.

_CELLS = 1 << 16
"""Shingles of both sides sorted at once (own measurement: the fastest of 2^14 to 2^20); one pair may have more."""


def jaccard(left: Sets, right: Sets) -> F32:
    """The similarity of set i of the left and of the right; no set is empty.

    >>> hashes = np.array([5, 7, 7, 9, 5, 1], np.uint32)
    >>> left, right = Sets(hashes, np.array([0]), np.array([4])), Sets(hashes, np.array([3]), np.array([6]))
    >>> jaccard(left, right).tolist()
    [0.5]
    """
    sizes = (left.stops - left.starts) + (right.stops - right.starts)
    blocks = np.cumsum(sizes) // _CELLS
    bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(sizes)]
    found = np.zeros(len(sizes), np.float32)
    for a, b in itertools.pairwise(bounds):
        words = np.concatenate([_words(sets.take(slice(a, b)), side) for side, sets in enumerate((left, right))])
        words.sort()
        found[a:b] = _shares(words, np.cumsum(sizes[a:b]))
    return found


def _words(sets: Sets, side: int) -> U64:
    """(pair, hash, side) of every shingle of sets. Hashes are odd, so that their lowest bit is free for the side."""
    hashes, starts, stops = sets
    sizes = stops - starts
    first = np.cumsum(sizes) - sizes
    at = np.repeat(starts - first, sizes)
    at += np.arange(len(at))
    named = np.repeat(np.arange(len(sizes), dtype=np.uint64) << np.uint64(32) | np.uint64(side), sizes)
    named |= hashes[at] & np.uint32(0xFFFFFFFE)
    return named


def _shares(words: U64, ends: I64) -> F64:
    """Shared by all of sorted words. ``ends``: behind the last word of each pair.

    A step from a word to the next of 0 is the same shingle of the same side, of 1 the same of the other side.
    """
    steps = np.full(len(words), 2, np.uint64)
    np.bitwise_xor(words[1:], words[:-1], out=steps[1:])
    shared, fresh = (_counts(flags, ends) for flags in (steps == 1, steps > 1))
    return shared / fresh


def _counts(flags: Bools, ends: I64) -> I64:
    """How many flags are set up to each end from the one before."""
    sums = np.cumsum(flags, dtype=np.int32)[ends - 1]
    return np.diff(sums, prepend=np.int32(0)).astype(np.int64)
