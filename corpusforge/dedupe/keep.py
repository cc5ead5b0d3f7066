"""Group documents that resemble each other, and keep one copy of each group.

The kept copy is chosen by a total order on the content of documents, never on their arrival: first the order of
`keep_order`, then the document key (`seeds.document_keys`), and inside a document the earlier position.

A group is a connected component of the pairs of similar documents. So two documents of a group may be less similar than
the threshold if others connect them. Components are found by label propagation: every root takes the smallest root next
to it, then all rows take their root's root until nothing changes. A root with a smaller neighbor disappears within one
round, so the number of rounds grows with the logarithm of the number of rows, also for chains and stars. The order of
the pairs does not matter.

Memory: 16 bytes per pair and 8 per row, and about twice as much again during a round. Ten million random pairs of ten
million rows peak at 0.6 GB and take 2.5 s on one core, so 10^8 pairs need 6 GB. `lsh.bucket_pairs` keeps their number
linear in that of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import F32, I64, U64, Bools
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


def components(pairs: I64, count: int) -> I64:
    """The smallest row of the component of each of ``count`` rows. ``pairs``: ``int64[m, 2]``.

    >>> components(np.array([[1, 3], [4, 3]]), 5).tolist()
    [0, 1, 2, 1, 1]
    """
    labels = np.arange(count)
    left, right = pairs[:, 0], pairs[:, 1]
    while len(left):
        left, right = labels[left], labels[right]
        apart = left != right
        left, right = left[apart], right[apart]
        np.minimum.at(labels, np.maximum(left, right), np.minimum(left, right))
        while not np.array_equal(shorter := labels[labels], labels):  # until every row points to the root of its tree
            labels = shorter
    return labels


class Grouped(NamedTuple):
    """Documents that are in a group of two or more, ascending by place."""

    places: U64
    kept: U64  # place of the copy that is kept; for that copy its own
    sizes: I64  # documents of the group


def places_of(earlier: U64, later: U64) -> U64:
    """All places that are in a pair, ascending."""
    return np.unique(np.concatenate([earlier, later]))


def group(earlier: U64, later: U64, places: U64, order: tuple[I64, U64, I64]) -> Grouped:
    """Group pairs of places. ``places``: `places_of` them; ``order``: columns of a total order of the places, the first
    weighs most; the smallest of each group is kept.

    >>> pairs = np.array([7, 8], np.uint64), np.array([8, 9], np.uint64)
    >>> ranks = np.array([1, 0, 0]), np.array([5, 6, 4], np.uint64), np.zeros(3, np.int64)
    >>> group(*pairs, places_of(*pairs), ranks).kept.tolist()
    [9, 9, 9]
    """
    pairs = np.stack([np.searchsorted(places, earlier), np.searchsorted(places, later)], 1)
    labels = components(pairs.astype(np.int64), len(places))
    by_rank = np.lexsort((places, *order[::-1], labels))
    fresh = np.ones(len(places), np.bool_)
    fresh[1:] = labels[by_rank[1:]] != labels[by_rank[:-1]]
    kept = np.zeros(len(places), np.int64)
    kept[labels[by_rank[fresh]]] = by_rank[fresh]
    sizes = np.bincount(labels, minlength=len(places))
    return Grouped(places, places[kept[labels]], sizes[labels])


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
