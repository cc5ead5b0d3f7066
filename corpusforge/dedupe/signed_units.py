"""The signed items of a unit, as views of mapped files.

Comes in: the folder that `near.SignWork` wrote to, a unit, rows of it. Goes out: what is known of these items: their
shingles, signature, document, key. The one decision: files are mapped and only the rows asked for are touched; so many
units stay mapped in a process. (URLs cannot be mapped: there the whole unit is read.)
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from corpusforge import errors, shards
from corpusforge.arrays import F32, I64, U32, U64, Bools
from corpusforge.dedupe.exact_spans import span_path
from corpusforge.dedupe.lsh import Bands, band_hashes, similarity
from corpusforge.dedupe.minhash import Sets, Signer, jaccard
from corpusforge.dedupe.spans import column_spans
from corpusforge.text import Spans

_MAPPED = 2
"""Units kept mapped by a process: two are compared at a time, and others are asked for one after the other. What was
touched of a mapped file counts as memory of the process for as long as it is mapped."""


class Part(NamedTuple):
    """A batch of a unit's SPANS and SIGNED rows."""

    first: int  # item row of the unit it begins with
    first_document: int
    offsets: I64  # its document i owns items offsets[i]:offsets[i + 1]
    hashes: npt.NDArray[Any]
    spans: pa.RecordBatch
    signed: pa.RecordBatch

    def bands(self, width: int) -> npt.NDArray[Any]:
        """Band hashes of all items."""
        return item_matrix(self.signed.column("bands"), width)

    def signatures(self, width: int) -> npt.NDArray[Any]:
        """Signatures of all items."""
        return item_matrix(self.signed.column("signatures"), width)

    def sets(self, rows: I64) -> Sets:
        """The shingles of items."""
        shingles, starts, stops = (column_spans(self.signed.column(c))[0] for c in ("shingles", "starts", "stops"))
        return Sets(shingles, starts[rows].astype(np.int64), stops[rows].astype(np.int64))

    def documents(self, rows: I64) -> I64:
        """The document of each item, counted in this part."""
        return np.searchsorted(self.offsets, rows, "right") - 1

    def order(self, rows: I64) -> tuple[I64, U64, I64]:
        """What orders items: order and key of the document, and the position in it."""
        owners = self.documents(rows)
        orders, keys = (self.spans.column(name).to_numpy()[owners] for name in ("order", "key"))
        return orders, keys, rows - self.offsets[owners]


class UnitItems(NamedTuple):
    """All items of a unit; ``rows`` below count from its first."""

    parts: list[Part]

    def signatures(self, rows: I64, width: int) -> npt.NDArray[Any]:
        """Their signatures, copied."""
        found = np.zeros((len(rows), width), np.uint32)
        for part, chosen in self.by_part(rows):
            found[chosen] = part.signatures(width)[rows[chosen] - part.first]
        return found

    def documents(self, rows: I64) -> I64:
        """The number of the document of each, from the first of the unit."""
        found = np.zeros(len(rows), np.int64)
        for part, chosen in self.by_part(rows):
            found[chosen] = part.documents(rows[chosen] - part.first) + part.first_document
        return found

    def order(self, rows: I64) -> tuple[I64, U64, I64]:
        """What orders items: order and key of the document, and the position in it."""
        found = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int64)
        for part, chosen in self.by_part(rows):
            for column, values in zip(found, part.order(rows[chosen] - part.first), strict=True):
                column[chosen] = values
        return found

    def by_part(self, rows: I64) -> list[tuple[Part, I64]]:
        """Each part that has any of them, and which."""
        owner = np.searchsorted(np.array([part.first for part in self.parts]), rows, "right") - 1
        return [(self.parts[k], np.flatnonzero(owner == k)) for k in np.unique(owner).tolist()]


def signed_name(folder: str, unit: int) -> str:
    """Where `near.SignWork` writes the signatures of a unit."""
    return shards.join(folder, f"signed/part-{unit:05d}-00000.arrow")


def open_items(folder: str, unit: int) -> UnitItems:
    """The items of a unit. Raises `errors.ManifestInvalid` where they cannot be read."""
    path = signed_name(folder, unit)
    if shards.is_remote(path):
        return _open(folder, unit)
    try:
        found = Path(path).stat()
    except OSError as error:
        raise errors.ManifestInvalid(path, f"unreadable shard ({error})", "run the stage again") from None
    return _mapped(folder, unit, (found.st_mtime_ns, found.st_ino, found.st_size))


def mapped_bytes(folder: str) -> int:
    """What units that are mapped together take at most."""
    sizes = sorted(sum(shard.bytes for shard in entry.tables.values()) for entry in shards.load_entries(folder))
    return sum(sizes[-_MAPPED:])


def forget() -> None:
    """Let go of the mapped files, so that removing them frees their space."""
    _mapped.cache_clear()


@functools.lru_cache(maxsize=_MAPPED)
def _mapped(folder: str, unit: int, written: tuple[int, int, int]) -> UnitItems:
    """``written``: tells a file from another that had its name before."""
    return _open(folder, unit)


def _open(folder: str, unit: int) -> UnitItems:
    parts, row, document = [], 0, 0
    both = zip(shards.read_shard(span_path(folder, unit)), shards.read_shard(signed_name(folder, unit)), strict=True)
    for rows, signed in both:
        hashes, offsets = column_spans(rows.column("hashes"))
        parts.append(Part(row, document, offsets, hashes, rows, signed))
        row, document = row + len(hashes), document + rows.num_rows
    return UnitItems(parts)


