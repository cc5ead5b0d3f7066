"""The dedupe stage, unit by unit: hash a document shard, block its hashes, cut what repeats.

Comes in: document shards (a unit is one shard). Goes out: ``spans/`` (hashes, in a folder of their own), ``cuts-N/``
(which sentences lose, from all units together), then ``documents/`` and ``repeats/``.

    HashWork(unit)              document shard -> spans/part-UUUUU-00000.arrow
    blocks(span_path, ...)      -> (partition, block of hashes) for the shuffle
    find_losers(blocks)         (dedupe.spans) -> (unit, losing spans)
    write_cuts(folder, ...)     -> cuts-N/part-UUUUU-RRRRR.arrow, one a round of N
    CutWork(unit)               document shard + spans + cuts -> documents/, repeats/

Decision: what is shuffled are 24 bytes a span (hash, document key, place). Partitions and rounds are ranges of the
hash, so equal hashes meet whatever their numbers are, and memory is bounded by the number of rounds.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import schemas, shards
from corpusforge.arrays import F32, I64, U64
from corpusforge.dedupe import spans as span_tables
from corpusforge.dedupe.chain import ChainUnit, as_schema, documents_schema, share, slices, text_size
from corpusforge.dedupe.cut import Cut, Cuts, cut_documents, cut_sentences
from corpusforge.dedupe.locate import locate_for
from corpusforge.dedupe.spans import SPANS
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult

CUTS = pa.schema([pa.field("loser", pa.uint64(), nullable=False), pa.field("survivor", pa.uint64(), nullable=False)])
"""Places (dedupe.spans.place) of losing spans of a unit and of their survivors."""

# Beam's local runner holds about 3.5 times of what it shuffles: every span once, and at worst every one again as a
# loser. Measured (Beam 2.77, 8 million spans, 90 % repeats): 125 to 145 bytes a span, where this plan says 141. Sorting
# one partition takes its block, its columns, an order and the ordered hashes.
_SHUFFLE_FACTOR = 3.5
_SORT_BYTES = 72


@dataclasses.dataclass(frozen=True)
class HashWork:
    """Writes the span hashes of a document shard. ``folder``: where ``spans/`` and its entries go."""

    folder: str
    span_sentences: int = 3
    fold_numbers: bool = False
    survivor: str = "hash"

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Hash one unit; a unit already hashed is not read again."""
        with UnitOutput(self.folder, unit.number, {"spans": (SPANS, "arrow")}, shard_bytes=1 << 62) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            position = 0
            for documents in slices(unit.path):
                rows = self.hash(documents)
                hashes, _ = span_tables.column_spans(rows.column("hashes"))
                size, position = text_size(documents), position + documents.num_rows
                counts = {
                    "documents_in": documents.num_rows,
                    "text_bytes_in": size,
                    "sentences": len(hashes),
                    "spans": int(np.count_nonzero(hashes)),
                }
                output.write({"spans": rows}, position=position, size=size, tallies={}, statistics=counts)
                advance(share(unit, documents.num_rows))
            return output.finish()

    def hash(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """SPANS of a batch."""
        how: dict[str, Any] = {"span_sentences": self.span_sentences, "fold_numbers": self.fold_numbers}
        return span_tables.hash_documents(documents, survivor=self.survivor, **how)


def span_path(folder: str, unit: int) -> str:
    """Where `HashWork` writes the hashes of a unit."""
    return shards.join(folder, f"spans/part-{unit:05d}-00000.arrow")


def blocks(
    path: str, unit: int, partitions: int, round: int, rounds: int, *, ordered: bool = False
) -> list[tuple[int, bytes]]:
    """The spans of one unit that belong to a round (from 0), as (partition, packed block), ascending.

    ``path``: `span_path` of the unit; ``ordered``: with the order of survivors, where it is not all 0.
    """
    found: list[list[Any]] = []
    first = 0
    for batch in shards.read_shard(path):
        hashes, keys, orders = _span_columns(batch)
        slots = _slots(hashes, partitions * rounds)
        chosen = np.flatnonzero((slots // partitions == round) & (hashes != 0))
        columns = [hashes[chosen], keys[chosen], span_tables.place(unit, chosen + first)]
        found.append([slots[chosen] % partitions, *columns, *([orders[chosen]] if ordered else [])])
        first += len(hashes)
    if not found:
        return []
    partition, *columns = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(partition.astype(np.uint16), kind="stable")
    columns = [column[order] for column in columns]
    bounds = np.searchsorted(partition[order], np.arange(partitions + 1)).tolist()
    return [
        (number, span_tables.pack_block(*(column[a:b] for column in columns)))
        for number, (a, b) in enumerate(itertools.pairwise(bounds))
        if a < b
    ]


def plan_rounds(spans_total: int, memory_bytes: int, partitions: int) -> int:
    """The fewest rounds for which the shuffle and the sorting of one partition fit the budget.

    >>> plan_rounds(10_000_000, 2 << 30, 16), plan_rounds(1_000_000_000, 2 << 30, 16)
    (1, 68)
    """
    return max(1, -(-peak_bytes(spans_total, 1, partitions) // max(1, memory_bytes)))


def peak_bytes(spans_total: int, rounds: int, partitions: int) -> int:
    """Memory a round needs, estimated, beyond what the processes need anyway."""
    shuffled = span_tables.BLOCK_BYTES + span_tables.LOSER_BYTES
    a_span = shuffled * _SHUFFLE_FACTOR + _SORT_BYTES / partitions
    return int(spans_total / rounds * a_span)


def cuts_folder(folder: str, rounds: int) -> str:
    """Where the cuts of a comparison in so many rounds go: cuts of another number of rounds are not mixed with them."""
    return shards.join(folder, f"cuts-{rounds}")


def write_cuts(folder: str, unit: int, round: int, losers: Iterable[bytes]) -> None:
    """Write what `find_losers` found for one unit in one round, ascending. ``folder``: `cuts_folder`."""
    losing, surviving = span_tables.unpack_losers(losers)
    writer = shards.ShardWriter(folder, _cuts_name(unit, round), CUTS, "arrow")
    writer.write(pa.record_batch([pa.array(losing), pa.array(surviving)], schema=CUTS))
    writer.finish()


def read_cuts(folder: str, unit: int, rounds: int) -> tuple[U64, U64]:
    """Losing places of a unit, ascending, and their survivors, from all rounds; none where nothing was written."""
    paths = [shards.join(folder, _cuts_name(unit, round)) for round in range(rounds)]
    batches = [batch for path in paths if shards.exists(path) for batch in shards.read_shard(path)]
    return span_tables.unpack_losers(
        span_tables.pack_losers(batch.column(0).to_numpy(), batch.column(1).to_numpy()) for batch in batches
    )


def _cuts_name(unit: int, round: int) -> str:
    return f"part-{unit:05d}-{round:05d}.arrow"


@dataclasses.dataclass(frozen=True)
class CutWork:
    """Writes what stays of a document shard. ``output``: the stage's folder; ``folder``: that of `HashWork`.

    ``cuts``: `cuts_folder` of a comparison in ``rounds`` rounds that is through.
    ``audit_only``: a dry run, writes ``repeats/`` with the same tallies and statistics and no documents.
    """

    output: str
    folder: str
    cuts: str = ""
    rounds: int = 1
    span_sentences: int = 3
    min_sentences: int = 3
    min_words: int = 0
    shard_bytes: int = 64 << 20
    audit_only: bool = False
    method: str = "exact-spans"
    counted: str = "spans"  # what a hash is of, in the statistics

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Cut one unit, going on behind its last finished shard."""
        tables = {"repeats": (schemas.REPEATS, "parquet")}
        if not self.audit_only:
            tables["documents"] = (documents_schema(unit), "parquet")
        with UnitOutput(self.output, unit.number, tables, self.shard_bytes) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            advance(share(unit, output.position))
            hashed = _load_spans(self.folder, unit.number)
            position = output.position
            cuts, repeated = self.cuts_from(unit.number, _sentence_range(hashed, 0, position)[1])
            for documents in slices(unit.path, skip=position):
                rows = hashed.slice(position, documents.num_rows)
                first, last = _sentence_range(hashed, position, documents.num_rows)
                cut = self.cut(documents, rows, _cuts_between(cuts, first, last), isinstance(unit, ChainUnit))
                position += documents.num_rows
                counts = {
                    self.counted: int(np.count_nonzero(span_tables.column_spans(rows.column("hashes"))[0])),
                    f"repeated_{self.counted}": int(np.subtract(*np.searchsorted(repeated, [last, first]))),
                }
                kept = as_schema(cut.documents, documents_schema(unit))
                written = {"documents": kept, "repeats": cut.repeats}
                output.write(
                    {name: written[name] for name in tables},
                    position=position,
                    size=text_size(documents),
                    tallies=cut.tallies,
                    statistics={**cut.statistics, **counts},
                )
                advance(share(unit, documents.num_rows))
            return output.finish()

    def cut(self, documents: pa.RecordBatch, rows: pa.RecordBatch, cuts: Cuts, keep_pieces: bool) -> Cut:
        """What stays of a batch. ``rows``: its SPANS."""
        how: dict[str, Any] = {"min_sentences": self.min_sentences, "min_words": self.min_words, "method": self.method}
        return cut_documents(documents, rows, cuts, keep_pieces=keep_pieces, **how)

    def cuts_from(self, unit: int, first: int) -> tuple[Cuts, I64]:
        """The sentences of a unit to cut from row ``first`` on, and the rows of all its losing spans."""
        rows, places, similarities, losers = self.sentences_of(unit)
        behind = int(np.searchsorted(rows, first))  # what is written already need not be located again
        rows, places = rows[behind:], places[behind:]
        where = locate_for(unit, places, self.folder, functools.partial(span_path, self.folder))
        return Cuts(rows, places, *where, None if similarities is None else similarities[behind:]), losers

    def sentences_of(self, unit: int) -> tuple[I64, U64, F32 | None, I64]:
        """The sentence rows to cut, the places of their copies, how similar they are, and the rows of losing spans."""
        losers, survivors, similarities = self.losers_of(unit)
        spans = span_tables.row_of(losers)
        rows, places = cut_sentences(spans, survivors, self.span_sentences)
        if similarities is not None:
            similarities = similarities[np.searchsorted(spans, rows, "right") - 1]
        return rows, places, similarities, spans

    def losers_of(self, unit: int) -> tuple[U64, U64, F32 | None]:
        """Places of the spans of a unit that go, ascending, of their survivors, and how similar (None: equal)."""
        return *read_cuts(self.cuts, unit, self.rounds), None


def _span_columns(batch: pa.RecordBatch) -> tuple[U64, U64, I64]:
    """Hashes of a SPANS batch, and the document key and order of each."""
    hashes, offsets = span_tables.column_spans(batch.column("hashes"))
    counts = np.diff(offsets)
    return (
        hashes,
        np.repeat(batch.column("key").to_numpy(), counts),
        np.repeat(batch.column("order").to_numpy(), counts),
    )


def _slots(hashes: U64, slots: int) -> U64:
    """Which of so many equal ranges of 64-bit numbers each hash lies in (Lemire's multiply and shift, on 32 bits)."""
    return (hashes >> np.uint64(32)) * np.uint64(slots) >> np.uint64(32)


def _load_spans(folder: str, unit: int) -> pa.RecordBatch:
    """A unit's hashes as one batch."""
    table = pa.Table.from_batches(shards.read_shard(span_path(folder, unit)), SPANS)
    arrays = [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _sentence_range(hashed: pa.RecordBatch, row: int, rows: int) -> tuple[int, int]:
    """The sentence rows of ``rows`` documents from ``row`` on."""
    column = hashed.column("starts")
    ends = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    return int(ends[row] - ends[0]), int(ends[row + rows] - ends[0])


def _cuts_between(cuts: Cuts, first: int, last: int) -> Cuts:
    a, b = np.searchsorted(cuts.rows, [first, last]).tolist()
    alike = None if cuts.similarities is None else cuts.similarities[a:b]
    return Cuts(cuts.rows[a:b] - first, cuts.places[a:b], cuts.documents[a:b], cuts.starts[a:b], alike)
