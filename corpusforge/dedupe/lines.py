"""The method `lines`: cut lines that occur more than once, as C4 does.

Definition (tensorflow-datasets 4.9.10, text/c4_utils.py, `remove_duplicate_text`): text is split at line feeds alone,
and a blank line is a line. Lines are compared without the white space at their ends and in Python's lower case. A line
stays in the page with the smallest MD5 of its URL, once. A page with nothing left is dropped, and so is one with too
few sentences left, even if it lost no line. Documents without a URL are ordered by the MD5 of their id; documents of
one URL, which the original forbids, by document key.

The units and the graph are those of `exact_spans`, with lines instead of spans.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge.arrays import I64, U64, Bools
from corpusforge.dedupe.cut import (
    STAYS,
    Audit,
    Cut,
    Cuts,
    Runs,
    cut_of,
    few_words,
    run_edges,
    runs_of,
    with_text,
    without,
)
from corpusforge.dedupe.exact_spans import CutWork, HashWork, cut_duplicates
from corpusforge.dedupe.job import Job
from corpusforge.dedupe.spans import SPANS, column_spans, span_rows
from corpusforge.sentences.counter import SentenceCounter
from corpusforge.text import byte_slices, text_bytes
from corpusforge.units import UnitResult

METHOD = "lines"
REASONS = ("line:repeated", "page:no-lines", "page:few-sentences", "page:few-words")

GLANCE = 1000
"""Characters that contain enough sentences of nearly every page (own measurement)."""

Enough = Callable[[pa.StringArray], Bools]
"""Whether each text has enough sentences."""


def run(job: Job) -> list[UnitResult]:
    """Write ``documents/`` and ``repeats/`` of every unit."""
    counter = SentenceCounter(job.settings.sentences)
    counter.check()
    cutting = CutLinesWork.of(job, 1, counter=counter, counted="lines")
    return cut_duplicates(job, HashLinesWork(job.scratch, 1, keep=job.settings.keep), cutting, ordered=True)


def hash_lines(documents: pa.RecordBatch, *, keep: str = "hash") -> pa.RecordBatch:
    """The lines of a batch as SPANS rows, each line a span of its own."""
    text = documents.column("text")
    data, ends = text_bytes(text)
    starts, stops, offsets = line_bounds(text)
    inside = np.repeat(ends[:-1], np.diff(offsets))
    hashes = np.maximum(line_hashes(byte_slices(data, starts, stops)), np.uint64(1))
    rows = span_rows(documents, offsets, starts - inside, stops - inside, hashes, keep)
    if keep != "hash":
        return rows
    return rows.set_column(SPANS.get_field_index("order"), SPANS.field("order"), pa.array(url_order(documents)))


def line_bounds(text: pa.StringArray) -> tuple[I64, I64, I64]:
    """Starts and stops of all lines in the column's buffer; document i owns lines ``offsets[i]:offsets[i + 1]``.

    >>> starts, stops, offsets = line_bounds(pa.array(["a\\n\\nb", "", "c\\n"]))
    >>> starts.tolist(), stops.tolist(), offsets.tolist()
    ([0, 2, 3, 4, 4, 6], [1, 2, 4, 4, 5, 6], [0, 3, 4, 6])
    """
    data, ends = text_bytes(text)
    feeds = np.flatnonzero(data[ends[0] : ends[-1]] == ord("\n")) + ends[0]
    offsets = np.searchsorted(feeds, ends) + np.arange(len(ends))  # each document has one line more than feeds
    starts, stops = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    is_first, is_last = np.zeros(len(starts), np.bool_), np.zeros(len(starts), np.bool_)
    is_first[offsets[:-1]] = is_last[offsets[1:] - 1] = True
    starts[is_first], starts[~is_first] = ends[:-1], feeds + 1
    stops[is_last], stops[~is_last] = ends[1:], feeds
    return starts, stops, offsets


def line_hashes(lines: pa.StringArray) -> U64:
    """The xxh3-64 of every line, trimmed and in lower case.

    >>> hashes = line_hashes(pa.array([" Ab É ", "ab é", "ab"]))
    >>> bool(hashes[0] == hashes[1]), bool(hashes[0] == hashes[2])
    (True, False)
    """
    trimmed = pc.utf8_trim_whitespace(lines)
    is_ascii = pc.string_is_ascii(trimmed).to_numpy(zero_copy_only=False)
    hashes = np.zeros(len(lines), np.uint64)
    plain, offsets = text_bytes(pc.ascii_lower(trimmed.filter(pa.array(is_ascii))))
    digest, view, bounds = xxhash.xxh3_64_intdigest, plain.data, offsets.tolist()
    # Python loops: one C call per line (0.2 us); and Python's own lower case where it is more than a table (final
    # sigma, dotted I), so that lines are equal exactly where they are for C4 (1 us per line that is not ASCII).
    digests = (digest(view[a:b]) for a, b in itertools.pairwise(bounds))
    hashes[is_ascii] = np.fromiter(digests, np.uint64, len(bounds) - 1)
    wide = trimmed.filter(pa.array(~is_ascii)).to_pylist()
    hashes[~is_ascii] = np.fromiter((digest(line.lower().encode()) for line in wide), np.uint64, len(wide))
    return hashes


def url_order(documents: pa.RecordBatch) -> I64:
    """The first 64 bits of the MD5 of each URL, or of the id where there is none, in the order of their hex digits."""
    names = pc.if_else(pc.greater(pc.fill_null(pc.binary_length(documents.column("url")), 0), 0),
                       documents.column("url"), documents.column("id"))  # fmt: skip
    # Python loop: one C call per document (0.5 us) for kilobytes of text.
    digests = b"".join(hashlib.md5(n.encode(), usedforsecurity=False).digest()[:8] for n in names.to_pylist())
    return (np.frombuffer(digests, ">u8").astype(np.uint64) ^ np.uint64(1 << 63)).view(np.int64)


def cut_lines(
    documents: pa.RecordBatch,
    lines: pa.RecordBatch,
    cuts: Cuts,
    *,
    enough: Enough | None,
    min_words: int = 0,
    map_offsets: bool = False,
) -> Cut:
    """Cut lines out of a batch. ``lines``: its rows of `hash_lines`; ``cuts.rows`` count from its first line.

    ``enough`` None: sentences are not counted. ``min_words``: of documents that lost lines.
    """
    data, ends = text_bytes(documents.column("text"))
    inside, offsets = column_spans(lines.column("starts"))
    owners = np.repeat(np.arange(documents.num_rows), np.diff(offsets))
    starts = inside + ends[owners]
    stops = column_spans(lines.column("stops"))[0] + ends[owners]
    regions = _regions(cuts.rows, starts, stops, offsets, owners)
    shorter = without(data, ends, *regions)
    lost = np.bincount(owners[cuts.rows], minlength=documents.num_rows)
    verdicts = _verdicts(shorter, lost > 0, enough, min_words)
    changed = with_text(documents, shorter, regions if map_offsets else None)
    runs = _visible(runs_of(cuts, starts, stops, owners, data))
    audit = Audit(METHOD, REASONS, len(cuts.rows), int((lost > 0).sum()))
    return cut_of(documents, changed, cuts, runs, verdicts, audit)


def _regions(rows: I64, starts: I64, stops: I64, offsets: I64, owners: I64) -> tuple[I64, I64]:
    """Byte regions to cut, one for each run of cut lines, with one line feed each."""
    first, last = (rows[edge] for edge in run_edges(rows, owners))
    owner = owners[first]
    has_before, has_after = first > offsets[owner], last + 1 < offsets[owner + 1]
    return starts[first] - has_before, stops[last] + (~has_before & has_after)


def _verdicts(text: pa.StringArray, changed: Bools, enough: Enough | None, min_words: int) -> I64:
    """`STAYS` or the index in `REASONS` for each document; reasons are checked in that order."""
    verdicts = np.full(len(text), STAYS)
    if min_words:
        verdicts[few_words(text, changed, min_words)] = 3
    if enough is not None:
        verdicts[~enough(text)] = 2
    verdicts[np.diff(text_bytes(text)[1]) == 0] = 1
    return verdicts


def _visible(runs: Runs) -> Runs:
    """Without lines of white space alone: nobody misses them, and there are as many as paragraphs."""
    visible = pc.greater(pc.binary_length(pc.utf8_trim_whitespace(runs.texts)), 0).to_numpy(zero_copy_only=False)
    *columns, texts = runs
    return Runs._make([*(column[visible] for column in columns), texts.filter(pa.array(visible))])


@dataclasses.dataclass(frozen=True)
class HashLinesWork(HashWork):
    """Writes the line hashes of a document shard."""

    def hash(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """SPANS of a batch."""
        return hash_lines(documents, keep=self.keep)


@dataclasses.dataclass(frozen=True)
class CutLinesWork(CutWork):
    """Writes what stays of a document shard. ``counter``: counts the sentences that are left."""

    counter: SentenceCounter = dataclasses.field(default_factory=lambda: SentenceCounter("builtin"))

    def cut(self, documents: pa.RecordBatch, rows: pa.RecordBatch, cuts: Cuts, map_offsets: bool) -> Cut:
        """What stays of a batch. ``rows``: its SPANS."""
        enough = functools.partial(enough_sentences, self.counter, self.min_sentences) if self.min_sentences else None
        return cut_lines(documents, rows, cuts, enough=enough, min_words=self.min_words, map_offsets=map_offsets)


def enough_sentences(counter: SentenceCounter, needed: int, texts: pa.StringArray) -> Bools:
    """Whether each text has ``needed`` sentences, which are counted in its first characters before the whole text.

    >>> enough_sentences(SentenceCounter("builtin"), 2, pa.array(["One. Two.", "One and two."])).tolist()
    [True, False]
    """
    begins = pc.utf8_slice_codeunits(texts, 0, GLANCE)
    # One sentence more than needed, because the last one of a truncated text may not be a sentence.
    has_enough = counter.enough(begins, np.arange(len(texts) + 1), needed + 1)
    unsure = np.flatnonzero(~has_enough)
    has_enough[unsure] = counter.enough(texts.take(pa.array(unsure)), np.arange(len(unsure) + 1), needed)
    return has_enough
