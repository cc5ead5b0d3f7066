"""`DedupeDocuments`: one document of each group of alike ones, of anyone's PCollection of DOCUMENTS batches.

    batches -> numbered by content -> cards (shingles), hashes of signatures, band hashes
    hashes of signatures -> GroupByKey -> documents that repeat a signature
    band hashes of the others -> GroupByKey -> pairs worth comparing
    pairs + cards asked of the other batches -> pairs that are alike -> one GroupByKey -> groups
    batches + groups + cards of kept documents -> documents, repeats, clusters

Comes in: DOCUMENTS batches. Goes out: what the stage's method `documents` gives, whatever the batches. The one
decision: all pairs that are alike are gathered by one worker, at about 50 bytes each, as in the stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I64, U64
from corpusforge.beam.io import in_batches
from corpusforge.beam.numbering import NumberBatches
from corpusforge.beam.sdk import beam, count
from corpusforge.beam.spans import FindDuplicates, renamed
from corpusforge.dedupe.clusters import group, places_of
from corpusforge.dedupe.documents import CARDS, sign_cards, similarities
from corpusforge.dedupe.exact_spans import PARTITIONS
from corpusforge.dedupe.keep import Members, keep_documents
from corpusforge.dedupe.lsh import bands_for, candidate_pairs, unpack_pairs
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.spans import pack, pack_groups, partition_of, place, row_of, unit_of, unpack, unpack_duplicates

REPEATS = "repeats"
CLUSTERS = "clusters"
"""Tags of the other outputs."""

_ANSWERS = CARDS.insert(0, pa.field("place", pa.uint64()))
"""Cards that were asked for."""


class DedupeDocuments(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches with one document of each group; what goes is ``repeats``, the groups are ``clusters``.

    Document ids must be unique (as `ReadDocuments` makes them).

        kept, repeats, clusters = documents | DedupeDocuments(threshold=0.8)
    """

    def __init__(
        self,
        *,
        threshold: float = 0.8,
        permutations: int = 64,
        shingle_words: int = 5,
        fold_numbers: bool = False,
        keep: str = "hash",
        survivor: str | None = None,
    ) -> None:
        super().__init__()
        keep = renamed(keep, survivor)
        self.threshold, self.keep = threshold, keep
        self.signer = Signer(permutations, shingle_words, fold_numbers=fold_numbers)

    def expand(self, documents: Any) -> Any:
        numbered = documents | "Batches" >> NumberBatches("DedupeDocuments")
        bands = bands_for(self.threshold, self.signer.permutations)
        signing = beam.ParDo(_Sign(self.signer, bands, self.keep)).with_outputs("cards", "bands", main="blocks")
        signed = numbered | "Sign" >> signing
        cards = signed["cards"]
        equal = signed["blocks"] | "ByHash" >> beam.GroupByKey() | "FindEqual" >> beam.ParDo(FindDuplicates())
        banded = (
            {"bands": signed["bands"], "equal": equal}
            | "Left" >> beam.CoGroupByKey()
            | "Bands" >> beam.ParDo(_Bands(bands.bands))
        )
        near = banded | "ByBand" >> beam.GroupByKey() | "FindPairs" >> beam.ParDo(_FindPairs())
        asking = beam.ParDo(_AskPairs()).with_outputs("asked", main="pairs")
        pairs = {"equal": equal, "near": near} | "Pairs" >> beam.CoGroupByKey() | "AskPairs" >> asking
        answers = {"asked": pairs["asked"], "cards": cards} | "Earlier" >> _Ask()
        parts = {"pairs": pairs["pairs"], "answers": answers, "cards": cards}
        alike = parts | "Meet" >> beam.CoGroupByKey() | "Compare" >> beam.ParDo(_Compare(self.threshold))
        settling = beam.ParDo(_Settle()).with_outputs("asked", main="groups")
        groups = alike | "Gather" >> beam.GroupByKey() | "Settle" >> settling
        keepers = {"asked": groups["asked"], "cards": cards} | "Kept" >> _Ask()
        parts = {"documents": numbered, "groups": groups["groups"], "answers": keepers, "cards": cards}
        keeping = beam.ParDo(_Keep()).with_outputs(REPEATS, CLUSTERS, main="documents")
        return in_batches(parts | "Join" >> beam.CoGroupByKey() | "Keep" >> keeping)


