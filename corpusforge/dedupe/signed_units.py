"""Sign the items of a unit, store them, and compare them: what `near_spans` and `documents` share.

An *item* is a span of sentences, or a whole document, which is then a span of one row that covers its text. A unit's
items are stored in two tables: ``spans/`` (places and fingerprints of items) and ``signed/`` (band hashes and
shingles). Files are mapped, and only the wanted rows are touched; on object stores the whole unit is read.

The similarity of two items is the exact Jaccard similarity of their sets of shingles: the estimate by signatures of 64
values is off by 0.05 at a threshold of 0.8 and misses a sixth of all duplicates (benchmarks/near_span_recall.py). Of
documents in an index only signatures are known.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import shards
from corpusforge.arrays import F32, I64, U32, U64
from corpusforge.dedupe import locate
from corpusforge.dedupe.job import slices
from corpusforge.dedupe.locate import file_version, span_path
from corpusforge.dedupe.lsh import Bands, band_hashes, bands_for, similarity
from corpusforge.dedupe.minhash import Sets, Signer, jaccard
from corpusforge.dedupe.normalize import whole_documents
from corpusforge.dedupe.spans import SPANS, column_spans, span_rows
from corpusforge.sections import Dedupe
from corpusforge.sentences.splitter import sentence_spans
from corpusforge.text import Spans
from corpusforge.units import Advance, ShardUnit, UnitResult, Written, write_unit

SIGNED = pa.schema(
    [
        # Of every sentence row of the document, in the rows of SPANS; 0 where no item begins.
        pa.field("bands", pa.list_(pa.uint64()), nullable=False),
        # Of documents, for an index. Empty for spans.
        pa.field("signatures", pa.list_(pa.uint32()), nullable=False),
        # Hashes of shingles, in the order of the text. Empty where only the signature is known (of an index).
        pa.field("shingles", pa.list_(pa.uint32()), nullable=False),
        # Of every item: the range of its shingles, counted through all documents of the batch.
        pa.field("starts", pa.list_(pa.uint32()), nullable=False),
        pa.field("stops", pa.list_(pa.uint32()), nullable=False),
    ]
)
"""One row per document, beside its row of SPANS: band hashes, signatures and shingles of its items. The shingles of a
batch are all in its first row."""

SENTENCES_AT_ONCE = 1 << 16
"""Sentences signed together: 16 MiB of signatures at 64 permutations, and twice as much while they are computed."""
BYTES_AT_ONCE = 8 << 20
"""Text signed together: hashing words takes about ten times as much memory. One sentence may be longer."""
SIGNATURES_AT_ONCE = 1 << 16
"""Signatures compared together: 16 MiB each side at 64 permutations."""

_MAPPED = 2
"""Units kept mapped by a process: two are compared at a time. What was touched of a mapped file counts as memory of the
process for as long as it is mapped."""


@dataclasses.dataclass(frozen=True)
class Signing:
    """How items are signed and ordered, and so which are similar. ``span_sentences`` 0: whole documents."""

    signer: Signer
    bands: Bands
    span_sentences: int
    keep: str = "hash"
    indexed: bool = False  # documents of an index take part, and come first

    @classmethod
    def of(cls, settings: Dedupe, span_sentences: int, *, indexed: bool = False) -> Self:
        """The signing that settings demand."""
        signer = Signer(settings.permutations, settings.shingle_words, fold_numbers=settings.fold_numbers)
        bands = bands_for(settings.threshold, settings.permutations)
        return cls(signer, bands, span_sentences, settings.keep, indexed)

    @property
    def ordered(self) -> bool:
        """Whether items have an order that has precedence over their keys."""
        # Kept documents are chosen when all are grouped; but those of an index must be the earlier ones of pairs.
        return self.indexed or (self.keep != "hash" and self.span_sentences > 0)

    @property
    def rows(self) -> int:
        """Sentence rows of an item; items closer than that in one document overlap."""
        return self.span_sentences or 1


# Sign.


@dataclasses.dataclass(frozen=True)
class SignWork:
    """Writes ``spans/`` and ``signed/`` of a document shard."""

    folder: str
    signing: Signing

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Sign one unit; a unit already signed is not read again."""
        tables = {"spans": (SPANS, "arrow"), "signed": (SIGNED, "arrow")}
        return write_unit(self.folder, unit, tables, lambda _: itertools.starmap(_signed, self.rows(unit)), advance)

    def rows(self, unit: ShardUnit) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """SPANS and SIGNED rows of a unit, batch by batch."""
        return (sign_documents(documents, self.signing) for documents in slices(unit.path))


def _signed(spans: pa.RecordBatch, signed: pa.RecordBatch) -> Written:
    items = int(np.count_nonzero(column_spans(spans.column("hashes"))[0]))
    counts = {"documents_in": spans.num_rows, "items": items}
    return Written(spans.num_rows, {"spans": spans, "signed": signed}, counts)


