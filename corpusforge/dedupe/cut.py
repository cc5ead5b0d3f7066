"""Cut duplicate sentences out of documents by byte offsets, and record where their kept copies are.

Cuts that touch fuse. Every byte that stays is a byte of the original, in its order. Of the white space between two
sentences that become neighbors one run stays: the first that contains a line break, else the first. At the ends of a
document the white space next to a cut is removed with it. A document that lost text and has fewer than
``min_sentences`` sentences (at least one) or ``min_words`` words left is dropped with what is left of it; a document
that lost nothing is never dropped.

Where duplicates form chains (A B C in one document, B C D in another) the kept copy of a span may itself be cut in
favor of a still earlier copy of some of its sentences: each sentence that was cut is still uncut somewhere, unless that
document was dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import F32, I64, U8, U64, Bools
from corpusforge.dedupe.offset_map import original_offsets, original_stops, with_offset_map
from corpusforge.dedupe.spans import column_spans
from corpusforge.schemas import REPEATS
from corpusforge.shards import Tallies
from corpusforge.text import byte_slices, text_bytes

REASONS = ("span:repeated", "page:few-sentences", "page:few-words")
"""The first is the usual one of cut spans; see ``reason`` of `cut_documents`."""

STAYS = -1
"""The verdict on a document that is not dropped; others are indices of a method's reasons."""


class Cuts(NamedTuple):
    """Sentences to cut, ascending, and the kept copy of each."""

    rows: I64  # sentence rows
    places: U64  # place (spans.place) of the kept sentence
    documents: pa.StringArray  # DOCUMENTS.id of the kept sentence
    starts: I64  # byte offset of the kept sentence in its document
    similarities: F32 | None = None  # of the spans that they belong to; None: the spans are equal


class Cut(NamedTuple):
    """What is left of a DOCUMENTS batch. ``statistics``: as in `shards.Entry`."""

    documents: pa.RecordBatch
    repeats: pa.RecordBatch
    tallies: Tallies
    statistics: dict[str, Any]


class Runs(NamedTuple):
    """Runs of cut sentences (or lines) of one document whose copies are consecutive too: each is one row of REPEATS."""

    first: I64  # index of its first sentence in `Cuts`
    owners: I64  # its document
    starts: I64  # in the buffer of the column
    stops: I64
    texts: pa.StringArray


class Audit(NamedTuple):
    """What is recorded of a cut. ``reasons``: first that of cut rows, then those of dropped documents."""

    method: str
    reasons: Sequence[str]
    rows: int  # counted under the first reason
    changed: int  # documents that lost text


class _Sentences(NamedTuple):
    starts: I64  # in the buffer of the column
    stops: I64
    offsets: I64  # document i owns sentences offsets[i]:offsets[i + 1]
    owners: I64  # the document of each sentence


def cut_sentences(dropped: I64, kept: U64, length: int) -> tuple[I64, U64]:
    """The sentence rows of dropped spans of ``length`` sentences, each once, and the place of each row's kept copy.

    ``dropped``: rows of the spans' first sentences, ascending; ``kept``: places of the kept copies' first sentences.

    >>> rows, kept = cut_sentences(np.array([4, 5]), np.array([100, 101], np.uint64), 3)
    >>> rows.tolist(), kept.tolist()
    ([4, 5, 6, 7], [100, 101, 102, 103])
    """
    rows = np.unique((dropped[:, None] + np.arange(length)).ravel())
    span = np.searchsorted(dropped, rows, "right") - 1
    return rows, kept[span] + (rows - dropped[span]).astype(np.uint64)


def cut_documents(
    documents: pa.RecordBatch,
    spans: pa.RecordBatch,
    cuts: Cuts,
    *,
    min_sentences: int = 3,
    min_words: int = 0,
    method: str = "exact-spans",
    reason: str = REASONS[0],
    map_offsets: bool = False,
) -> Cut:
    """Cut sentences out of a batch. ``spans``: its SPANS rows; ``cuts.rows`` count from its first sentence.

    ``reason``: of the spans that are cut. ``map_offsets``: add or update the column of `offset_map`.
    """
    data, ends = text_bytes(documents.column("text"))
    sentences = _sentences(spans, ends)
    counts = {"sentences": len(sentences.starts), "sentences_cut": len(cuts.rows)}
    if not len(cuts.rows):
        repeats = pa.RecordBatch.from_pylist([], schema=REPEATS)
        return Cut(documents, repeats, {}, {**_statistics(documents, documents, 0), **counts})
    regions = _regions(sentences, cuts.rows, data)
    shorter = without(data, ends, *regions)
    lost = np.bincount(sentences.owners[cuts.rows], minlength=documents.num_rows)
    left = np.diff(sentences.offsets) - lost
    verdicts = np.full(documents.num_rows, STAYS)
    if min_words:
        verdicts[few_words(shorter, lost > 0, min_words)] = 2
    verdicts[(lost > 0) & (left < max(1, min_sentences))] = 1
    changed = with_text(documents, shorter, regions if map_offsets else None)
    runs = runs_of(cuts, sentences.starts, sentences.stops, sentences.owners, data)
    audit = Audit(method, (reason, *REASONS[1:]), len(runs.first), int((lost > 0).sum()))
    cut = cut_of(documents, changed, cuts, runs, verdicts, audit)
    return cut._replace(statistics={**cut.statistics, **counts})


