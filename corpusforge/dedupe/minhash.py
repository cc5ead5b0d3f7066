"""MinHash signatures of spans and documents, and the exact Jaccard similarity of their shingles.

What is compared are *sets of shingles*: all runs of ``shingle_words`` words (`normalize.hash_words`) of a text, and
no word outside it, so that a span has the same signature wherever it occurs. A text of fewer words than a
shingle has one shingle of all its words; a text without words has no signature. Two signatures agree in a position
with a probability of the Jaccard similarity of the two sets (Broder 1997), so the share of equal positions estimates
it.

Shingles are stored in the order of the text, so the set of a span is a range of them, and a signature is a minimum over
a range. Neighboring spans share the work on their sentences. Permuted hashes are never reduced range by range: a table
holds the minimum of the window of 2^k hashes from each hash on, and doubling the windows is one pass over it. A range
of 2^k to 2^(k+1) hashes is covered by two windows, so it costs two lookups, however many ranges share its hashes.
Longer ranges are split into chunks of two of the widest windows. The table is built block by block, small enough to
stay in the processor's cache.

A permutation is ``(multiplier * hash) mod 2^32`` with an odd multiplier: a bijection of 32-bit words. A shingle's 32
bits come from a well mixed 64-bit hash and are made odd, because 0 would be the smallest under every permutation.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import F32, F64, I64, U32, U64, Bools, ranges
from corpusforge.dedupe.normalize import Words, hash_words
from corpusforge.text import Spans

_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd: no bits are lost (any odd number with mixed bits would do)

LEVELS = 5
"""Doublings: windows of up to 32 hashes, chunks of up to 64 (own measurement: the fastest for spans of 70 words)."""
TABLE_CELLS = 1 << 16
"""Cells of each of the two tables: 256 KiB, for a cache of 1 MiB (own measurement: the fastest of 2^14 to 2^18)."""

_CHUNK = 2 << LEVELS

_CELLS = 1 << 16
"""Shingles of both sides sorted at once (own measurement: the fastest of 2^14 to 2^20); one pair may have more."""


class Sets(NamedTuple):
    """Sets of shingles: set i is ``hashes[starts[i]:stops[i]]``, empty where there is nothing to sign."""

    hashes: U32
    starts: I64
    stops: I64

    def take(self, rows: slice | I64 | Bools) -> Sets:
        """These sets."""
        return Sets(self.hashes, self.starts[rows], self.stops[rows])

    def fingerprints(self) -> U64:
        """One hash per set, equal for equal multisets of shingles; 0 only where a set is empty."""
        sums = np.zeros(len(self.hashes) + 1, np.uint64)
        np.cumsum(seeds.mix(self.hashes.astype(np.uint64)), out=sums[1:])
        mixed = seeds.mix(sums[self.stops] - sums[self.starts])
        return np.where(self.stops > self.starts, np.maximum(mixed, np.uint64(1)), np.uint64(0))


class Shingles(NamedTuple):
    """The shingles of a column of sentences, in the order of the text."""

    hashes: U32  # shingle i begins with word i; one that crosses the end of its document is in no set
    words: Words
    documents: I64  # document i owns sentences documents[i]:documents[i + 1]
    size: int  # words of a shingle

    def span_sets(self, length: int = 3) -> Sets:
        """The shingles of the span of ``length`` sentences that begins at each sentence.

        The set is empty too close to the end of a document, and for sentences without words.
        """
        offsets = self.words.offsets
        sentences = len(offsets) - 1
        after = np.minimum(np.arange(sentences) + length, sentences)
        ends = np.repeat(self.documents[1:], np.diff(self.documents))
        inside = np.arange(sentences) + length <= ends
        return self._sets(offsets[:-1], np.where(inside, offsets[after], offsets[:-1]))

    def document_sets(self) -> Sets:
        """The shingles of each document; none where a document has no words."""
        bounds = self.words.offsets[self.documents]
        return self._sets(bounds[:-1], bounds[1:])

    def _sets(self, starts: I64, stops: I64) -> Sets:
        """The shingles of words ``starts[i]:stops[i]``; the one shingle of a short text is appended to all others."""
        real = stops > starts
        short = np.flatnonzero(real & (stops - starts < self.size))
        whole = _whole_hashes(self.words.hashes, starts[short], stops[short])
        starts, stops = np.where(real, starts, 0), np.where(real, stops - (self.size - 1), 0)
        starts[short] = len(self.hashes) + np.arange(len(short))
        stops[short] = starts[short] + 1
        return Sets(np.concatenate([self.hashes, whole]) if len(short) else self.hashes, starts, stops)


@dataclasses.dataclass(frozen=True)
class Signer:
    """The parameters of a signature; signatures compare only where all of them are equal."""

    permutations: int = 64
    shingle_words: int = 5
    seed: int = 0
    fold_numbers: bool = False

    def shingles(self, sentences: Spans) -> Shingles:
        """Hash words and shingles once, for spans and documents."""
        words = hash_words(sentences, fold_numbers=self.fold_numbers)
        hashes = _shingle_hashes(words.hashes, self.shingle_words)
        return Shingles(hashes, words, sentences.offsets, self.shingle_words)

    def sign(self, sets: Sets) -> tuple[U32, Bools]:
        """The signature of each set, and which sets have shingles; the rows of the others are 0."""
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
    hashes = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):
        for k in range(length):
            hashes = hashes * _BASE + words[k : k + count]
    return _finish(hashes)


def _whole_hashes(words: U64, starts: I64, stops: I64) -> U32:
    """The hash of words ``starts[i]:stops[i]``, of ranges shorter than a shingle."""
    hashes = np.zeros(len(starts), np.uint64)
    with np.errstate(over="ignore"):
        for k in range(int((stops - starts).max(initial=0))):
            inside = starts + k < stops
            hashes[inside] = hashes[inside] * _BASE + words[starts[inside] + k]
    return _finish(hashes)


def _finish(hashes: U64) -> U32:
    return (seeds.mix(hashes) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


class _Chunks(NamedTuple):
    """Chunks of ranges, by block of hashes and, inside a block, by level."""

    rows: I64  # where the minima of each chunk go
    starts: I64
    stops: I64
    bounds: I64  # the chunks of run i, of one block and level, are bounds[i]:bounds[i + 1]
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
    block_size = max(_CHUNK, TABLE_CELLS // len(multipliers))
    owners, low, high = _split(starts, stops)
    chunks = _in_blocks(low, high, block_size)
    minima = np.empty((len(low), len(multipliers)), np.uint32)
    room = np.empty((2, block_size + _CHUNK, len(multipliers)), np.uint32)
    block, level, table = -1, 0, room[0]
    for run in range(len(chunks.blocks)):
        if chunks.blocks[run] != block:
            block, level = int(chunks.blocks[run]), 0
            here = hashes[block * block_size : (block + 1) * block_size + _CHUNK]
            table = np.multiply(here[:, None], multipliers, out=room[0, : len(here)])
        for now in range(level, int(chunks.levels[run])):
            shift = 1 << now
            table = np.minimum(table[:-shift], table[shift:], out=room[(now + 1) % 2, : len(table) - shift])
        level = int(chunks.levels[run])
        chosen = slice(chunks.bounds[run], chunks.bounds[run + 1])
        first = table.take(chunks.starts[chosen] - block * block_size, axis=0)
        last = table.take(chunks.stops[chosen] - (block * block_size + (1 << level)), axis=0)
        minima[chunks.rows[chosen]] = np.minimum(first, last, out=first)
    return _fold(minima, owners, len(starts))


def _split(starts: I64, stops: I64) -> tuple[I64, I64, I64]:
    """Split ranges into chunks: the range of each, where it starts and where it stops.

    The first chunk of every range comes first, then all others. The last chunk of a long range overlaps the one
    before it, which changes no minimum.
    """
    more = (stops - starts - 1) // _CHUNK
    owners = np.repeat(np.arange(len(starts)), more)
    number = np.arange(1, len(owners) + 1) - np.repeat(np.cumsum(more) - more, more)
    high = np.minimum(starts[owners] + (number + 1) * _CHUNK, stops[owners])
    owners = np.concatenate([np.arange(len(starts)), owners])
    low = np.concatenate([starts, high - _CHUNK])
    return owners, low, np.concatenate([np.minimum(stops, starts + _CHUNK), high])


def _fold(minima: U32, owners: I64, count: int) -> U32:
    """The minima of ranges from those of their chunks, which are in the order of `_split`."""
    reduced, others = minima[:count], owners[count:]
    if len(others):
        fresh = np.flatnonzero(np.concatenate([[True], others[1:] != others[:-1]]))
        rest = np.minimum.reduceat(minima[count:], fresh, axis=0) if len(fresh) < len(others) else minima[count:]
        rows = others[fresh]
        reduced[rows] = np.minimum(reduced[rows], rest)
    return reduced


def _in_blocks(low: I64, high: I64, block_size: int) -> _Chunks:
    """Sort chunks by the block that they start in and the windows that cover them."""
    levels = np.minimum(np.frexp(high - low)[1] - 1, LEVELS)
    runs = low // block_size * (LEVELS + 1) + levels
    order = np.argsort(runs, kind="stable")
    runs = runs[order]
    bounds = np.flatnonzero(np.concatenate([[True], runs[1:] != runs[:-1], [True]]))
    blocks, run_levels = np.divmod(runs[bounds[:-1]], LEVELS + 1)
    return _Chunks(order, low[order], high[order], bounds, blocks, run_levels)


def jaccard(left: Sets, right: Sets) -> F32:
    """The Jaccard similarity of set i of ``left`` and set i of ``right``; no set is empty.

    All pairs of a block are sorted together, as 64-bit words of (pair, hash, side), so that equal hashes of both sides
    become neighbors. The hashes have 31 random bits: of pairs of spans of 70 shingles, one in 400,000 counts one
    shingle too many as shared.

    >>> hashes = np.array([5, 7, 7, 9, 5, 1], np.uint32)
    >>> left, right = Sets(hashes, np.array([0]), np.array([4])), Sets(hashes, np.array([3]), np.array([6]))
    >>> jaccard(left, right).tolist()
    [0.5]
    """
    sizes = (left.stops - left.starts) + (right.stops - right.starts)
    blocks = np.cumsum(sizes) // _CELLS
    bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(sizes)]
    similarities = np.zeros(len(sizes), np.float32)
    for a, b in itertools.pairwise(bounds):
        words = np.concatenate([_words(sets.take(slice(a, b)), side) for side, sets in enumerate((left, right))])
        words.sort()
        similarities[a:b] = _shares(words, np.cumsum(sizes[a:b]))
    return similarities


def _words(sets: Sets, side: int) -> U64:
    """(pair, hash, side) of every shingle. Hashes are odd, so their lowest bit is free for the side."""
    hashes, starts, stops = sets
    sizes = stops - starts
    words = np.repeat(np.arange(len(sizes), dtype=np.uint64) << np.uint64(32) | np.uint64(side), sizes)
    words |= hashes[ranges(starts, sizes)] & np.uint32(0xFFFFFFFE)
    return words


def _shares(words: U64, ends: I64) -> F64:
    """Shared shingles by all shingles of each pair, from sorted words; ``ends``: after the last word of each pair.

    Of two successive words, a difference of 0 is the same shingle of the same side, 1 the same of the other side.
    """
    steps = np.full(len(words), 2, np.uint64)
    np.bitwise_xor(words[1:], words[:-1], out=steps[1:])
    shared, fresh = (_counts(flags, ends) for flags in (steps == 1, steps > 1))
    return shared / fresh


def _counts(flags: Bools, ends: I64) -> I64:
    """How many flags are set between each end and the one before it."""
    sums = np.cumsum(flags, dtype=np.int32)[ends - 1]
    return np.diff(sums, prepend=np.int32(0)).astype(np.int64)
