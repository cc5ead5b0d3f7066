"""The transforms `DedupeSpans` and `DedupeDocuments`: the methods of the stage `dedupe` for pipelines of your own.

A pipeline cannot read its input twice, as the stage does. So batches are numbered, a number and a row are a place
(`corpusforge.dedupe.spans`), and what a batch needs to know of another is asked by number and comes back by one more
shuffle. `DedupeSpans` shuffles the text once, as Arrow, and computes span hashes twice instead of shuffling them with
it. `DedupeDocuments` shuffles shingles too (*cards*). Kept copies are chosen by the content of documents, so the result
is that of the stage, however the documents are divided into batches.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from corpusforge import errors
from corpusforge.arrays import F32, I64, U64, offsets_of, ranges
from corpusforge.beam.io import in_batches
from corpusforge.beam.sdk import as_itself, beam, count
from corpusforge.dedupe import locate
from corpusforge.dedupe.cut import Cuts, cut_documents, cut_sentences
from corpusforge.dedupe.exact_spans import PARTITIONS, pack_spans
from corpusforge.dedupe.keep import Members, group, keep_documents, keep_order, places_of
from corpusforge.dedupe.lsh import Bands, bands_for, candidate_pairs, unpack_pairs
from corpusforge.dedupe.minhash import Sets, Signer, jaccard
from corpusforge.dedupe.normalize import whole_documents
from corpusforge.dedupe.signed_units import sign_whole
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
    unpack,
    unpack_duplicates,
)
from corpusforge.seeds import document_keys

REPEATS = "repeats"
CLUSTERS = "clusters"
"""Tags of the other outputs."""

CARDS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("order", pa.int64(), nullable=False),  # keep.keep_order
        pa.field("key", pa.uint64(), nullable=False),  # seeds.document_keys
        pa.field("shingles", pa.list_(pa.uint32()), nullable=False),  # hashes; none: the document has no words
    ]
)
"""What other batches need of a document to compare it, one row per document."""

Group = tuple[int, Mapping[str, Any]]
"""What `CoGroupByKey` yields: the number of a batch, and its values of each input by the input's name."""


def _renamed(keep: str, survivor: str | None) -> str:
    """The argument ``keep`` of a transform, or its old name ``survivor`` with a warning, for one release."""
    if survivor is None:
        return keep
    warnings.warn("the parameter survivor was renamed: use keep", DeprecationWarning, stacklevel=3)
    return survivor


