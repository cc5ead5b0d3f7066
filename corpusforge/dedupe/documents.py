"""The method `documents`: keep one document of each group of similar ones.

Documents are compared as sets of shingles (`minhash`); pairs at least as similar as the threshold form groups
(`clusters`), and of each group the copy of `keep` is kept. Documents are dropped whole or stay whole.

    document shards -> SignWork -> spans/, signed/;  an index's signatures -> IndexWork -> the same
    spans/, signed/ -> find_similar -> compared/ -> settle_groups -> grouped/
    document shards, grouped/ -> KeepWork -> documents/, repeats/, clusters/, signatures/

The signatures of the kept documents are an index for later runs: a later part of a corpus names the folders of all
earlier ones. Units of an index follow those of the corpus, and its documents come first in the order of kept
copies: they are compared as all others, are always kept, and the documents that resemble them are dropped. Pairs of two
documents of the index are skipped.

Groups are settled in one process: a pair takes 16 bytes, and about three times as much while components are computed,
so 10^8 pairs need 5 GB. Equal shingles give one pair per copy; other pairs are at most ``2 * lsh.NEIGHBORS`` per
document and band.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence, Set

import numpy as np
import pyarrow as pa

from corpusforge import schemas, shards
from corpusforge.arrays import F32, I64, U64, Bools
from corpusforge.dedupe import locate, signed_units, spans
from corpusforge.dedupe.index import IndexWork, index_units, signature_rows, signatures_schema
from corpusforge.dedupe.job import Job, as_schema, documents_schema, slices, text_size
from corpusforge.dedupe.keep import METHOD, Grouped, Members, group, keep_documents, places_of
from corpusforge.dedupe.pairs import find_similar, read_compared, with_pair_counts
from corpusforge.dedupe.signed_units import Signing, SignWork, open_items
from corpusforge.units import Advance, ShardUnit, UnitResult, Written, write_unit

GROUPED = pa.schema(
    [
        pa.field("place", pa.uint64(), nullable=False),
        pa.field("kept", pa.uint64(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
    ]
)
"""`clusters.Grouped` of one unit."""


def run(job: Job) -> list[UnitResult]:
    """Write ``documents/``, ``repeats/``, ``clusters/`` and, where they are exported, ``signatures/`` of every unit."""
    settings = job.settings
    signing = Signing.of(settings, 0, indexed=bool(settings.index))
    index = index_units(settings.index, len(job.units), signing.signer)
    every = [*job.units, *index]
    signed = job.map(SignWork(job.scratch, signing), label="sign", folder=job.scratch)
    if index:
        signed += job.map(IndexWork(job.scratch, signing), label="index", folder=job.scratch, units=index)
    items = sum(result.statistics.get("items", 0) for result in signed)
    compared = find_similar(job, signing, every, items, best=False)
    mark = shards.join(job.scratch, "grouped/settled.json")
    if not shards.exists(mark):
        settle_groups(job.scratch, [unit.number for unit in every], len(job.units))
        shards.write_json(mark, {"units": len(every)})
    is_last = settings.method[-1] == METHOD  # signatures/ must not hold documents that a later method drops
    export = is_last and (settings.export_signatures or bool(index))
    keeping = KeepWork(job.output, job.scratch, signing, len(job.units), audit_only=job.audit_only, export=export)
    results = job.map(keeping, label="keep", folder=job.output)
    signed_units.remove_scratch(job.scratch)
    return with_pair_counts(results, compared)


def settle_groups(folder: str, units: Sequence[int], first_of_index: int) -> None:
    """Write ``grouped/`` of every unit. ``units``: those of the corpus and of the index; all pairs are compared."""
    later, earlier = (
        np.concatenate(column) for column in zip(*(read_compared(folder, u)[:2] for u in units), strict=True)
    )
    known = np.minimum(spans.unit_of(later), spans.unit_of(earlier)) >= first_of_index
    later, earlier = later[~known], earlier[~known]
    places = places_of(earlier, later)
    grouped = group(earlier, later, places, _order(folder, places))
    bounds = np.searchsorted(spans.unit_of(places), [*units, max(units, default=0) + 1])
    for unit, a, b in zip(units, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        writer = shards.ShardWriter(folder, _grouped_name(unit), GROUPED, "arrow")
        writer.write(pa.record_batch([pa.array(column[a:b]) for column in grouped], schema=GROUPED))
        writer.finish()


def _order(folder: str, places: U64) -> tuple[I64, U64, I64]:
    units, first = np.unique(spans.unit_of(places), return_index=True)
    columns = [(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64))]
    for unit, rows in zip(units.tolist(), np.split(spans.row_of(places), first[1:]), strict=False):
        columns.append(open_items(folder, unit).order(rows))
    orders, keys, rows = (np.concatenate(column) for column in zip(*columns, strict=True))
    return orders, keys, rows


def read_grouped(folder: str, unit: int) -> Grouped:
    """The documents of a unit that are in groups."""
    table = pa.Table.from_batches(shards.read_shard(shards.join(folder, _grouped_name(unit))), GROUPED)
    return Grouped._make(column.to_numpy() for column in table.columns)


def _grouped_name(unit: int) -> str:
    return f"grouped/part-{unit:05d}-00000.arrow"


@dataclasses.dataclass(frozen=True)
class KeepWork:
    """Writes what is left of a document shard. ``folder``: of ``grouped/``; ``export``: write ``signatures/``."""

    output: str
    folder: str
    signing: Signing
    first_of_index: int
    shard_bytes: int = 64 << 20
    audit_only: bool = False
    export: bool = False

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Process one unit, resuming after its last finished shard."""
        tables = {"repeats": (schemas.REPEATS, "parquet"), "clusters": (schemas.CLUSTERS, "parquet")}
        if not self.audit_only:
            tables["documents"] = (documents_schema(unit), "parquet")
            if self.export:
                tables["signatures"] = (signatures_schema(self.signing.signer), "arrow")
        batches = functools.partial(self._batches, unit, frozenset(tables))
        return write_unit(self.output, unit, tables, batches, advance, shard_bytes=self.shard_bytes)

    def _batches(self, unit: ShardUnit, tables: Set[str], position: int) -> Iterator[Written]:
        """What the documents from ``position`` on become."""
        members = self._members(unit.number, position)
        for documents in slices(unit.path, skip=position):
            kept = keep_documents(documents, _between(members, position, position + documents.num_rows))
            written = {"repeats": kept.repeats, "clusters": kept.clusters}
            if "documents" in tables:
                written["documents"] = as_schema(kept.documents, documents_schema(unit))
            if "signatures" in tables:
                written["signatures"] = self._signatures(unit.number, documents, position, kept.is_kept)
            yield Written(documents.num_rows, written, kept.statistics, kept.tallies, text_size(documents))
            position += documents.num_rows

    def _members(self, unit: int, first: int) -> Members:
        """The documents of a unit from row ``first`` on that are in a group."""
        grouped = read_grouped(self.folder, unit)
        start = int(np.searchsorted(grouped.places, spans.place(unit, np.array([first]))[0]))
        places, kept, sizes = grouped.places[start:], grouped.kept[start:], grouped.sizes[start:]
        rows = spans.row_of(places)
        return Members(
            rows=rows,
            kept=locate.locate_copies(kept, self.folder)[0],
            stays=kept == places,
            in_index=spans.unit_of(kept) >= self.first_of_index,
            sizes=sizes,
            similarities=self._similarities(unit, rows, kept),
        )

    def _similarities(self, unit: int, rows: I64, kept: U64) -> F32:
        width = self.signing.signer.permutations
        items, units = open_items(self.folder, unit), spans.unit_of(kept)
        values = np.ones(len(rows), np.float32)
        for other in np.unique(units).tolist():
            chosen = np.flatnonzero(units == other)
            others, other_rows = open_items(self.folder, other), spans.row_of(kept[chosen])
            values[chosen] = signed_units.similarities(items, rows[chosen], others, other_rows, width)
        return values

    def _signatures(self, unit: int, documents: pa.RecordBatch, first: int, is_kept: Bools) -> pa.RecordBatch:
        """SIGNATURES of the documents that are kept and have words."""
        rows = first + np.arange(documents.num_rows)
        signatures = open_items(self.folder, unit).signatures(rows, self.signing.signer.permutations)
        real = is_kept & (signatures[:, 0] != 0)  # the values of a signature are odd
        return signature_rows(documents.column("id"), signatures, real, self.signing.signer)


def _between(members: Members, first: int, last: int) -> Members:
    """The members of rows ``first`` to ``last``, with rows counted from the first."""
    a, b = np.searchsorted(members.rows, [first, last]).tolist()
    chosen = Members._make(column[a:b] for column in members)
    return chosen._replace(rows=chosen.rows - first)
