"""Near repeats, unit by unit: sign a document shard, block its band hashes, compare what shares a band.

Comes in: document shards (a unit is one shard). Goes out, in a folder of their own: ``spans/`` and ``signed/`` (where
items stand, their bands and shingles), ``pairs-N/`` (what is worth comparing, from all units together), ``compared/``
(the pairs that are similar enough). An *item* is a span of sentences, or a whole document, which is then a span of one
row that covers its text.

    SignWork(unit)                 document shard -> spans/, signed/
    spans.find_losers              items of equal shingles, as exact repeats (`work.dedupe.blocks`, cuts-N/)
    bands.band_blocks(banded, ..)  all others -> (partition, block of band hashes) for the shuffle
    near.candidate_pairs(blocks)   -> (unit, pairs) -> write_pairs
    CompareWork(unit)              shingles of both sides of every pair -> compared/

Decision: shingles are stored, and looked up in mapped files by the unit that has the later item; they never travel.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from corpusforge import arrays, shards
from corpusforge.arrays import I64, U64, Bools
from corpusforge.dedupe import near, spans
from corpusforge.dedupe.lsh import Bands, band_hashes
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.near import SIGNED, Pairs
from corpusforge.dedupe.packed import pack
from corpusforge.dedupe.sign_spans import sign_spans
from corpusforge.dedupe.spans import SPANS
from corpusforge.dedupe.words import whole_documents
from corpusforge.text import sentence_spans
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult
from corpusforge.work.alike import alike
from corpusforge.work.bands import Banded
from corpusforge.work.dedupe import cuts_folder, read_cuts
from corpusforge.work.items import UnitItems, open_items
from corpusforge.work.slices import share, slices

COMPARED = pa.schema(
    [
        pa.field("later", pa.uint64(), nullable=False),  # places of items
        pa.field("earlier", pa.uint64(), nullable=False),
        pa.field("similarity", pa.float32(), nullable=False),  # `alike.alike`
    ]
)
"""Pairs of items at least as similar as was asked for, ascending by the later one."""

PAIRS = pa.schema([pa.field("later", pa.uint64(), nullable=False), pa.field("earlier", pa.uint64(), nullable=False)])

COMPARED_AT_ONCE = 1 << 16
"""Pairs compared in one call."""


@dataclasses.dataclass(frozen=True)
class Signing:
    """What decides a signature and its bands, and so who is found alike. ``span_sentences`` 0: whole documents."""

    signer: Signer
    bands: Bands
    span_sentences: int
    survivor: str = "hash"
    indexed: bool = False  # documents of an index take part, and come first

    @property
    def ordered(self) -> bool:
        """Whether items have an order before their keys."""
        # Documents: survivors are settled when all are grouped; but those of an index are the earlier ones of pairs.
        return self.indexed or (self.survivor != "hash" and self.span_sentences > 0)

    @property
    def rows(self) -> int:
        """Sentence rows of an item; items closer than that in one document overlap."""
        return self.span_sentences or 1


@dataclasses.dataclass(frozen=True)
class SignWork:
    """Writes ``spans/`` and ``signed/`` of a document shard."""

    folder: str
    signing: Signing

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Sign one unit; a unit already signed is not read again."""
        tables = {"spans": (SPANS, "arrow"), "signed": (SIGNED, "arrow")}
        with UnitOutput(self.folder, unit.number, tables, shard_bytes=1 << 62) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            position = 0
            for documents in slices(unit.path):
                rows, signed = sign_documents(documents, self.signing)
                position += documents.num_rows
                items = int(np.count_nonzero(spans.column_spans(rows.column("hashes"))[0]))
                counts = {"documents_in": documents.num_rows, "items": items}
                written = {"spans": rows, "signed": signed}
                output.write(written, position=position, size=0, tallies={}, statistics=counts)
                advance(share(unit, documents.num_rows))
            return output.finish()


def sign_documents(documents: pa.RecordBatch, signing: Signing) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """SPANS and SIGNED rows of a DOCUMENTS batch."""
    if signing.span_sentences:
        found = sentence_spans(documents.column("text"))
        signed = sign_spans(found, signing.signer, signing.bands, signing.span_sentences)
        inside = np.repeat(found.bases[: documents.num_rows], np.diff(found.offsets))
        starts, stops = found.starts - inside, found.stops - inside
        rows = spans.span_rows(documents, found.offsets, starts, stops, signed.hashes, signing.survivor)
        return rows, near.signed_rows(found.offsets, signed.bands, None, signed.sets)
    found = whole_documents(documents.column("text"))
    sets = signing.signer.shingles(found).document_sets()
    signatures, real = signing.signer.sign(sets)
    starts, stops = np.zeros(documents.num_rows, np.int64), found.stops - found.starts
    rows = spans.span_rows(documents, found.offsets, starts, stops, sets.fingerprints(), signing.survivor)
    bands = np.where(real[:, None], band_hashes(signatures, signing.bands), np.uint64(0))
    return rows, near.signed_rows(found.offsets, bands, signatures, sets)


def lost(folder: str, unit: int, rounds: int, signing: Signing) -> tuple[U64, U64]:
    """Items of a unit whose shingles an earlier one has that they do not overlap, and the first such; ascending.

    Where an item overlaps the first one of its shingles it overlaps all between the two as well, and stays.
    """
    losers, survivors = read_cuts(cuts_folder(folder, rounds), unit, rounds)
    apart = ~overlapping(open_items(folder, unit), unit, losers, survivors, signing.rows)
    return losers[apart], survivors[apart]