# MERGED DOCSTRING of corpusforge.work.alike:
# How alike two items are: spans or documents that `near.SignWork` signed.
#
# Comes in: rows of two units. Goes out: the Jaccard similarity of each pair. The one decision: it is the true
# one, of the
# two sets of shingles, which are stored; a signature of 64 values is off by 0.05 at a threshold of 0.8 and
# loses a sixth
# of all repeats (benchmarks/near_span_recall.py). Only of documents in an index nothing but signatures is known.

SIGNATURES_AT_ONCE = 1 << 16
"""16 MiB each side at 64 permutations."""


def alike(items: UnitItems, rows: I64, others: UnitItems, other_rows: I64, permutations: int) -> F32:
    """The similarity of ``rows`` of one unit and ``other_rows`` of another, pair by pair."""
    found = np.zeros(len(rows), np.float32)
    known = np.zeros(len(rows), np.bool_)
    for part, mine in items.by_part(rows):
        for other, both in others.by_part(other_rows[mine]):
            chosen = mine[both]
            left, right = part.sets(rows[chosen] - part.first), other.sets(other_rows[chosen] - other.first)
            has = (left.stops > left.starts) & (right.stops > right.starts)
            found[chosen[has]] = jaccard(left.take(has), right.take(has))
            known[chosen[has]] = True
    signed = np.flatnonzero(~known)
    for chosen in np.split(signed, np.arange(SIGNATURES_AT_ONCE, len(signed), SIGNATURES_AT_ONCE)):
        theirs = others.signatures(other_rows[chosen], permutations)
        found[chosen] = similarity(items.signatures(rows[chosen], permutations), theirs)
    return found


# MERGED DOCSTRING of corpusforge.dedupe.sign_spans:
# Sign every span of sentences of a batch, in memory that does not grow with the largest document.
#
# Comes in: byte spans of sentences (`text.Spans`). Goes out: of every span its fingerprint, band hashes and
# shingles. The
# one decision: sentences are signed in runs of so many, each with the few behind it that its last spans need;
# a batch of
# usual text is one run, a book without chapters or a list of a million short lines is many. What a span is signed from
# lies in it alone, so the cuts show in nothing but the order that shingles are stored in.

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


SIGNED = pa.schema(
    [
        # Of every sentence row of the document, in the rows of SPANS, one after the other; 0 where no item begins.
        pa.field("bands", pa.list_(pa.uint64()), nullable=False),
        # Of documents, for an index. Empty for spans.
        pa.field("signatures", pa.list_(pa.uint32()), nullable=False),
        # Hashes of shingles, in the order of the text. Empty where only the signature is known (of an index).
        pa.field("shingles", pa.list_(pa.uint32()), nullable=False),
        # Of every item: its shingles, counted through all documents of the batch.
        pa.field("starts", pa.list_(pa.uint32()), nullable=False),
        pa.field("stops", pa.list_(pa.uint32()), nullable=False),
    ]
)
"""One row a document, beside its row of SPANS: band hashes, signatures and shingles of its items. The shingles of a
batch belong together; which document's row they are in says nothing."""


def signature_hashes(signatures: U32, real: Bools) -> U64:
    """One hash a signature, never 0; 0 where ``real`` says that there is no item.

    Python loop with a reason: one C call an item (about 0.3 us), which takes a hundred times as long to sign.
    """
    width = signatures.shape[1] * 4
    view, digest = np.ascontiguousarray(signatures, "<u4").view(np.uint8).reshape(-1).data, xxhash.xxh3_64_intdigest
    found = np.zeros(len(signatures), np.uint64)
    rows = np.flatnonzero(real)
    found[rows] = np.fromiter((digest(view[r * width : (r + 1) * width]) for r in rows.tolist()), np.uint64, len(rows))
    return np.where(real, np.maximum(found, np.uint64(1)), np.uint64(0))


def signed_rows(offsets: I64, bands: U64, signatures: U32 | None = None, sets: Sets | None = None) -> pa.RecordBatch:
    """SIGNED rows; document i owns items ``offsets[i]:offsets[i + 1]`` of the matrices and sets."""
    nothing = np.zeros(0, np.uint32)
    if sets is None:
        sets = Sets(nothing, *np.zeros((2, len(bands)), np.int64))
    columns: list[tuple[npt.NDArray[Any], I64]] = [(bands.ravel(), offsets * bands.shape[1])]
    columns.append(
        (nothing, offsets * 0) if signatures is None else (signatures.ravel(), offsets * signatures.shape[1])
    )
    last = np.where(np.arange(len(offsets)) > 0, len(sets.hashes), 0)  # all in the first row
    columns += [(sets.hashes, last), (sets.starts.astype(np.uint32), offsets), (sets.stops.astype(np.uint32), offsets)]
    lists = [pa.ListArray.from_arrays(pa.array(cuts.astype(np.int32)), pa.array(values)) for values, cuts in columns]
    return pa.RecordBatch.from_arrays(lists, schema=SIGNED)


def item_matrix(column: pa.ListArray, width: int) -> npt.NDArray[Any]:
    """The rows of all items of a SIGNED column (``signatures`` or ``bands``), as a view."""
    return column_spans(column)[0].reshape(-1, width)
