"""`DedupeSpans`: exact repeats cut out of anyone's PCollection of DOCUMENTS batches.

    batches -> numbered by content                    (one 64-bit mark a batch is gathered)
    batches -> packed blocks of span hashes -> GroupByKey -> duplicates of each batch     (24 bytes a span)
    duplicates -> asked of the batches that keep the copy: which document, which byte    (ids and sentence offsets)
    batches + cuts -> CoGroupByKey -> documents, repeats                              (the text, once)

What the stage reads twice from disk a free pipeline cannot read again, so the text passes one shuffle, compressed by
nothing but Arrow; hashes are computed twice instead of travelling with it. The result is that of the stage, whatever
the batches: kept copies are chosen by document, and the number of a batch decides nothing but where a row is looked up.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge.beam.io import in_batches
from corpusforge.beam.numbering import NumberBatches
from corpusforge.beam.sdk import beam, count
from corpusforge.dedupe.cut import Cuts, cut_documents, cut_sentences
from corpusforge.dedupe.exact_spans import PARTITIONS
from corpusforge.dedupe.spans import (
    column_spans,
    find_duplicates,
    hash_documents,
    pack,
    pack_groups,
    partition_of,
    place,
    row_of,
    unit_of,
    unpack_duplicates,
)

REPEATS = "repeats"
"""Tag of the second output."""


def renamed(keep: str, survivor: str | None) -> str:
    """The argument ``keep`` of a transform, or its old name ``survivor`` with a warning, for one release."""
    if survivor is None:
        return keep
    warnings.warn("the parameter survivor was renamed: use keep", DeprecationWarning, stacklevel=3)
    return survivor


_WHERE = pa.schema([("place", pa.uint64()), ("document", pa.string()), ("start", pa.int64())])
"""Where the kept copy of a sentence stands."""


class DedupeSpans(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches without repeated spans; what was cut is the output ``repeats`` (REPEATS batches).

    Document ids must be unique (as `ReadDocuments` makes them).

        kept, repeats = documents | DedupeSpans(span_sentences=3, min_sentences=3)
    """

    def __init__(
        self,
        *,
        span_sentences: int = 3,
        min_sentences: int = 3,
        min_words: int = 0,
        fold_numbers: bool = False,
        keep: str = "hash",
        survivor: str | None = None,
    ) -> None:
        super().__init__()
        keep = renamed(keep, survivor)
        self.span_sentences, self.fold_numbers, self.keep = span_sentences, fold_numbers, keep
        self.floors = {"min_sentences": min_sentences, "min_words": min_words}

    def expand(self, documents: Any) -> Any:
        hashing = {"span_sentences": self.span_sentences, "fold_numbers": self.fold_numbers, "keep": self.keep}
        finding = FindDuplicates(ordered=self.keep != "hash")
        numbered = documents | "Batches" >> NumberBatches("DedupeSpans")
        hashed = numbered | "Hash" >> beam.ParDo(_Hash(hashing)).with_outputs("where", main="blocks")
        found = hashed["blocks"] | "ByHash" >> beam.GroupByKey() | "FindDuplicates" >> beam.ParDo(finding)
        grouped = found | "ByBatch" >> beam.GroupByKey()
        cuts = grouped | "Sentences" >> beam.ParDo(_Sentences(self.span_sentences)).with_outputs("asked", main="cuts")
        asking = {"asked": cuts["asked"], "where": hashed["where"]}
        answers = asking | "Ask" >> beam.CoGroupByKey() | "Locate" >> beam.ParDo(_Locate())
        parts = {"documents": numbered, "cuts": cuts["cuts"], "answers": answers}
        cutting = beam.ParDo(_Cut(hashing, self.floors)).with_outputs(REPEATS, main="documents")
        return in_batches(parts | "Join" >> beam.CoGroupByKey() | "Cut" >> cutting)


