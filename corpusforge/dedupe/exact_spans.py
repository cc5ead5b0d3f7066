"""The method `exact-spans`: cut spans of consecutive sentences that occur more than once.

Definition (T5, Raffel et al. 2020, section 2.2): all but one copy of any three-sentence span occurring more than once
are removed. Sentences are equal when their normal forms are (`normalize`); a duplicate inside one document counts. The
kept copy is the first in the order of (`keep.keep_order`, document key, position in the document): of content alone,
never of arrival.

    document shards -> HashWork -> spans/: hashes of all spans
    spans/ -> span_blocks -> group by hash -> find_duplicates -> group by unit -> duplicates-N/
    document shards, spans/, duplicates-N/ -> CutWork -> documents/, repeats/

Text is read twice and never shuffled; 24 bytes per span are: hash, document key, place. Partitions and
rounds are ranges of the hash, so equal hashes meet whatever their numbers are, and the number of rounds bounds the
memory (`memory`). A round that is complete is marked, in a folder for that number of rounds; a stage killed anywhere
resumes after its last shard or round.

`lines` and `near_spans` are built from the same units and graph.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import schemas, shards
from corpusforge.arrays import F32, I64, U64
from corpusforge.dedupe import locate, memory, spans
from corpusforge.dedupe.cut import Cut, Cuts, cut_documents, cut_sentences
from corpusforge.dedupe.job import (
    ChainUnit,
    Job,
    as_schema,
    documents_schema,
    read_rounds,
    round_mark,
    slices,
    text_size,
    write_round,
)
from corpusforge.dedupe.locate import locate_for, locate_remotely, span_path
from corpusforge.dedupe.spans import SPANS, find_duplicates, unpack_duplicates
from corpusforge.units import Advance, ShardUnit, UnitResult, Written, write_unit

METHOD = "exact-spans"

PARTITIONS = 64
"""Ranges of the hash that are sorted one by one: bounds the memory of a sort and the workers that can share a round."""

DUPLICATES = pa.schema(
    [pa.field("dropped", pa.uint64(), nullable=False), pa.field("kept", pa.uint64(), nullable=False)]
)
"""Places (`spans.place`) of the dropped spans of a unit and of their kept copies."""


def run(job: Job) -> list[UnitResult]:
    """Write ``documents/`` and ``repeats/`` of every unit."""
    settings = job.settings
    hashing = HashWork(job.scratch, settings.span_sentences, settings.fold_numbers, settings.keep)
    return cut_duplicates(job, hashing, CutWork.of(job, settings.span_sentences), ordered=settings.keep != "hash")


def cut_duplicates(job: Job, hashing: HashWork, cutting: CutWork, *, ordered: bool) -> list[UnitResult]:
    """Hash, compare and cut. ``ordered``: kept copies have an order that has precedence over their keys."""
    hashed = job.map(hashing, label="hash", folder=job.scratch)
    rounds = 1
    if job.engine.is_local:
        count = sum(result.statistics.get("spans", 0) for result in hashed)
        rounds = memory.exact_rounds(count, job.memory_bytes, PARTITIONS)
    folder = compare_hashes(job, job.units, rounds, ordered=ordered)
    cutting = dataclasses.replace(cutting, rounds=rounds)
    locate_remotely(job, cutting.wanted_places)
    results = job.map(cutting, label="cut", folder=job.output)
    locate.forget()
    for number in range(rounds):  # marks first: what is half removed must not look complete
        shards.remove(round_mark(folder, number))
    shards.remove(job.scratch)
    return results


# Hash.


@dataclasses.dataclass(frozen=True)
class HashWork:
    """Writes the span hashes of a document shard. ``folder``: where ``spans/`` and its entries go."""

    folder: str
    span_sentences: int = 3
    fold_numbers: bool = False
    keep: str = "hash"

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Hash one unit; a unit already hashed is not read again."""
        tables = {"spans": (SPANS, "arrow")}
        return write_unit(self.folder, unit, tables, lambda _: map(self._hashed, slices(unit.path)), advance)

    def _hashed(self, documents: pa.RecordBatch) -> Written:
        rows = self.hash(documents)
        hashes, _ = spans.column_spans(rows.column("hashes"))
        counts = {
            "documents_in": documents.num_rows,
            "text_bytes_in": text_size(documents),
            "sentences": len(hashes),
            "spans": int(np.count_nonzero(hashes)),
        }
        return Written(documents.num_rows, {"spans": rows}, counts)

    def hash(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """SPANS of a batch."""
        return spans.hash_documents(
            documents, span_sentences=self.span_sentences, fold_numbers=self.fold_numbers, keep=self.keep
        )


# Compare.


def compare_hashes(
    job: Job, units: Sequence[ShardUnit], rounds: int, *, ordered: bool, partitions: int = PARTITIONS
) -> str:
    """Find the duplicates among the hashes in ``spans/``, round by round; returns the folder that holds them.

    ``ordered``: kept copies have an order that has precedence over their keys.
    """
    folder = duplicates_folder(job.scratch, rounds)
    job.run_rounds("compare", folder, rounds, lambda n: _compare_round(job, units, n, rounds, ordered, partitions))
    return folder


def _compare_round(
    job: Job, units: Sequence[ShardUnit], number: int, rounds: int, ordered: bool, partitions: int
) -> None:
    job.engine.shuffle(
        [unit.number for unit in units],
        functools.partial(span_blocks, job.scratch, partitions, number, rounds, ordered),
        functools.partial(_find_duplicates, ordered),
        functools.partial(write_duplicates, duplicates_folder(job.scratch, rounds), number),
        folder=job.scratch,
    )


def span_blocks(
    folder: str, partitions: int, round: int, rounds: int, ordered: bool, unit: int
) -> list[tuple[int, bytes]]:
    """The spans of one unit that belong to a round (from 0), as (partition, packed block), ascending."""
    return pack_spans(shards.read_shard(span_path(folder, unit)), unit, partitions, round, rounds, ordered=ordered)


def pack_spans(
    batches: Iterable[pa.RecordBatch], unit: int, partitions: int, round: int = 0, rounds: int = 1, *, ordered: bool
) -> list[tuple[int, bytes]]:
    """As `span_blocks`, from the unit's SPANS batches."""
    columns: list[tuple[npt.NDArray[Any], ...]] = []
    first = 0
    for batch in batches:
        hashes, offsets = spans.column_spans(batch.column("hashes"))
        slots = spans.partition_of(hashes, partitions * rounds)
        chosen = np.flatnonzero((slots // partitions == round) & (hashes != 0))
        owners = np.repeat(np.arange(batch.num_rows), np.diff(offsets))[chosen]
        keys, orders = (batch.column(name).to_numpy()[owners] for name in ("key", "order"))
        places = spans.place(unit, chosen + first)
        columns.append((slots[chosen] % partitions, hashes[chosen], keys, places, *([orders] if ordered else [])))
        first += len(hashes)
    return spans.pack_groups(*map(np.concatenate, zip(*columns, strict=True))) if columns else []


def _find_duplicates(ordered: bool, partition: int, blocks: Iterable[bytes]) -> list[tuple[int, bytes]]:
    return find_duplicates(blocks, ordered=ordered)


def duplicates_folder(folder: str, rounds: int) -> str:
    """Where a comparison in this many rounds writes: results of another number of rounds are not mixed with them."""
    return shards.join(folder, f"duplicates-{rounds}")


def write_duplicates(folder: str, round: int, unit: int, packed: Iterable[bytes]) -> None:
    """Write the duplicates of one unit in one round, ascending. ``folder``: `duplicates_folder`."""
    write_round(folder, unit, round, unpack_duplicates(packed), DUPLICATES)


def read_duplicates(folder: str, unit: int, rounds: int) -> tuple[U64, U64]:
    """Dropped places of a unit, ascending, and their kept copies, of a comparison in this many rounds."""
    return unpack_duplicates(read_rounds(duplicates_folder(folder, rounds), unit, rounds))


# Cut.


@dataclasses.dataclass(frozen=True)
class CutWork:
    """Writes what is left of a document shard. ``output``: the method's folder; ``folder``: that of `HashWork`.

    ``rounds``: of the comparison that is complete. ``audit_only``: a dry run, which writes ``repeats/`` with the same
    tallies and statistics and no documents.
    """

    output: str
    folder: str
    rounds: int = 1
    span_sentences: int = 3
    min_sentences: int = 3
    min_words: int = 0
    shard_bytes: int = 64 << 20
    audit_only: bool = False
    method: str = METHOD
    reason: str = "span:repeated"
    counted: str = "spans"  # what a hash is of, in the statistics

    @classmethod
    def of(cls, job: Job, span_sentences: int, **more: Any) -> Self:
        """The work of a job."""
        settings = job.settings
        return cls(
            job.output,
            job.scratch,
            span_sentences=span_sentences,
            min_sentences=settings.min_sentences,
            min_words=settings.min_words,
            audit_only=job.audit_only,
            **more,
        )

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Cut one unit, resuming after its last finished shard."""
        tables = {"repeats": (schemas.REPEATS, "parquet")}
        if not self.audit_only:
            tables["documents"] = (documents_schema(unit), "parquet")
        batches = functools.partial(self._batches, unit)
        return write_unit(self.output, unit, tables, batches, advance, shard_bytes=self.shard_bytes)

    def _batches(self, unit: ShardUnit, position: int) -> Iterator[Written]:
        """What the documents from ``position`` on become."""
        hashed = _load_spans(self.folder, unit.number)
        cuts, dropped = self.cuts_from(unit.number, _sentence_range(hashed, 0, position)[1])
        for documents in slices(unit.path, skip=position):
            rows = hashed.slice(position, documents.num_rows)
            first, last = _sentence_range(hashed, position, documents.num_rows)
            cut = self.cut(documents, rows, _cuts_between(cuts, first, last), isinstance(unit, ChainUnit))
            counts = {
                self.counted: int(np.count_nonzero(spans.column_spans(rows.column("hashes"))[0])),
                f"repeated_{self.counted}": int(np.subtract(*np.searchsorted(dropped, [last, first]))),
            }
            tables = {"repeats": cut.repeats}
            if not self.audit_only:
                tables["documents"] = as_schema(cut.documents, documents_schema(unit))
            statistics = {**cut.statistics, **counts}
            yield Written(documents.num_rows, tables, statistics, cut.tallies, text_size(documents))
            position += documents.num_rows

    def cut(self, documents: pa.RecordBatch, rows: pa.RecordBatch, cuts: Cuts, map_offsets: bool) -> Cut:
        """What is left of a batch. ``rows``: its SPANS."""
        return cut_documents(
            documents,
            rows,
            cuts,
            min_sentences=self.min_sentences,
            min_words=self.min_words,
            method=self.method,
            reason=self.reason,
            map_offsets=map_offsets,
        )

    def cuts_from(self, unit: int, first: int) -> tuple[Cuts, I64]:
        """The sentences of a unit to cut from row ``first`` on, and the rows of all its dropped spans."""
        rows, places, similarities, dropped = self.sentences_of(unit)
        start = int(np.searchsorted(rows, first))  # earlier ones are written already
        rows, places = rows[start:], places[start:]
        copies = locate_for(unit, places, self.folder)
        return Cuts(rows, places, *copies, None if similarities is None else similarities[start:]), dropped

    def sentences_of(self, unit: int) -> tuple[I64, U64, F32 | None, I64]:
        """The sentence rows to cut, the places of their copies, their similarities, and the rows of dropped spans."""
        dropped, kept, similarities = self.duplicates_of(unit)
        rows_of_spans = spans.row_of(dropped)
        rows, places = cut_sentences(rows_of_spans, kept, self.span_sentences)
        if similarities is not None:
            similarities = similarities[np.searchsorted(rows_of_spans, rows, "right") - 1]
        return rows, places, similarities, rows_of_spans

    def wanted_places(self, unit: int) -> U64:
        """The places that a unit needs to locate."""
        return self.sentences_of(unit)[1]

    def duplicates_of(self, unit: int) -> tuple[U64, U64, F32 | None]:
        """Places of the dropped spans of a unit, ascending, of their kept copies, and similarities (None: equal)."""
        return *read_duplicates(self.folder, unit, self.rounds), None


def _load_spans(folder: str, unit: int) -> pa.RecordBatch:
    """A unit's SPANS as one batch."""
    table = pa.Table.from_batches(shards.read_shard(span_path(folder, unit)), SPANS)
    arrays = [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _sentence_range(hashed: pa.RecordBatch, row: int, rows: int) -> tuple[int, int]:
    """The sentence rows of ``rows`` documents from ``row`` on."""
    column = hashed.column("starts")
    ends = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    return int(ends[row] - ends[0]), int(ends[row + rows] - ends[0])


def _cuts_between(cuts: Cuts, first: int, last: int) -> Cuts:
    """The cuts of sentence rows ``first`` to ``last``, with rows counted from the first."""
    a, b = np.searchsorted(cuts.rows, [first, last]).tolist()
    similarities = None if cuts.similarities is None else cuts.similarities[a:b]
    return Cuts(cuts.rows[a:b] - first, cuts.places[a:b], cuts.documents[a:b], cuts.starts[a:b], similarities)