def sign_documents(documents: pa.RecordBatch, signing: Signing) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """SPANS and SIGNED rows of a DOCUMENTS batch."""
    if signing.span_sentences:
        sentences = sentence_spans(documents.column("text"))
        signed = sign_spans(sentences, signing.signer, signing.bands, signing.span_sentences)
        inside = np.repeat(sentences.bases[: documents.num_rows], np.diff(sentences.offsets))
        starts, stops = sentences.starts - inside, sentences.stops - inside
        rows = span_rows(documents, sentences.offsets, starts, stops, signed.hashes, signing.keep)
        return rows, signed_rows(sentences.offsets, signed.bands, None, signed.sets)
    whole = whole_documents(documents.column("text"))
    sets, signatures, bands = sign_whole(whole, signing.signer, signing.bands)
    starts, stops = np.zeros(documents.num_rows, np.int64), whole.stops - whole.starts
    rows = span_rows(documents, whole.offsets, starts, stops, sets.fingerprints(), signing.keep)
    return rows, signed_rows(whole.offsets, bands, signatures, sets)


def sign_whole(whole: Spans, signer: Signer, bands: Bands) -> tuple[Sets, U32, U64]:
    """The shingles, signature and band hashes of each document; of one without words the last are 0."""
    sets = signer.shingles(whole).document_sets()
    signatures, real = signer.sign(sets)
    return sets, signatures, np.where(real[:, None], band_hashes(signatures, bands), np.uint64(0))


class SignedSpans(NamedTuple):
    """Of the span that begins with each sentence; rows of sentences with which no span begins are 0."""

    hashes: U64  # Sets.fingerprints
    bands: U64  # [n, bands]
    sets: Sets


def sign_spans(sentences: Spans, signer: Signer, bands: Bands, length: int) -> SignedSpans:
    """Sign the spans of ``length`` sentences, in memory that does not grow with the largest document.

    Sentences are signed in runs, each with the few after it that its last spans need: a batch of usual text is one run,
    a list of a million short lines is many. The runs affect only the order in which shingles are stored.

    >>> data, cuts = np.frombuffer(b"So. It. Is.", np.uint8), np.array([0, 4, 8])
    >>> signed = sign_spans(Spans(data, cuts, cuts + 3, np.array([0, 3]), cuts[:1]), Signer(8), Bands(2, 4), 2)
    >>> (signed.hashes != 0).tolist(), signed.bands.shape, signed.sets.hashes.dtype.name
    ([True, True, False], (3, 2), 'uint32')
    """
    count, stored = len(sentences.starts), 0
    hashes, keys = np.zeros(count, np.uint64), np.zeros((count, bands.bands), np.uint64)
    starts, stops = np.zeros(count, np.int64), np.zeros(count, np.int64)
    shingles: list[U32] = []
    for first, last in _sentence_runs(sentences):
        sets = signer.shingles(_part(sentences, first, last + length - 1)).span_sets(length)
        own = sets.take(slice(0, last - first))
        signatures, real = signer.sign(own)
        hashes[first:last] = own.fingerprints()
        keys[first:last][real] = band_hashes(signatures[real], bands)
        starts[first:last], stops[first:last] = own.starts + stored * real, own.stops + stored * real
        stored += len(own.hashes)
        shingles.append(own.hashes)
    return SignedSpans(hashes, keys, Sets(np.concatenate([np.zeros(0, np.uint32), *shingles]), starts, stops))


def _sentence_runs(sentences: Spans) -> Iterator[tuple[int, int]]:
    """(first, row after the last) of sentences that are signed together."""
    first, starts = 0, sentences.starts
    while first < len(starts):
        within = int(np.searchsorted(sentences.stops, starts[first] + BYTES_AT_ONCE, "right"))
        last = max(first + 1, min(first + SENTENCES_AT_ONCE, within))
        yield first, last
        first = last


def _part(sentences: Spans, first: int, last: int) -> Spans:
    """Sentences ``first`` to ``last``, with the documents that they belong to."""
    last = min(last, len(sentences.starts))
    offsets: I64 = np.clip(sentences.offsets, first, last) - first
    return sentences._replace(starts=sentences.starts[first:last], stops=sentences.stops[first:last], offsets=offsets)


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


# Read back.