def _sentences(spans: pa.RecordBatch, ends: I64) -> _Sentences:
    starts, offsets = column_spans(spans.column("starts"))
    stops, _ = column_spans(spans.column("stops"))
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    inside = ends[owners]
    return _Sentences(starts + inside, stops + inside, offsets, owners)


def without(data: U8, offsets: I64, starts: I64, stops: I64) -> pa.StringArray:
    """The texts ``data[offsets[i]:offsets[i + 1]]`` without the regions ``starts[j]:stops[j]``."""
    outside = byte_slices(data, np.concatenate([offsets[:1], stops]), np.concatenate([starts, offsets[-1:]]))
    removed = np.concatenate([[0], np.cumsum(stops - starts)])
    left = (offsets - offsets[0] - removed[np.searchsorted(starts, offsets)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(left) - 1, pa.py_buffer(left), outside.buffers()[2])


def with_text(documents: pa.RecordBatch, text: pa.StringArray, regions: tuple[I64, I64] | None) -> pa.RecordBatch:
    """Documents with their text without ``regions``; with these, also with their map of offsets."""
    position = documents.schema.get_field_index("text")
    changed = documents.set_column(position, documents.schema.field("text"), text)
    return with_offset_map(changed, documents, *regions) if regions else changed


def run_edges(rows: I64, owners: I64) -> tuple[I64, I64]:
    """The first and the last index of each run of consecutive rows of one document. ``owners``: of all rows.

    >>> [edge.tolist() for edge in run_edges(np.array([0, 1, 2, 4]), np.array([7, 7, 8, 8, 8]))]
    [[0, 2, 3], [1, 2, 3]]
    """
    breaks = (np.diff(rows) != 1) | (np.diff(owners[rows]) != 0)
    return _edges(breaks, len(rows))


def _edges(breaks: Bools, count: int) -> tuple[I64, I64]:
    edges = np.r_[True, breaks, True] if count else np.zeros(1, np.bool_)
    return np.flatnonzero(edges[:-1]), np.flatnonzero(edges[1:])


def _regions(sentences: _Sentences, rows: I64, data: U8) -> tuple[I64, I64]:
    """Byte regions to cut, two for each run of cut sentences: before and after the white space that stays."""
    starts, stops, offsets, owners = sentences
    first, last = (rows[edge] for edge in run_edges(rows, owners))
    following = np.minimum(last + 1, len(starts) - 1)
    has_before, has_after = first > offsets[owners[first]], last + 1 < offsets[owners[first] + 1]
    begin = np.where(has_before, stops[first - 1], starts[first])
    end = np.where(has_after, starts[following], stops[last])
    # Gap k lies before sentence k; between two new neighbors the gap that stays is one of first to last + 1.
    gap = _next_line_break(sentences, data)[first]
    gap = np.where(gap <= last + 1, gap, first)
    both = has_before & has_after
    gap_start = np.where(both, stops[gap - 1], begin)
    gap_stop = np.where(both, starts[np.minimum(gap, len(starts) - 1)], begin)
    return np.column_stack([begin, gap_stop]).ravel(), np.column_stack([gap_start, end]).ravel()


def _next_line_break(sentences: _Sentences, data: U8) -> I64:
    """For each sentence row the first row from there on with a line break in the white space before it."""
    starts, stops = sentences.starts, sentences.stops
    lines = np.flatnonzero(data[starts[0] : stops[-1]] == ord("\n")) + starts[0]
    count = len(starts)
    has_break = np.zeros(count, np.bool_)
    has_break[1:] = np.searchsorted(lines, stops[:-1]) < np.searchsorted(lines, starts[1:])
    rows = np.where(has_break, np.arange(count), 2 * count)
    return np.minimum.accumulate(rows[::-1])[::-1]


def few_words(text: pa.StringArray, changed: Bools, min_words: int) -> I64:
    """The rows that changed and have fewer words left, as `str.split` counts them; no words count as one."""
    words = pc.list_value_length(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(text.filter(pa.array(changed)))))
    return np.asarray(np.flatnonzero(changed)[words.to_numpy(zero_copy_only=False) < min_words])