class _Hash(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, batch) -> (partition, packed block) and, as ``where``, (number, ids and sentence offsets)."""

    def __init__(self, hashing: Mapping[str, Any]) -> None:
        self.hashing = dict(hashing)

    def process(self, numbered: tuple[int, pa.RecordBatch]) -> Iterator[Any]:
        number, documents = numbered
        rows = hash_documents(documents, **self.hashing)
        yield beam.pvalue.TaggedOutput("where", (number, rows.select(["document", "starts"])))
        hashes, offsets = column_spans(rows.column("hashes"))
        of_documents = [rows.column(name).to_numpy() for name in ("key", "order")]
        keys, orders = (np.repeat(column, np.diff(offsets)) for column in of_documents)
        chosen = np.flatnonzero(hashes)
        columns = [hashes[chosen], keys[chosen], place(number, chosen)]
        if self.hashing["keep"] != "hash":
            columns.append(orders[chosen])
        yield from pack_groups(partition_of(hashes[chosen], PARTITIONS), *columns)


class FindDuplicates(beam.DoFn):  # type: ignore[misc, name-defined]
    """(partition, packed blocks of all units) -> (unit, packed places of the spans that go and of those that stay)."""

    def __init__(self, *, ordered: bool = False) -> None:
        self.ordered = ordered

    def process(self, group: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        yield from find_duplicates(group[1], ordered=self.ordered)


class _Sentences(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, packed duplicates) -> (number, rows and places); as ``asked``, (other batch, (number, places))."""

    def __init__(self, span_sentences: int) -> None:
        self.span_sentences = span_sentences

    def process(self, group: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        number, blocks = group
        dropped, kept = unpack_duplicates(blocks)
        rows, places = cut_sentences(row_of(dropped), kept, self.span_sentences)
        yield number, pack(rows.astype(np.uint64), places)
        units = unit_of(places)
        for other in np.unique(units).tolist():
            question = (number, np.unique(places[units == other]).tobytes())
            yield beam.pvalue.TaggedOutput("asked", (other, question))


class _Locate(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, who asks for which places, ids and offsets) -> (who asked, the answer as a `_WHERE` batch)."""

    def process(self, group: tuple[int, Mapping[str, Any]]) -> Iterator[tuple[int, pa.RecordBatch]]:
        asked = list(group[1]["asked"])
        if not asked:
            return
        (where,) = group[1]["where"]
        starts, offsets = column_spans(where.column("starts"))
        for number, packed in asked:
            places = np.frombuffer(packed, np.uint64)
            rows = row_of(places)
            owners = pa.array(np.searchsorted(offsets, rows, "right") - 1)
            columns = [pa.array(places), where.column("document").take(owners), pa.array(starts[rows].astype(np.int64))]
            yield number, pa.RecordBatch.from_arrays(columns, schema=_WHERE)


class _Cut(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, batch, its cuts, where the copies are) -> what stays of the batch, and its repeats."""

    def __init__(self, hashing: Mapping[str, Any], floors: Mapping[str, Any]) -> None:
        self.hashing, self.floors = dict(hashing), dict(floors)

    def process(self, group: tuple[int, Mapping[str, Any]]) -> Iterator[Any]:
        (documents,) = group[1]["documents"]
        rows, places = unpack_duplicates(group[1]["cuts"])
        answers = pa.Table.from_batches(list(group[1]["answers"]), _WHERE).sort_by("place").combine_chunks()
        found = pa.array(np.searchsorted(answers["place"].to_numpy(), places))
        kept = answers.select(["document", "start"]).take(found).combine_chunks()
        ids = kept["document"].chunk(0) if len(rows) else pa.array([], pa.string())
        cuts = Cuts(rows.astype(np.int64), places, ids, kept["start"].to_numpy())
        cut = cut_documents(documents, hash_documents(documents, **self.hashing), cuts, **self.floors)
        count(cut.tallies)
        if cut.documents.num_rows:
            yield cut.documents
        if cut.repeats.num_rows:
            yield beam.pvalue.TaggedOutput(REPEATS, cut.repeats)
