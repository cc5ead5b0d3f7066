"""Documents that resemble each other: an index read in, groups settled, what is left of a document shard.

Comes in: an index of signatures, COMPARED rows of all units, a document shard. Goes out: ``spans/`` and ``signed/`` of
the index, ``groups/`` (for each unit which of its documents are in a group, and who stays), then ``documents/``,
``repeats/``, ``clusters/`` and ``signatures/``.

    IndexWork(unit)      shard of an index's signatures -> spans/, signed/, as `near.SignWork` writes them
    settle_groups(...)   COMPARED rows of all units -> groups/
    KeepWork(unit)       document shard + groups/ -> documents/, repeats/, clusters/, signatures/

Decision: units of an index follow those of the corpus, and its documents come first in the order of survivors. So they
are compared as all others are, always stay, and take the documents that resemble them with them. Pairs of two documents
of the index say nothing new and are passed over.

Groups are settled in one process: a pair takes 16 bytes, and about three times as much while components are found, so
that 10^8 pairs need 5 GB. Pairs of equal signatures are as many as the copies; others are at most
``2 * lsh.NEIGHBOURS`` a document and band.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import arrays, errors, schemas, shards
from corpusforge.arrays import F32, I64, U64, Bools
from corpusforge.dedupe import signed_units, spans
from corpusforge.dedupe.chain import as_schema, documents_schema, share, slices, text_size
from corpusforge.dedupe.clusters import Grouped, group, places_of
from corpusforge.dedupe.exact_spans import span_path
from corpusforge.dedupe.index import check_signer, signature_matrix, signature_rows, signatures_schema
from corpusforge.dedupe.keep import Members, keep_documents, survivor_order
from corpusforge.dedupe.locate import locate_copies
from corpusforge.dedupe.lsh import Bands, band_hashes
from corpusforge.dedupe.minhash import Sets, Signer, jaccard
from corpusforge.dedupe.normalize import whole_documents
from corpusforge.dedupe.pairs import Signing, read_compared
from corpusforge.dedupe.signed_units import alike, open_items
from corpusforge.dedupe.spans import column_spans
from corpusforge.seeds import document_keys
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult

GROUPS = pa.schema(
    [
        pa.field("place", pa.uint64(), nullable=False),
        pa.field("survivor", pa.uint64(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
    ]
)
"""`dedupe.groups.Grouped` of one unit."""

_FIRST = np.iinfo(np.int64).min
"""Order of the documents of an index."""

INDEX_DIGITS = 8
"""Hex digits of an index's content digest that name it, as in ``index:1f2e3d4c:9f..``."""

_ROWS = 1 << 16
"""Signatures of an index read at once: 16 MB at 64 permutations."""


@dataclasses.dataclass(frozen=True)
class IndexUnit(ShardUnit):
    """A shard of an index. ``name``: the first `INDEX_DIGITS` of the content digest of its signatures."""

    name: str = ""


def signature_shards(folder: str) -> list[shards.Shard]:
    """The shards of SIGNATURES of a finished stage.

    Raises `errors.ManifestInvalid` where the folder is none, `errors.StageMismatch` where it has none.
    """
    found = shards.Manifest.load(folder).shards.get("signatures")
    if found is None:
        mend = "name an output of dedupe --method documents --export-signatures"
        raise errors.StageMismatch(folder, "has no signatures/", mend)
    return found