class _Sign(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, batch) -> (partition, block); as ``bands``, (number, packed rows); as ``cards``, (number, cards)."""

    def __init__(self, signer: Signer, bands: Any, keep: str) -> None:
        self.how = (signer, bands, keep)

    def process(self, numbered: tuple[int, pa.RecordBatch]) -> Iterator[Any]:
        number, documents = numbered
        signed = sign_cards(documents, *self.how)
        keys = signed.cards.column("key").to_numpy()
        rows = np.flatnonzero(signed.hashes)
        yield beam.pvalue.TaggedOutput("cards", (number, signed.cards))
        places = place(number, rows)
        yield beam.pvalue.TaggedOutput("bands", (number, pack(places, keys[rows], *signed.bands[rows].T)))
        yield from _blocks(signed.hashes[rows], keys[rows], places)


def _blocks(hashes: U64, keys: U64, places: U64) -> list[tuple[int, bytes]]:
    return pack_groups(partition_of(hashes, PARTITIONS), hashes, keys, places)


class _Bands(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, band hashes, which documents repeat a signature) -> (partition, packed block) of the others."""

    def __init__(self, bands: int) -> None:
        self.bands = bands

    def process(self, group: tuple[int, Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
        for places, keys, *bands in (unpack([packed], 2 + self.bands) for packed in group[1]["bands"]):
            left = ~np.isin(places, unpack_duplicates(group[1]["equal"])[0])
            for hashes in bands:
                yield from _blocks(hashes[left], keys[left], places[left])


class _FindPairs(beam.DoFn):  # type: ignore[misc, name-defined]
    """(partition, packed blocks of all units) -> (unit, packed pairs of its items and earlier ones)."""

    def process(self, group: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        yield from candidate_pairs(group[1], ordered=False)


class _AskPairs(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, packed pairs of both kinds) -> (number, packed pairs and kinds); as ``asked``, who asks for what."""

    def process(self, group: tuple[int, Mapping[str, Any]]) -> Iterator[Any]:
        number, found = group
        kinds = [unpack_duplicates(found["equal"]), unpack_pairs(found["near"])]
        later, earlier = (np.concatenate(column) for column in zip(*kinds, strict=True))
        equal = np.repeat(np.array([1, 0], np.uint64), [len(kind[0]) for kind in kinds])
        yield number, pack(later, earlier, equal)
        yield from _questions(number, earlier)


def _questions(number: int, places: U64) -> Iterator[Any]:
    places = np.unique(places)
    units = unit_of(places)
    for other in np.unique(units).tolist():
        yield beam.pvalue.TaggedOutput("asked", (other, (number, places[units == other].tobytes())))


class _Ask(beam.PTransform):  # type: ignore[misc, name-defined]
    """Questions and cards -> (who asked, cards of the places asked for)."""

    def expand(self, parts: Any) -> Any:
        return parts | "Ask" >> beam.CoGroupByKey() | "Answer" >> beam.ParDo(_Answer())


class _Answer(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, who asks for which places, cards) -> (who asked, an `_ANSWERS` batch)."""

    def process(self, group: tuple[int, Mapping[str, Any]]) -> Iterator[tuple[int, pa.RecordBatch]]:
        asked = list(group[1]["asked"])
        if asked:
            (cards,) = group[1]["cards"]
            for number, packed in asked:
                places = np.frombuffer(packed, np.uint64)
                found = cards.take(pa.array(row_of(places)))
                yield number, pa.RecordBatch.from_arrays([pa.array(places), *found.columns], schema=_ANSWERS)


class _Answers:
    """Answers to one batch, looked up by place."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(list(batches), _ANSWERS).sort_by("place").combine_chunks()
        self.cards = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=_ANSWERS)
        self.places = self.cards.column("place").to_numpy()

    def rows(self, places: U64) -> I64:
        """The row of each place."""
        return np.searchsorted(self.places, places)


class _Compare(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, pairs, cards of both sides) -> (0, packed pairs that are alike, with the order of both)."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def process(self, group: tuple[int, Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
        later, earlier, equal = unpack(group[1]["pairs"], 3)
        if not len(later):
            return
        (cards,) = group[1]["cards"]
        answers = _Answers(group[1]["answers"])
        own, other, near = row_of(later), answers.rows(earlier), np.flatnonzero(equal == 0)
        alike = equal == 1
        alike[near] = similarities(cards, own[near], answers.cards, other[near]) >= np.float32(self.threshold)
        columns = [later[alike], earlier[alike]]
        for side, rows in ((cards, own[alike]), (answers.cards, other[alike])):
            columns += [side.column(name).to_numpy()[rows].view(np.uint64) for name in ("order", "key")]
        yield 0, pack(*columns)


class _Settle(beam.DoFn):  # type: ignore[misc, name-defined]
    """(0, packed pairs of all batches) -> (number, packed groups); as ``asked``, who asks for which kept documents."""

    def process(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        later, earlier, *orders = unpack(gathered[1], 6)
        places = places_of(earlier, later)
        found = np.zeros((2, len(places)), np.uint64)
        for side, columns in ((later, orders[:2]), (earlier, orders[2:])):
            found[:, np.searchsorted(places, side)] = columns
        grouped = group(earlier, later, places, (found[0].view(np.int64), found[1], np.zeros(len(places), np.int64)))
        units = unit_of(places)
        for number in np.unique(units).tolist():
            chosen = units == number
            yield number, pack(places[chosen], grouped.kept[chosen], grouped.sizes[chosen].view(np.uint64))
            yield from _questions(number, grouped.kept[chosen])


class _Keep(beam.DoFn):  # type: ignore[misc, name-defined]
    """(number, batch, its groups, cards of kept documents) -> what stays of the batch, its repeats, its clusters."""

    def process(self, joined: tuple[int, Mapping[str, Any]]) -> Iterator[Any]:
        parts = joined[1]
        (documents,), (cards,) = parts["documents"], parts["cards"]
        places, kept_places, sizes = unpack(parts["groups"], 3)
        answers = _Answers(parts["answers"])
        rows, other = row_of(places), answers.rows(kept_places)
        members = Members(
            rows=rows,
            kept=answers.cards.column("document").take(pa.array(other)),
            stays=kept_places == places,
            in_index=np.zeros(len(rows), np.bool_),
            sizes=sizes.view(np.int64),
            similarities=similarities(cards, rows, answers.cards, other),
        )
        kept = keep_documents(documents, members)
        count(kept.tallies)
        if kept.documents.num_rows:
            yield kept.documents
        for name, rows_of in ((REPEATS, kept.repeats), (CLUSTERS, kept.clusters)):
            if rows_of.num_rows:
                yield beam.pvalue.TaggedOutput(name, rows_of)