def overlapping(items: UnitItems, unit: int, later: U64, earlier: U64, rows: int) -> Bools:
    """Which pairs share a sentence. ``items``, ``unit``: of the later ones."""
    own, other = spans.row_of(later), spans.row_of(earlier)
    close = (spans.unit_of(earlier) == unit) & (np.abs(own - other) < rows)
    found = np.flatnonzero(close)
    close[found] = items.documents(own[found]) == items.documents(other[found])
    return np.asarray(close)


def banded(folder: str, unit: int, rounds: int, signing: Signing) -> Banded:
    """The band hashes of a unit, without repeats of the same shingles, found in ``rounds`` rounds (`lost`)."""
    gone = spans.row_of(lost(folder, unit, rounds, signing)[0])
    return Banded(folder, unit, signing.bands.bands, gone, signing.ordered)


def pairs_folder(folder: str, rounds: int) -> str:
    """Where the pairs found in so many rounds go."""
    return shards.join(folder, f"pairs-{rounds}")


def write_pairs(folder: str, unit: int, round: int, packed: Iterable[bytes]) -> None:
    """Write what `near.candidate_pairs` found for one unit in one round. ``folder``: `pairs_folder`."""
    writer = shards.ShardWriter(folder, _pairs_name(unit, round), PAIRS, "arrow")
    writer.write(pa.record_batch([pa.array(column) for column in near.unpack_pairs(packed)], schema=PAIRS))
    writer.finish()


def read_pairs(folder: str, unit: int, rounds: int) -> tuple[U64, U64]:
    """All pairs of a unit's items and earlier ones, each once, ascending."""
    paths = [shards.join(folder, _pairs_name(unit, round)) for round in range(rounds)]
    batches = [batch for path in paths if shards.exists(path) for batch in shards.read_shard(path)]
    return near.unpack_pairs(pack(*(column.to_numpy() for column in batch.columns)) for batch in batches)


def _pairs_name(unit: int, round: int) -> str:
    return f"part-{unit:05d}-{round:05d}.arrow"


@dataclasses.dataclass(frozen=True)
class CompareWork:
    """Writes ``compared/`` of a unit: each repeat of the same shingles, each pair at least ``threshold`` alike.

    ``rounds``: of the comparison of signatures and of that of bands. ``best``: of every item only the pair of the most
    similar earlier one.
    """

    folder: str
    signing: Signing
    threshold: float
    rounds: tuple[int, int]
    best: bool

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Compare the pairs of one unit."""
        with UnitOutput(
            compared_folder(self.folder), unit.number, {"compared": (COMPARED, "arrow")}, 1 << 62
        ) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            losers, survivors = lost(self.folder, unit.number, self.rounds[0], self.signing)
            later, earlier = read_pairs(pairs_folder(self.folder, self.rounds[1]), unit.number, self.rounds[1])
            pairs = self._alike(unit.number, later, earlier)
            columns = [
                np.concatenate([losers, pairs.later]),
                np.concatenate([survivors, pairs.earlier]),
                np.concatenate([np.ones(len(losers), np.float32), pairs.similarities]),
            ]
            order = np.lexsort((columns[1], columns[0]))
            rows = pa.record_batch([pa.array(column[order]) for column in columns], schema=COMPARED)
            counts = {"same_signature": len(losers), "pairs_compared": len(later), "pairs_alike": len(pairs.later)}
            output.write({"compared": rows}, position=unit.rows, size=0, tallies={}, statistics=counts)
            advance(unit.bytes)
            return output.finish()

    def _alike(self, unit: int, later: U64, earlier: U64) -> Pairs:
        items, width = open_items(self.folder, unit), self.signing.signer.permutations
        apart = ~overlapping(items, unit, later, earlier, self.signing.rows)
        later, earlier = later[apart], earlier[apart]
        found = [_no_pairs()]
        for chosen in _runs(earlier):
            others = open_items(self.folder, int(spans.unit_of(earlier[chosen[:1]])[0]))
            own, other = spans.row_of(later[chosen]), spans.row_of(earlier[chosen])
            similarities = alike(items, own, others, other, width)
            kept = np.flatnonzero(similarities >= np.float32(self.threshold))
            at = chosen[kept]
            found.append(Pairs(later[at], earlier[at], *others.order(other[kept]), similarities[kept]))
        pairs = Pairs._make(np.concatenate(column) for column in zip(*found, strict=True))
        return near.best_pairs(pairs) if self.best else pairs


def compared_folder(folder: str) -> str:
    """Where `CompareWork` writes: apart from the entries of `SignWork`, which has the same units."""
    return shards.join(folder, "pairs-compared")


def read_compared(folder: str, unit: int) -> tuple[U64, U64, arrays.F32]:
    """The columns of a unit's COMPARED rows."""
    path = shards.join(compared_folder(folder), f"compared/part-{unit:05d}-00000.arrow")
    table = pa.Table.from_batches(shards.read_shard(path), COMPARED)
    later, earlier, alike = (column.to_numpy() for column in table.columns)
    return later, earlier, alike


def _runs(earlier: U64) -> list[I64]:
    """Rows by the unit of the place, in runs of one unit and of at most `COMPARED_AT_ONCE`."""
    order = np.argsort(spans.unit_of(earlier), kind="stable")
    bounds = np.r_[0, np.flatnonzero(np.diff(spans.unit_of(earlier[order]))) + 1, len(order)]
    return [
        order[first : min(first + COMPARED_AT_ONCE, b)]
        for a, b in itertools.pairwise(bounds.tolist())
        for first in range(a, b, COMPARED_AT_ONCE)
    ]


def _no_pairs() -> Pairs:
    nothing = np.zeros(0, np.uint64)
    return Pairs(nothing, nothing, nothing.view(np.int64), nothing, nothing.view(np.int64), np.zeros(0, np.float32))
