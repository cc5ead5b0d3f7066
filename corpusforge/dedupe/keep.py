"""What becomes of a batch of documents once their groups are settled: what stays, and what is said about the rest.

Comes in: a DOCUMENTS batch and which of its rows are in a group. Goes out: the documents that stay, REPEATS, CLUSTERS,
tallies and statistics. The one decision: documents go whole or stay whole, so nothing but the row is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import F32, I64, Bools
from corpusforge.dedupe.chain import original_stops
from corpusforge.schemas import CLUSTERS, REPEATS
from corpusforge.text import text_bytes

METHOD = "documents"
REASONS = ("page:near-duplicate", "page:in-index")


class Members(NamedTuple):
    """Rows of a batch that are in a group, ascending."""

    rows: I64
    survivors: pa.StringArray  # DOCUMENTS.id of the one that stays
    stays: Bools  # whether that is the row itself
    in_index: Bools  # whether that is a document of an index
    sizes: I64  # documents of the group
    similarities: F32  # to the one that stays


class Kept(NamedTuple):
    """``tallies``, ``statistics``: as in `shards.Tallies` and `shards.Entry`; ``is_kept``: of every row."""

    documents: pa.RecordBatch
    repeats: pa.RecordBatch
    clusters: pa.RecordBatch
    tallies: dict[str, dict[str, int]]
    statistics: dict[str, int]
    is_kept: Bools


def keep_documents(documents: pa.RecordBatch, members: Members) -> Kept:
    """Leave out all members of groups but those that stay."""
    gone = members.rows[~members.stays]
    is_kept = np.ones(documents.num_rows, np.bool_)
    is_kept[gone] = False
    reasons = members.in_index[~members.stays].astype(np.int64)
    sizes = np.diff(text_bytes(documents.column("text"))[1])
    tallies = {
        reason: {"rows": int((reasons == k).sum()), "bytes": int(sizes[gone[reasons == k]].sum())}
        for k, reason in enumerate(REASONS)
        if (reasons == k).any()
    }
    statistics = {
        "documents_in": documents.num_rows,
        "documents_out": int(is_kept.sum()),
        "text_bytes_in": int(sizes.sum()),
        "text_bytes_out": int(sizes[is_kept].sum()),
        "clusters": int(members.stays.sum()),
    }
    kept = documents.filter(pa.array(is_kept))
    repeats = _repeats(documents, members, gone, reasons, sizes)
    return Kept(kept, repeats, _clusters(documents, members), tallies, statistics, is_kept)


def _repeats(documents: pa.RecordBatch, members: Members, gone: I64, reasons: I64, sizes: I64) -> pa.RecordBatch:
    """REPEATS of the documents that go. Where the text of a survivor in an index begins is not known."""
    rows, goes = documents.take(pa.array(gone)), pa.array(~members.stays)
    columns = [
        rows.column("id"),
        pa.DictionaryArray.from_arrays(pa.array(reasons.astype(np.int16)), pa.array(REASONS)),
        pa.array(np.zeros(len(gone), np.int64)),
        pa.array(original_stops(documents, gone, sizes[gone])),
        rows.column("text"),
        members.survivors.filter(goes),
        pa.array(np.zeros(len(gone), np.int64), mask=reasons == 1),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(gone), np.int16)), pa.array([METHOD])),
        pa.array(members.similarities[~members.stays]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REPEATS)


def _clusters(documents: pa.RecordBatch, members: Members) -> pa.RecordBatch:
    columns = [
        members.survivors,
        documents.column("id").take(pa.array(members.rows)),
        pa.array(members.sizes),
        pa.array(members.similarities),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CLUSTERS)


# MERGED DOCSTRING of corpusforge.dedupe.survivors:
# Which of many equal or similar documents stays: a total order on what they are, never on when they came.
#
# Comes in: DOCUMENTS batches. Goes out: a number a document; the smaller survives. Where numbers are equal the smaller
# document key does (`seeds.document_keys`), and inside a document the earlier position.


def survivor_order(documents: pa.RecordBatch, survivor: str) -> I64:
    """The order that ``dedupe.survivor`` asks for: all 0 for ``hash``; the newest or the longest text first.

    Documents without a time come behind those with one. Length is in bytes of UTF-8.

    >>> survivor_order(pa.record_batch({"text": ["ab", "abc"]}), "longest").tolist()
    [-2, -3]
    """
    if survivor == "longest":
        return -np.diff(text_bytes(documents.column("text"))[1])
    if survivor == "newest":
        seconds = documents.column("timestamp").cast(pa.timestamp("s", tz="UTC")).cast(pa.int64())
        latest: I64 = pc.fill_null(seconds, np.iinfo(np.int64).min + 1).to_numpy(zero_copy_only=False)
        return -latest
    return np.zeros(documents.num_rows, np.int64)