class Part(NamedTuple):
    """A batch of a unit's SPANS and SIGNED rows."""

    first: int  # item row of the unit that it begins with
    first_document: int
    offsets: I64  # its document i owns items offsets[i]:offsets[i + 1]
    hashes: npt.NDArray[Any]
    spans: pa.RecordBatch
    signed: pa.RecordBatch

    def matrix(self, column: str, width: int) -> npt.NDArray[Any]:
        """The ``bands`` or ``signatures`` of all items, one row per item, as a view."""
        return column_spans(self.signed.column(column))[0].reshape(-1, width)

    def sets(self, rows: I64) -> Sets:
        """The shingles of items."""
        shingles, starts, stops = (column_spans(self.signed.column(c))[0] for c in ("shingles", "starts", "stops"))
        return Sets(shingles, starts[rows].astype(np.int64), stops[rows].astype(np.int64))

    def documents(self, rows: I64) -> I64:
        """The document of each item, counted in this part."""
        return np.searchsorted(self.offsets, rows, "right") - 1

    def order(self, rows: I64) -> tuple[I64, U64, I64]:
        """The order of items: order and key of the document, and the position in it."""
        owners = self.documents(rows)
        orders, keys = (self.spans.column(name).to_numpy()[owners] for name in ("order", "key"))
        return orders, keys, rows - self.offsets[owners]


class UnitItems(NamedTuple):
    """All items of a unit; ``rows`` below count from its first."""

    parts: list[Part]

    def signatures(self, rows: I64, width: int) -> npt.NDArray[Any]:
        """The signatures of these rows, copied."""
        signatures = np.zeros((len(rows), width), np.uint32)
        for part, chosen in self.by_part(rows):
            signatures[chosen] = part.matrix("signatures", width)[rows[chosen] - part.first]
        return signatures

    def documents(self, rows: I64) -> I64:
        """The document of each row, counted in the unit."""
        documents = np.zeros(len(rows), np.int64)
        for part, chosen in self.by_part(rows):
            documents[chosen] = part.documents(rows[chosen] - part.first) + part.first_document
        return documents

    def order(self, rows: I64) -> tuple[I64, U64, I64]:
        """The order of items: order and key of the document, and the position in it."""
        columns = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int64)
        for part, chosen in self.by_part(rows):
            for column, values in zip(columns, part.order(rows[chosen] - part.first), strict=True):
                column[chosen] = values
        return columns

    def by_part(self, rows: I64) -> list[tuple[Part, I64]]:
        """The parts that have any of these rows, and the indices of these rows."""
        owner = np.searchsorted(np.array([part.first for part in self.parts]), rows, "right") - 1
        return [(self.parts[k], np.flatnonzero(owner == k)) for k in np.unique(owner).tolist()]


def open_items(folder: str, unit: int) -> UnitItems:
    """The items of a unit. Raises `errors.ManifestInvalid` if they cannot be read."""
    path = _signed_path(folder, unit)
    return _open(folder, unit) if shards.is_remote(path) else _mapped(folder, unit, file_version(path))


def mapped_bytes(folder: str) -> int:
    """The most that units that are mapped together take."""
    sizes = sorted(sum(shard.bytes for shard in entry.tables.values()) for entry in shards.load_entries(folder))
    return sum(sizes[-_MAPPED:])


def forget() -> None:
    """Close the mapped files, so that removing them frees their space."""
    _mapped.cache_clear()


def remove_scratch(folder: str) -> None:
    """Remove the files of a method that is complete."""
    locate.forget()
    forget()
    shards.remove(shards.join(folder, "entries"))  # first: what is half removed must not look complete
    shards.remove(folder)


@functools.lru_cache(maxsize=_MAPPED)
def _mapped(folder: str, unit: int, version: tuple[int, int, int]) -> UnitItems:
    return _open(folder, unit)


def _open(folder: str, unit: int) -> UnitItems:
    parts, row, document = [], 0, 0
    both = zip(shards.read_shard(span_path(folder, unit)), shards.read_shard(_signed_path(folder, unit)), strict=True)
    for rows, signed in both:
        hashes, offsets = column_spans(rows.column("hashes"))
        parts.append(Part(row, document, offsets, hashes, rows, signed))
        row, document = row + len(hashes), document + rows.num_rows
    return UnitItems(parts)


def _signed_path(folder: str, unit: int) -> str:
    return shards.join(folder, f"signed/part-{unit:05d}-00000.arrow")


# Compare.


def similarities(items: UnitItems, rows: I64, others: UnitItems, other_rows: I64, permutations: int) -> F32:
    """The similarity of ``rows`` of one unit and ``other_rows`` of another, pair by pair."""
    values = np.zeros(len(rows), np.float32)
    known = np.zeros(len(rows), np.bool_)
    for part, left_rows in items.by_part(rows):
        for other, right_rows in others.by_part(other_rows[left_rows]):
            chosen = left_rows[right_rows]
            left, right = part.sets(rows[chosen] - part.first), other.sets(other_rows[chosen] - other.first)
            has = (left.stops > left.starts) & (right.stops > right.starts)
            values[chosen[has]] = jaccard(left.take(has), right.take(has))
            known[chosen[has]] = True
    estimated = np.flatnonzero(~known)
    for chosen in np.split(estimated, np.arange(SIGNATURES_AT_ONCE, len(estimated), SIGNATURES_AT_ONCE)):
        signatures = items.signatures(rows[chosen], permutations)
        values[chosen] = similarity(signatures, others.signatures(other_rows[chosen], permutations))
    return values