class DedupeSpans(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches without duplicate spans; what was cut is the output ``repeats`` (REPEATS batches).

    Document ids must be unique (as `ReadDocuments` makes them).

        batches -> numbered by content                        one 64-bit mark a batch is gathered
        span hashes -> group by hash -> duplicates            24 bytes a span
        duplicates -> asked of the batches with the copies    ids and byte offsets
        batches + cuts + answers -> documents, repeats        the text, once

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
        self.keep = _renamed(keep, survivor)
        self.hashing = {"span_sentences": span_sentences, "fold_numbers": fold_numbers, "keep": self.keep}
        self.floors = {"min_sentences": min_sentences, "min_words": min_words}

    def expand(self, documents: Any) -> Any:
        ordered = self.keep != "hash"
        numbered = documents | "Batches" >> NumberBatches("DedupeSpans")
        hashed = numbered | "Hash" >> beam.FlatMap(_hash, self.hashing).with_outputs("spans", main="blocks")
        duplicates = hashed["blocks"] | "ByHash" >> beam.GroupByKey() | "FindDuplicates" >> beam.FlatMap(_find, ordered)
        sentences = beam.FlatMap(_sentences, self.hashing["span_sentences"]).with_outputs("asked", main="cuts")
        cuts = duplicates | "ByBatch" >> beam.GroupByKey() | "Sentences" >> sentences
        asking = {"asked": cuts["asked"], "spans": hashed["spans"]}
        answers = asking | "Ask" >> beam.CoGroupByKey() | "Locate" >> beam.FlatMap(_locate)
        parts = {"documents": numbered, "cuts": cuts["cuts"], "answers": answers}
        cutting = beam.FlatMap(_cut, self.hashing, self.floors).with_outputs(REPEATS, main="documents")
        return in_batches(parts | "Join" >> beam.CoGroupByKey() | "Cut" >> cutting)


def _hash(numbered: tuple[int, pa.RecordBatch], hashing: Mapping[str, Any]) -> Iterator[Any]:
    """(partition, block of span hashes); as ``spans``, (number, where the sentences are)."""
    number, documents = numbered
    rows = hash_documents(documents, **hashing)
    yield beam.pvalue.TaggedOutput("spans", (number, rows.select(["document", "starts", "origins"])))
    yield from pack_spans([rows], number, PARTITIONS, ordered=hashing["keep"] != "hash")


def _find(gathered: tuple[int, Iterable[bytes]], ordered: bool) -> list[tuple[int, bytes]]:
    """(number, packed places of dropped spans and of their kept copies)."""
    return find_duplicates(gathered[1], ordered=ordered)


def _sentences(gathered: tuple[int, Iterable[bytes]], span_sentences: int) -> Iterator[Any]:
    """(number, packed rows to cut and places of their copies); as ``asked``, questions about these places."""
    number, blocks = gathered
    dropped, kept = unpack_duplicates(blocks)
    rows, places = cut_sentences(row_of(dropped), kept, span_sentences)
    yield number, pack(rows, places)
    yield from _asked(number, places)


def _asked(number: int, places: U64) -> Iterator[Any]:
    """As ``asked``, the questions of a batch about these places."""
    yield from (beam.pvalue.TaggedOutput("asked", question) for question in locate.questions(number, places))


def _locate(gathered: Group) -> Iterator[tuple[int, bytes]]:
    """(number of the batch that asked, where the sentences are)."""
    number, parts = gathered
    if asked := list(parts["asked"]):
        spans = locate.split_parts(parts["spans"])
        yield from locate.answer(functools.partial(locate.locate_in, parts_of=lambda _: spans), number, asked)


def _cut(gathered: Group, hashing: Mapping[str, Any], floors: Mapping[str, Any]) -> Iterator[Any]:
    """What stays of a batch; as ``repeats``, what was cut."""
    parts = gathered[1]
    (documents,) = parts["documents"]
    rows, places = unpack_duplicates(parts["cuts"])
    cuts = Cuts(rows.astype(np.int64), places, *locate.look_up(places, locate.merge_answers(parts["answers"])))
    cut = cut_documents(documents, hash_documents(documents, **hashing), cuts, **floors)
    count(cut.tallies)
    yield from _outputs(documents=cut.documents, repeats=cut.repeats)


def _outputs(documents: pa.RecordBatch, **others: pa.RecordBatch) -> Iterator[Any]:
    """The batches that have rows; all but the first under their names."""
    if documents.num_rows:
        yield documents
    yield from (beam.pvalue.TaggedOutput(name, rows) for name, rows in others.items() if rows.num_rows)


class DedupeDocuments(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches with one document of each group of similar ones; the dropped are ``repeats``, the groups are
    ``clusters``.

    Document ids must be unique (as `ReadDocuments` makes them).

        batches -> numbered by content -> cards (shingles), hashes of the shingles, band hashes
        hashes of the shingles -> group -> documents of equal shingles
        band hashes of the others -> group -> pairs worth comparing
        pairs + cards of the other batches -> similar pairs, all to one worker (about 50 bytes each) -> groups
        batches + groups + cards of kept copies -> documents, repeats, clusters

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
        self.threshold, self.keep = threshold, _renamed(keep, survivor)
        self.signer = Signer(permutations, shingle_words, fold_numbers=fold_numbers)

    def expand(self, documents: Any) -> Any:
        numbered = documents | "Batches" >> NumberBatches("DedupeDocuments")
        bands = bands_for(self.threshold, self.signer.permutations)
        signing = beam.FlatMap(_sign, self.signer, bands, self.keep).with_outputs("cards", "bands", main="blocks")
        signed = numbered | "Sign" >> signing
        cards = signed["cards"]
        equal = signed["blocks"] | "ByHash" >> beam.GroupByKey() | "FindEqual" >> beam.FlatMap(_find, False)
        banded = {"bands": signed["bands"], "equal": equal} | "Left" >> beam.CoGroupByKey()
        blocks = banded | "Bands" >> beam.FlatMap(_band_blocks, bands.bands)
        near = blocks | "ByBand" >> beam.GroupByKey() | "FindPairs" >> beam.FlatMap(_find_pairs)
        asking = beam.FlatMap(_merge_pairs).with_outputs("asked", main="pairs")
        pairs = {"equal": equal, "near": near} | "Pairs" >> beam.CoGroupByKey() | "AskPairs" >> asking
        earlier = {"asked": pairs["asked"], "cards": cards} | "Earlier" >> _Ask()
        parts = {"pairs": pairs["pairs"], "answers": earlier, "cards": cards}
        similar = parts | "Meet" >> beam.CoGroupByKey() | "Compare" >> beam.FlatMap(_compare, self.threshold)
        settling = beam.FlatMap(_settle).with_outputs("asked", main="groups")
        groups = similar | "Gather" >> beam.GroupByKey() | "Settle" >> settling
        kept = {"asked": groups["asked"], "cards": cards} | "Kept" >> _Ask()
        parts = {"documents": numbered, "groups": groups["groups"], "answers": kept, "cards": cards}
        keeping = beam.FlatMap(_keep).with_outputs(REPEATS, CLUSTERS, main="documents")
        return in_batches(parts | "Join" >> beam.CoGroupByKey() | "Keep" >> keeping)


def _sign(numbered: tuple[int, pa.RecordBatch], signer: Signer, bands: Bands, keep: str) -> Iterator[Any]:
    """(partition, block of hashes); as ``bands``, (number, packed band hashes); as ``cards``, (number, cards)."""
    number, documents = numbered
    sets, _, band_hashes = sign_whole(whole_documents(documents.column("text")), signer, bands)
    cards, hashes = _cards(documents, sets, keep), sets.fingerprints()
    rows = np.flatnonzero(hashes)
    keys, places = cards.column("key").to_numpy()[rows], place(number, rows)
    yield beam.pvalue.TaggedOutput("cards", (number, cards))
    yield beam.pvalue.TaggedOutput("bands", (number, pack(places, keys, *band_hashes[rows].T)))
    yield from _blocks(hashes[rows], keys, places)


def _cards(documents: pa.RecordBatch, sets: Sets, keep: str) -> pa.RecordBatch:
    sizes = sets.stops - sets.starts
    offsets, shingles = offsets_of(sizes).astype(np.int32), sets.hashes[ranges(sets.starts, sizes)]
    columns = [
        documents.column("id"),
        pa.array(keep_order(documents, keep)),
        pa.array(document_keys(documents.column("id").to_pylist())),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(shingles)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CARDS)


def _similarities(left: pa.RecordBatch, rows: I64, right: pa.RecordBatch, other_rows: I64) -> F32:
    """The Jaccard similarity of these rows of two CARDS batches, pair by pair; all have words."""
    sides = []
    for cards, chosen in ((left, rows), (right, other_rows)):
        hashes, offsets = column_spans(cards.column("shingles"))
        sides.append(Sets(hashes, offsets[chosen], offsets[chosen + 1]))
    return jaccard(*sides)


def _blocks(hashes: U64, keys: U64, places: U64) -> list[tuple[int, bytes]]:
    return pack_groups(partition_of(hashes, PARTITIONS), hashes, keys, places)


def _band_blocks(gathered: Group, bands: int) -> Iterator[tuple[int, bytes]]:
    """(partition, block of band hashes), without documents that have the shingles of an earlier one."""
    dropped = unpack_duplicates(gathered[1]["equal"])[0]
    for places, keys, *columns in (unpack([packed], 2 + bands) for packed in gathered[1]["bands"]):
        left = ~np.isin(places, dropped)
        for hashes in columns:
            yield from _blocks(hashes[left], keys[left], places[left])


def _find_pairs(gathered: tuple[int, Iterable[bytes]]) -> list[tuple[int, bytes]]:
    """(number, packed pairs of its documents and earlier ones)."""
    return candidate_pairs(gathered[1])


def _merge_pairs(gathered: Group) -> Iterator[Any]:
    """(number, packed pairs and whether they are equal); as ``asked``, questions about the earlier documents."""
    number, parts = gathered
    kinds = [unpack_duplicates(parts["equal"]), unpack_pairs(parts["near"])]
    later, earlier = (np.concatenate(column) for column in zip(*kinds, strict=True))
    equal = np.repeat(np.array([1, 0], np.uint64), [len(kind[0]) for kind in kinds])
    yield number, pack(later, earlier, equal)
    yield from _asked(number, earlier)


class _Ask(beam.PTransform):  # type: ignore[misc, name-defined]
    """Questions and cards -> (number of the batch that asked, cards of the places in question)."""

    def expand(self, parts: Any) -> Any:
        return parts | "Ask" >> beam.CoGroupByKey() | "Answer" >> beam.FlatMap(_answer)


def _answer(gathered: Group) -> Iterator[tuple[int, pa.RecordBatch]]:
    if asked := list(gathered[1]["asked"]):
        (cards,) = gathered[1]["cards"]
        for number, places in locate.read_questions(asked):
            columns = [pa.array(places), *cards.take(pa.array(row_of(places))).columns]
            yield number, pa.RecordBatch.from_arrays(columns, schema=_ANSWERS)


_ANSWERS = CARDS.insert(0, pa.field("place", pa.uint64()))


class _Answers:
    """The answers to one batch, looked up by place."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(list(batches), _ANSWERS).sort_by("place").combine_chunks()
        self.cards = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=_ANSWERS)
        self.places = self.cards.column("place").to_numpy()

    def rows(self, places: U64) -> I64:
        """The row of each place."""
        return np.searchsorted(self.places, places)


def _compare(gathered: Group, threshold: float) -> Iterator[tuple[int, bytes]]:
    """(0, packed pairs that are similar, with the order of both)."""
    later, earlier, equal = unpack(gathered[1]["pairs"], 3)
    if not len(later):
        return
    (cards,) = gathered[1]["cards"]
    answers = _Answers(gathered[1]["answers"])
    own, other, near = row_of(later), answers.rows(earlier), np.flatnonzero(equal == 0)
    similar = equal == 1
    similar[near] = _similarities(cards, own[near], answers.cards, other[near]) >= np.float32(threshold)
    columns = [later[similar], earlier[similar]]
    for side, rows in ((cards, own[similar]), (answers.cards, other[similar])):
        columns += [side.column(name).to_numpy()[rows].view(np.uint64) for name in ("order", "key")]
    yield 0, pack(*columns)


def _settle(gathered: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
    """(number, packed groups of its documents); as ``asked``, questions about the kept copies."""
    later, earlier, *orders = unpack(gathered[1], 6)
    places = places_of(earlier, later)
    order = np.zeros((2, len(places)), np.uint64)
    for side, columns in ((later, orders[:2]), (earlier, orders[2:])):
        order[:, np.searchsorted(places, side)] = columns
    grouped = group(earlier, later, places, (order[0].view(np.int64), order[1], np.zeros(len(places), np.int64)))
    for number, block in pack_groups(unit_of(places), places, grouped.kept, grouped.sizes):
        yield number, block
        yield from _asked(number, unpack([block], 3)[1])


def _keep(gathered: Group) -> Iterator[Any]:
    """What stays of a batch; as ``repeats``, the dropped documents; as ``clusters``, its groups."""
    parts = gathered[1]
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
        similarities=_similarities(cards, rows, answers.cards, other),
    )
    kept = keep_documents(documents, members)
    count(kept.tallies)
    yield from _outputs(documents=kept.documents, repeats=kept.repeats, clusters=kept.clusters)


class NumberBatches(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches -> (number, batch), without empty ones.

    A batch is named by the ids in it and numbered by the rank of that name among all, so that a bundle that a runner
    repeats gets the same numbers. ``user``: the transform that needs them, for its errors.
    """

    def __init__(self, user: str) -> None:
        super().__init__()
        self.user = user

    def expand(self, documents: Any) -> Any:
        marks = documents | "Mark" >> beam.FlatMap(_mark)
        gathered = (
            marks | "Gather" >> beam.CombineGlobally(beam.combiners.ToListCombineFn()) | "Sort" >> beam.Map(_sort)
        )
        return documents | "Number" >> beam.FlatMap(_number, beam.pvalue.AsSingleton(gathered), self.user)


def mark_of(documents: pa.RecordBatch) -> int:
    """64 bits that name a batch by the ids in it."""
    return xxhash.xxh3_64_intdigest("\n".join(documents.column("id").to_pylist()).encode())


def _mark(documents: pa.RecordBatch) -> list[int]:
    return [mark_of(documents)] if documents.num_rows else []


def _sort(marks: Iterable[int]) -> bytes:
    return np.sort(np.array(list(marks), "<u8")).tobytes()


def _number(documents: pa.RecordBatch, packed: bytes, user: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    if not documents.num_rows:
        return
    marks, mark = np.frombuffer(packed, "<u8"), np.uint64(mark_of(documents))
    first, end = np.searchsorted(marks, mark, "left"), np.searchsorted(marks, mark, "right")
    if end - first != 1:
        with as_itself():
            what = f"the documents from id {documents.column('id')[0].as_py()} on come twice"
            raise errors.StageMismatch(user, what, "give every document once")
    yield int(first), documents