@dataclasses.dataclass(frozen=True)
class IndexWork:
    """Writes ``spans/`` and ``signed/`` of a shard of SIGNATURES. Raises `errors.StageMismatch` for another signer."""

    folder: str
    signing: Signing

    def __call__(self, unit: IndexUnit, advance: Advance) -> UnitResult:
        """Take over one shard."""
        tables = {"spans": (spans.SPANS, "arrow"), "signed": (signed_units.SIGNED, "arrow")}
        with UnitOutput(self.folder, unit.number, tables, shard_bytes=1 << 62) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            position = 0
            for stored in shards.read_shard(unit.path):
                check_signer(stored.schema, self.signing.signer, unit.path)
                for rows in (stored.slice(first, _ROWS) for first in range(0, stored.num_rows, _ROWS)):
                    position += rows.num_rows
                    counts = {"documents_in": rows.num_rows, "items": rows.num_rows}
                    written = dict(zip(("spans", "signed"), self._rows(rows, unit.name), strict=True))
                    output.write(written, position=position, size=0, tallies={}, statistics=counts)
            advance(unit.bytes)
            return output.finish()

    def _rows(self, rows: pa.RecordBatch, index: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """An id alone names one document of each corpus: those of an index bear its name before theirs."""
        signatures, count = signature_matrix(rows), rows.num_rows
        offsets = np.arange(count + 1)
        hashes = signed_units.signature_hashes(signatures, np.ones(count, np.bool_))
        nothing = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(np.zeros(count, np.uint32)))
        names = pc.binary_join_element_wise("index", index, rows.column("document"), ":")
        columns = [
            names,
            pa.array(document_keys(names.to_pylist())),
            nothing,
            nothing,
            pa.ListArray.from_arrays(nothing.offsets, pa.array(hashes)),
            pa.nulls(count, pa.list_(pa.int64())),
            pa.array(np.full(count, _FIRST)),
        ]
        signed = signed_units.signed_rows(offsets, band_hashes(signatures, self.signing.bands), signatures)
        return pa.RecordBatch.from_arrays(columns, schema=spans.SPANS), signed


def settle_groups(folder: str, units: Sequence[int], first_of_index: int) -> None:
    """Write ``groups/`` of every unit. ``units``: those of the corpus and of the index; all pairs are compared."""
    later, earlier = (
        np.concatenate(column) for column in zip(*(read_compared(folder, u)[:2] for u in units), strict=True)
    )
    known = np.minimum(spans.unit_of(later), spans.unit_of(earlier)) >= first_of_index
    later, earlier = later[~known], earlier[~known]
    places = places_of(earlier, later)
    grouped = group(earlier, later, places, _order(folder, places))
    bounds = np.searchsorted(spans.unit_of(places), [*units, max(units, default=0) + 1])
    for unit, a, b in zip(units, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        writer = shards.ShardWriter(folder, _groups_name(unit), GROUPS, "arrow")
        writer.write(pa.record_batch([pa.array(column[a:b]) for column in grouped], schema=GROUPS))
        writer.finish()


def _order(folder: str, places: U64) -> tuple[I64, U64, I64]:
    units, first = np.unique(spans.unit_of(places), return_index=True)
    found = [(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64))]
    for unit, rows in zip(units.tolist(), np.split(spans.row_of(places), first[1:]), strict=False):
        found.append(open_items(folder, unit).order(rows))
    orders, keys, rows = (np.concatenate(column) for column in zip(*found, strict=True))
    return orders, keys, rows


def read_groups(folder: str, unit: int) -> Grouped:
    """The documents of a unit that are in groups."""
    table = pa.Table.from_batches(shards.read_shard(shards.join(folder, _groups_name(unit))), GROUPS)
    return Grouped._make(column.to_numpy() for column in table.columns)


def _groups_name(unit: int) -> str:
    return f"groups/part-{unit:05d}-00000.arrow"


