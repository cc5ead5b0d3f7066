"""Choose which copy of equal or similar documents is kept, and split a batch into kept and dropped documents.

The choice is a total order on the content of documents, never on their arrival: first the order of `keep_order`, then
the document key (`seeds.document_keys`), and inside a document the earlier position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import F32, I64, Bools
from corpusforge.dedupe.offset_map import original_stops
from corpusforge.schemas import CLUSTERS, REPEATS
from corpusforge.text import text_bytes

METHOD = "documents"
REASONS = ("page:near-duplicate", "page:in-index")


def keep_order(documents: pa.RecordBatch, keep: str) -> I64:
    """The order of the setting ``dedupe.keep``, the smallest is kept: all 0 for ``hash``, else newest or longest first.

    Documents without a time come after those with one. Length is in bytes of UTF-8.

    >>> keep_order(pa.record_batch({"text": ["ab", "abc"]}), "longest").tolist()
    [-2, -3]
    """
    if keep == "longest":
        return -np.diff(text_bytes(documents.column("text"))[1])
    if keep == "newest":
        seconds = documents.column("timestamp").cast(pa.timestamp("s", tz="UTC")).cast(pa.int64())
        latest: I64 = pc.fill_null(seconds, np.iinfo(np.int64).min + 1).to_numpy(zero_copy_only=False)
        return -latest
    return np.zeros(documents.num_rows, np.int64)


class Members(NamedTuple):
    """Rows of a batch that are in a group, ascending."""

    rows: I64
    kept: pa.StringArray  # DOCUMENTS.id of the kept copy
    stays: Bools  # whether the kept copy is the row itself
    in_index: Bools  # whether the kept copy is a document of an index
    sizes: I64  # documents of the group
    similarities: F32  # to the kept copy


class Kept(NamedTuple):
    """``tallies``, ``statistics``: as in `shards.Tallies` and `shards.Entry`; ``is_kept``: of every row."""

    documents: pa.RecordBatch
    repeats: pa.RecordBatch
    clusters: pa.RecordBatch
    tallies: dict[str, dict[str, int]]
    statistics: dict[str, int]
    is_kept: Bools


def keep_documents(documents: pa.RecordBatch, members: Members) -> Kept:
    """Drop all members of groups except the kept copies. Documents are dropped or kept whole."""
    dropped = members.rows[~members.stays]
    is_kept = np.ones(documents.num_rows, np.bool_)
    is_kept[dropped] = False
    reasons = members.in_index[~members.stays].astype(np.int64)
    sizes = np.diff(text_bytes(documents.column("text"))[1])
    tallies = {
        reason: {"rows": int((reasons == k).sum()), "bytes": int(sizes[dropped[reasons == k]].sum())}
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
    stay = documents.filter(pa.array(is_kept))
    repeats = _repeats(documents, members, dropped, reasons, sizes)
    return Kept(stay, repeats, _clusters(documents, members), tallies, statistics, is_kept)


def _repeats(documents: pa.RecordBatch, members: Members, dropped: I64, reasons: I64, sizes: I64) -> pa.RecordBatch:
    """REPEATS of the dropped documents. Where the text of a kept copy in an index begins is not known."""
    rows, is_dropped = documents.take(pa.array(dropped)), pa.array(~members.stays)
    columns = [
        rows.column("id"),
        pa.DictionaryArray.from_arrays(pa.array(reasons.astype(np.int16)), pa.array(REASONS)),
        pa.array(np.zeros(len(dropped), np.int64)),
        pa.array(original_stops(documents, dropped, sizes[dropped])),
        rows.column("text"),
        members.kept.filter(is_dropped),
        pa.array(np.zeros(len(dropped), np.int64), mask=reasons == 1),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(dropped), np.int16)), pa.array([METHOD])),
        pa.array(members.similarities[~members.stays]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=REPEATS)


def _clusters(documents: pa.RecordBatch, members: Members) -> pa.RecordBatch:
    columns = [
        members.kept,
        documents.column("id").take(pa.array(members.rows)),
        pa.array(members.sizes),
        pa.array(members.similarities),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CLUSTERS)