def runs_of(cuts: Cuts, starts: I64, stops: I64, owners: I64, data: U8) -> Runs:
    """The runs of the cut rows. ``starts``, ``stops``, ``owners``: of all rows, in the buffer ``data``."""
    breaks = (np.diff(cuts.rows) != 1) | (np.diff(owners[cuts.rows]) != 0) | (np.diff(cuts.starts) <= 0)
    breaks |= cuts.places[1:] != cuts.places[:-1] + np.uint64(1)
    breaks |= pc.not_equal(cuts.documents[1:], cuts.documents[:-1]).to_numpy(zero_copy_only=False)
    first, last = _edges(breaks, len(cuts.rows))
    begin, end = starts[cuts.rows[first]], stops[cuts.rows[last]]
    return Runs(first, owners[cuts.rows[first]], begin, end, byte_slices(data, begin, end))


def cut_of(
    documents: pa.RecordBatch, changed: pa.RecordBatch, cuts: Cuts, runs: Runs, verdicts: I64, audit: Audit
) -> Cut:
    """What stays of a batch, and its audit. ``changed``: all of its documents, with what is left of their text."""
    stay = changed.filter(pa.array(verdicts == STAYS))
    repeats = _repeats(documents, changed, cuts, runs, verdicts, audit)
    return Cut(
        stay, repeats, _tallies(documents, changed, verdicts, audit), _statistics(documents, stay, audit.changed)
    )


def _repeats(
    documents: pa.RecordBatch, changed: pa.RecordBatch, cuts: Cuts, runs: Runs, verdicts: I64, audit: Audit
) -> pa.RecordBatch:
    """REPEATS rows: the runs, then what was left of dropped documents."""
    _, ends = text_bytes(documents.column("text"))
    pages = np.flatnonzero(verdicts != STAYS)
    inside, nothing = ends[runs.owners], pa.nulls(len(pages))
    rows = np.r_[runs.owners, pages]
    reason = np.r_[np.zeros(len(runs.first), np.int64), verdicts[pages]].astype(np.int16)
    starts = original_offsets(documents, runs.owners, runs.starts - inside)
    columns = [
        documents.column("id").take(pa.array(rows)),
        pa.DictionaryArray.from_arrays(pa.array(reason), pa.array(audit.reasons)),
        pa.array(np.r_[starts, np.zeros(len(pages), np.int64)]),
        pa.array(original_stops(documents, rows, np.r_[runs.stops - inside, np.diff(ends)[pages]])),
        pa.concat_arrays([runs.texts, changed.column("text").take(pa.array(pages))]),
        pa.concat_arrays([cuts.documents.take(pa.array(runs.first)), nothing.cast(pa.string())]),
        pa.concat_arrays([pa.array(cuts.starts[runs.first]), nothing.cast(pa.int64())]),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int16)), pa.array([audit.method])),
        pa.concat_arrays([_similarities(cuts, runs.first), nothing.cast(pa.float32())]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REPEATS).take(pa.array(np.argsort(rows, kind="stable")))


def _similarities(cuts: Cuts, first: I64) -> pa.FloatArray:
    """The smallest similarity of each run of cut sentences."""
    if cuts.similarities is None:
        return pa.nulls(len(first), pa.float32())
    return pa.array(np.minimum.reduceat(cuts.similarities, first) if len(first) else cuts.similarities[:0])


def _tallies(documents: pa.RecordBatch, changed: pa.RecordBatch, verdicts: I64, audit: Audit) -> Tallies:
    """The bytes of what was cut include white space: input = output + all tallies."""
    before, sizes = text_bytes(documents.column("text"))[1], np.diff(text_bytes(changed.column("text"))[1])
    lost = {"rows": audit.rows, "bytes": int(before[-1] - before[0] - sizes.sum())}
    tallies = {audit.reasons[0]: lost} if audit.rows else {}
    for number, reason in enumerate(audit.reasons[1:], 1):
        dropped = verdicts == number
        if dropped.any():
            tallies[reason] = {"rows": int(dropped.sum()), "bytes": int(sizes[dropped].sum())}
    return tallies


def _statistics(documents: pa.RecordBatch, stay: pa.RecordBatch, changed: int) -> dict[str, Any]:
    before, after = text_bytes(documents.column("text"))[1], text_bytes(stay.column("text"))[1]
    return {
        "documents_in": documents.num_rows,
        "documents_out": stay.num_rows,
        "documents_changed": changed,
        "text_bytes_in": int(before[-1] - before[0]),
        "text_bytes_out": int(after[-1] - after[0]),
    }