@dataclasses.dataclass(frozen=True)
class KeepWork:
    """Writes what stays of a document shard. ``folder``: where ``groups/`` lies; ``export``: write ``signatures/``."""

    output: str
    folder: str
    signing: Signing
    first_of_index: int
    shard_bytes: int = 64 << 20
    audit_only: bool = False
    export: bool = False

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Go through one unit, on from its last finished shard."""
        tables = {"repeats": (schemas.REPEATS, "parquet"), "clusters": (schemas.CLUSTERS, "parquet")}
        if not self.audit_only:
            tables["documents"] = (documents_schema(unit), "parquet")
            if self.export:
                tables["signatures"] = (signatures_schema(self.signing.signer), "arrow")
        with UnitOutput(self.output, unit.number, tables, self.shard_bytes) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            advance(share(unit, output.position))
            position = output.position
            members = self._members(unit.number, position)
            for documents in slices(unit.path, skip=position):
                kept = keep_documents(documents, _between(members, position, position + documents.num_rows))
                written = {"repeats": kept.repeats, "clusters": kept.clusters}
                if not self.audit_only:
                    written["documents"] = as_schema(kept.documents, documents_schema(unit))
                if "signatures" in tables:
                    written["signatures"] = self._signatures(unit.number, documents, position, kept.is_kept)
                position += documents.num_rows
                output.write(
                    written,
                    position=position,
                    size=text_size(documents),
                    tallies=kept.tallies,
                    statistics=kept.statistics,
                )
                advance(share(unit, documents.num_rows))
            return output.finish()

    def _members(self, unit: int, first: int) -> Members:
        """The documents of a unit from row ``first`` on that are in a group."""
        groups = read_groups(self.folder, unit)
        behind = int(np.searchsorted(groups.places, spans.place(unit, np.array([first]))[0]))
        found = Grouped._make(column[behind:] for column in groups)
        rows = spans.row_of(found.places)
        return Members(
            rows=rows,
            survivors=locate_copies(found.survivors, functools.partial(span_path, self.folder))[0],
            stays=found.survivors == found.places,
            in_index=spans.unit_of(found.survivors) >= self.first_of_index,
            sizes=found.sizes,
            similarities=self._similarities(unit, rows, found.survivors),
        )

    def _similarities(self, unit: int, rows: I64, survivors: U64) -> arrays.F32:
        width = self.signing.signer.permutations
        items, others = open_items(self.folder, unit), spans.unit_of(survivors)
        found = np.ones(len(rows), np.float32)
        for other in np.unique(others).tolist():
            chosen = np.flatnonzero(others == other)
            found[chosen] = alike(
                items, rows[chosen], open_items(self.folder, other), spans.row_of(survivors[chosen]), width
            )
        return found

    def _signatures(self, unit: int, documents: pa.RecordBatch, first: int, is_kept: Bools) -> pa.RecordBatch:
        """SIGNATURES of the documents that stay and have words."""
        rows = first + np.arange(documents.num_rows)
        found = open_items(self.folder, unit).signatures(rows, self.signing.signer.permutations)
        real = is_kept & (found[:, 0] != 0)  # the values of a signature are odd
        return signature_rows(documents.column("id"), found, real, self.signing.signer)


def _between(members: Members, first: int, last: int) -> Members:
    """Those of a batch, with rows counted from its first."""
    a, b = np.searchsorted(members.rows, [first, last]).tolist()
    found = Members._make(column[a:b] for column in members)
    return found._replace(rows=found.rows - first)


# MERGED DOCSTRING of corpusforge.dedupe.cards:
# What others must know of a document to be compared with it: its card.
#
# Comes in: DOCUMENTS batches. Goes out: CARDS batches and band hashes; the similarity of rows of two CARDS batches. The
# one decision: a card holds the shingles and not the text, about as many bytes, so that wherever cards meet
# documents are
# compared by their true similarity.

CARDS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("order", pa.int64(), nullable=False),  # survivors.survivor_order
        pa.field("key", pa.uint64(), nullable=False),  # seeds.document_keys
        pa.field("shingles", pa.list_(pa.uint32()), nullable=False),  # hashes; none: the document has no words
    ]
)
"""One row a document."""


class Signed(NamedTuple):
    """Cards of a batch, and what finds the pairs worth comparing."""

    cards: pa.RecordBatch
    hashes: U64  # of the shingles (`Sets.fingerprints`); 0: the document has no words
    bands: U64  # [n, bands]


def sign_cards(documents: pa.RecordBatch, signer: Signer, bands: Bands, survivor: str) -> Signed:
    """Cards, signature hashes and band hashes of a batch, in its order."""
    sets = signer.shingles(whole_documents(documents.column("text"))).document_sets()
    signatures, _ = signer.sign(sets)
    sizes = sets.stops - sets.starts
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(cuts[-1]) + np.repeat(sets.starts - cuts[:-1], sizes)
    columns = [
        documents.column("id"),
        pa.array(survivor_order(documents, survivor)),
        pa.array(document_keys(documents.column("id").to_pylist())),
        pa.ListArray.from_arrays(pa.array(cuts.astype(np.int32)), pa.array(sets.hashes[rows])),
    ]
    cards = pa.RecordBatch.from_arrays(columns, schema=CARDS)
    return Signed(cards, sets.fingerprints(), band_hashes(signatures, bands))


def similarities(left: pa.RecordBatch, rows: I64, right: pa.RecordBatch, other_rows: I64) -> F32:
    """The Jaccard similarity of these rows of two CARDS batches, pair by pair; all have words."""
    sides = []
    for cards, chosen in ((left, rows), (right, other_rows)):
        hashes, offsets = column_spans(cards.column("shingles"))
        sides.append(Sets(hashes, offsets[chosen], offsets[chosen + 1]))
    return jaccard(*sides)
