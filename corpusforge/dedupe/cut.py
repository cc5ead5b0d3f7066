"""Cut duplicate sentences out of documents by byte offsets, and record where their kept copies are.

Cuts that touch fuse. Every byte that stays is a byte of the original, in its order. Of the white space between two
sentences that become neighbors one run stays: the first that contains a line break, else the first. At the ends of a
document the white space next to a cut is removed with it. A document that lost text and has fewer than
``min_sentences`` sentences (at least one) or ``min_words`` words left is dropped with what is left of it; a document
that lost nothing is never dropped.

Where duplicates form chains (A B C in one document, B C D in another) the kept copy of a span may itself be cut in
favor of a still earlier copy of some of its sentences: each sentence that was cut still stands uncut somewhere, unless
that document was dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import F32, I64, U8, U64, Bools
from corpusforge.dedupe.offset_map import original_offsets, original_stops, with_offset_map
from corpusforge.dedupe.spans import column_spans
from corpusforge.schemas import REPEATS
from corpusforge.text import byte_slices, text_bytes

REASONS = ("span:repeated", "page:few-sentences", "page:few-words")
"""The first is the usual one of cut spans; see ``reason`` of `cut_documents`."""
_STAYS = -1


class Cuts(NamedTuple):
    """Sentences to cut, ascending, and the kept copy of each."""

    rows: I64  # sentence rows
    places: U64  # place (spans.place) of the kept sentence
    documents: pa.StringArray  # DOCUMENTS.id of the kept sentence
    starts: I64  # byte offset of the kept sentence in its document
    similarities: F32 | None = None  # of the spans that they belong to; None: the spans are equal


class Cut(NamedTuple):
    """What is left of a DOCUMENTS batch. ``tallies``, ``statistics``: as in `shards.Tallies` and `shards.Entry`."""

    documents: pa.RecordBatch
    repeats: pa.RecordBatch
    tallies: dict[str, dict[str, int]]
    statistics: dict[str, Any]


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
    is_cut = np.zeros(len(sentences.starts), np.bool_)
    is_cut[cuts.rows] = True
    if not len(cuts.rows):
        return Cut(
            documents,
            pa.RecordBatch.from_pylist([], schema=REPEATS),
            {},
            _statistics(documents, documents, sentences, cuts, 0),
        )
    regions = _regions(sentences, is_cut, data)
    shorter = without(data, ends, *regions)
    cut_counts = np.bincount(sentences.owners[cuts.rows], minlength=documents.num_rows)
    left = np.diff(sentences.offsets) - cut_counts
    verdicts = _verdicts(shorter, cut_counts > 0, left, min_sentences, min_words)
    position = documents.schema.get_field_index("text")
    changed = documents.set_column(position, documents.schema.field("text"), shorter)
    if map_offsets:
        changed = with_offset_map(changed, documents, *regions)
    repeats = _repeats(documents, changed, sentences, cuts, verdicts, method, reason)
    stay = changed.filter(pa.array(verdicts == _STAYS))
    sizes = np.diff(text_bytes(shorter)[1])
    lost = int(ends[-1] - ends[0] - sizes.sum())
    tallies = _tallies(repeats, reason, lost, verdicts, sizes)
    return Cut(stay, repeats, tallies, _statistics(documents, stay, sentences, cuts, int((cut_counts > 0).sum())))


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


def _regions(sentences: _Sentences, is_cut: Bools, data: U8) -> tuple[I64, I64]:
    """Byte regions to cut, two for each run of cut sentences: before and after the white space that stays."""
    starts, stops, offsets, owners = sentences
    rows = np.flatnonzero(is_cut)
    breaks = (np.diff(rows) != 1) | (np.diff(owners[rows]) != 0)
    first, last = rows[np.r_[True, breaks]], rows[np.r_[breaks, True]]
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


def _verdicts(text: pa.StringArray, changed: Bools, left: I64, min_sentences: int, min_words: int) -> I64:
    """`_STAYS` or the index in `REASONS` for each document."""
    verdicts = np.full(len(text), _STAYS)
    if min_words:
        words = np.zeros(len(text), np.int64)
        words[changed] = _count_words(text.filter(pa.array(changed)))
        verdicts[changed & (words < min_words)] = 2
    verdicts[changed & (left < max(1, min_sentences))] = 1
    return verdicts


def _count_words(text: pa.StringArray) -> I64:
    """Words as `str.split` counts them; 1 for a text without any, which has no sentence left and is dropped anyway."""
    words: I64 = pc.list_value_length(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(text))).to_numpy()
    return words


def _repeats(
    documents: pa.RecordBatch,
    changed: pa.RecordBatch,
    sentences: _Sentences,
    cuts: Cuts,
    verdicts: I64,
    method: str,
    reason: str,
) -> pa.RecordBatch:
    """REPEATS rows: runs of cut sentences whose copies are consecutive too, then the dropped pages."""
    data, ends = text_bytes(documents.column("text"))
    owners = sentences.owners[cuts.rows]
    breaks = (np.diff(cuts.rows) != 1) | (np.diff(owners) != 0) | (np.diff(cuts.starts) <= 0)
    breaks |= cuts.places[1:] != cuts.places[:-1] + np.uint64(1)
    breaks |= pc.not_equal(cuts.documents[1:], cuts.documents[:-1]).to_numpy(zero_copy_only=False)
    first, last = np.flatnonzero(np.r_[True, breaks]), np.flatnonzero(np.r_[breaks, True])
    starts, stops = sentences.starts[cuts.rows[first]], sentences.stops[cuts.rows[last]]
    pages = np.flatnonzero(verdicts != _STAYS)
    inside = ends[owners[first]]
    nothing = pa.nulls(len(pages))
    rows = np.r_[owners[first], pages]
    reasons = np.r_[np.zeros(len(first), np.int64), verdicts[pages]].astype(np.int16)
    columns = [
        documents.column("id").take(pa.array(rows)),
        pa.DictionaryArray.from_arrays(pa.array(reasons), pa.array([reason, *REASONS[1:]])),
        pa.array(np.r_[original_offsets(documents, owners[first], starts - inside), np.zeros(len(pages), np.int64)]),
        pa.array(original_stops(documents, rows, np.r_[stops - inside, np.diff(ends)[pages]])),
        pa.concat_arrays([byte_slices(data, starts, stops), changed.column("text").take(pa.array(pages))]),
        pa.concat_arrays([cuts.documents.take(pa.array(first)), nothing.cast(pa.string())]),
        pa.concat_arrays([pa.array(cuts.starts[first]), nothing.cast(pa.int64())]),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int16)), pa.array([method])),
        pa.concat_arrays([_similarities(cuts, first), nothing.cast(pa.float32())]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REPEATS).take(pa.array(np.argsort(rows, kind="stable")))


def _similarities(cuts: Cuts, first: I64) -> pa.FloatArray:
    """The smallest similarity of each run of cut sentences."""
    if cuts.similarities is None:
        return pa.nulls(len(first), pa.float32())
    return pa.array(np.minimum.reduceat(cuts.similarities, first) if len(first) else cuts.similarities[:0])


def _tallies(repeats: pa.RecordBatch, reason: str, lost: int, verdicts: I64, sizes: I64) -> dict[str, dict[str, int]]:
    """Bytes of spans include the white space cut with them: input = output + all tallies."""
    pages = int((verdicts != _STAYS).sum())
    tallies = {reason: {"rows": repeats.num_rows - pages, "bytes": lost}}
    for number in (1, 2):
        dropped = verdicts == number
        if dropped.any():
            tallies[REASONS[number]] = {"rows": int(dropped.sum()), "bytes": int(sizes[dropped].sum())}
    return tallies


def _statistics(
    documents: pa.RecordBatch, stay: pa.RecordBatch, sentences: _Sentences, cuts: Cuts, changed: int
) -> dict[str, Any]:
    before, after = text_bytes(documents.column("text"))[1], text_bytes(stay.column("text"))[1]
    return {
        "documents_in": documents.num_rows,
        "documents_out": stay.num_rows,
        "documents_changed": changed,
        "text_bytes_in": int(before[-1] - before[0]),
        "text_bytes_out": int(after[-1] - after[0]),
        "sentences": len(sentences.starts),
        "sentences_cut": len(cuts.rows),
    }
