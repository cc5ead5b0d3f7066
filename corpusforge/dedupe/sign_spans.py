"""Sign every span of sentences of a batch, in memory that does not grow with the largest document.

Comes in: byte spans of sentences (`text.Spans`). Goes out: of every span its fingerprint, band hashes and shingles. The
one decision: sentences are signed in runs of so many, each with the few behind it that its last spans need; a batch of
usual text is one run, a book without chapters or a list of a million short lines is many. What a span is signed from
lies in it alone, so the cuts show in nothing but the order that shingles are stored in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corpusforge.arrays import I64, U32, U64
from corpusforge.dedupe.lsh import Bands, band_hashes
from corpusforge.dedupe.minhash import Sets, Signer
from corpusforge.text import Spans

SENTENCES = 1 << 16
"""Sentences at once: 16 MiB of signatures at 64 permutations, and twice as much while they are made."""
BYTES = 8 << 20
"""Text at once, as `normalise` takes it: hashing words takes about ten times as much memory. One sentence may be
longer."""


class SignedSpans(NamedTuple):
    """Of the span that begins with each sentence; the rows of those that begin none are 0."""

    hashes: U64  # Sets.fingerprints
    bands: U64  # [n, bands]
    sets: Sets


def sign_spans(sentences: Spans, signer: Signer, bands: Bands, length: int) -> SignedSpans:
    """Sign the spans of ``length`` sentences.

    >>> data, cuts = np.frombuffer(b"So. It. Is.", np.uint8), np.array([0, 4, 8])
    >>> found = sign_spans(Spans(data, cuts, cuts + 3, np.array([0, 3]), cuts[:1]), Signer(8), Bands(2, 4), 2)
    >>> (found.hashes != 0).tolist(), found.bands.shape, found.sets.hashes.dtype.name
    ([True, True, False], (3, 2), 'uint32')
    """
    count, stored = len(sentences.starts), 0
    hashes, keys = np.zeros(count, np.uint64), np.zeros((count, bands.bands), np.uint64)
    starts, stops = np.zeros(count, np.int64), np.zeros(count, np.int64)
    shingles: list[U32] = []
    for first, last in _runs(sentences):
        sets = signer.shingles(_part(sentences, first, last + length - 1)).span_sets(length)
        own = sets.take(slice(0, last - first))
        signatures, real = signer.sign(own)
        hashes[first:last] = own.fingerprints()
        keys[first:last][real] = band_hashes(signatures[real], bands)
        starts[first:last], stops[first:last] = own.starts + stored * real, own.stops + stored * real
        stored += len(own.hashes)
        shingles.append(own.hashes)
    return SignedSpans(hashes, keys, Sets(np.concatenate([np.zeros(0, np.uint32), *shingles]), starts, stops))


def _runs(sentences: Spans) -> Iterator[tuple[int, int]]:
    """(first, row behind) of sentences that are signed together."""
    first, starts = 0, sentences.starts
    while first < len(starts):
        within = int(np.searchsorted(sentences.stops, starts[first] + BYTES, "right"))
        last = max(first + 1, min(first + SENTENCES, within))
        yield first, last
        first = last


def _part(sentences: Spans, first: int, last: int) -> Spans:
    """Sentences ``first`` to ``last``, of the documents that they are of."""
    last = min(last, len(sentences.starts))
    offsets: I64 = np.clip(sentences.offsets, first, last) - first
    return sentences._replace(starts=sentences.starts[first:last], stops=sentences.stops[first:last], offsets=offsets)
