"""Near repeats: what is stored of a signed item, which items are compared, and which of them repeat an earlier one.

Comes in: signatures of *items*, that is spans of sentences or whole documents, and packed blocks of their band hashes
from all units. Goes out: pairs worth comparing, and of the pairs that were compared the best of each item. The one
decision: items of the same shingles are found first, as exact repeats of their fingerprint (`minhash.Sets`; of those
in an index, of which no more is known, of the signature), and only the first of them is compared with others; so a
hundred thousand copies of a page cost what they weigh and no more.

Order: as for exact repeats, of (document key, position in the document). An item goes where an earlier one is at least
as similar as the threshold asks for and the two share no sentence. It is looked for among the items that meet it in a
band (`lsh.bucket_pairs`). Whether the earlier one stays itself is not asked: the answer depends on the two items alone,
and of a chain of items, each like the next, the first stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from corpusforge.arrays import F32, I64, U32, U64, Bools
from corpusforge.dedupe.lsh import bucket_pairs, count_pairs
from corpusforge.dedupe.minhash import Sets
from corpusforge.dedupe.packed import by_unit, unpack
from corpusforge.dedupe.spans import UNIT_SHIFT, column_spans

SIGNED = pa.schema(
    [
        # Of every sentence row of the document, in the rows of SPANS, one after the other; 0 where no item begins.
        pa.field("bands", pa.list_(pa.uint64()), nullable=False),
        # Of documents, for an index. Empty for spans.
        pa.field("signatures", pa.list_(pa.uint32()), nullable=False),
        # Hashes of shingles, in the order of the text. Empty where only the signature is known (of an index).
        pa.field("shingles", pa.list_(pa.uint32()), nullable=False),
        # Of every item: its shingles, counted through all documents of the batch.
        pa.field("starts", pa.list_(pa.uint32()), nullable=False),
        pa.field("stops", pa.list_(pa.uint32()), nullable=False),
    ]
)
"""One row a document, beside its row of SPANS: band hashes, signatures and shingles of its items. The shingles of a
batch belong together; which document's row they are in says nothing."""

PAIR_BYTES = 16
"""Bytes of a packed pair: places of the later and of the earlier item, one column behind the other."""


class Pairs(NamedTuple):
    """Pairs of items that were compared, and what orders the earlier ones among each other."""

    later: U64  # places (dedupe.spans.place)
    earlier: U64
    orders: I64  # SPANS.order and key of the document of the earlier one, and its position there
    keys: U64
    rows: I64
    similarities: F32


def signature_hashes(signatures: U32, real: Bools) -> U64:
    """One hash a signature, never 0; 0 where ``real`` says that there is no item.

    Python loop with a reason: one C call an item (about 0.3 us), which takes a hundred times as long to sign.
    """
    width = signatures.shape[1] * 4
    view, digest = np.ascontiguousarray(signatures, "<u4").view(np.uint8).reshape(-1).data, xxhash.xxh3_64_intdigest
    found = np.zeros(len(signatures), np.uint64)
    rows = np.flatnonzero(real)
    found[rows] = np.fromiter((digest(view[r * width : (r + 1) * width]) for r in rows.tolist()), np.uint64, len(rows))
    return np.where(real, np.maximum(found, np.uint64(1)), np.uint64(0))


def signed_rows(offsets: I64, bands: U64, signatures: U32 | None = None, sets: Sets | None = None) -> pa.RecordBatch:
    """SIGNED rows; document i owns items ``offsets[i]:offsets[i + 1]`` of the matrices and sets."""
    nothing = np.zeros(0, np.uint32)
    if sets is None:
        sets = Sets(nothing, *np.zeros((2, len(bands)), np.int64))
    columns: list[tuple[npt.NDArray[Any], I64]] = [(bands.ravel(), offsets * bands.shape[1])]
    columns.append(
        (nothing, offsets * 0) if signatures is None else (signatures.ravel(), offsets * signatures.shape[1])
    )
    last = np.where(np.arange(len(offsets)) > 0, len(sets.hashes), 0)  # all in the first row
    columns += [(sets.hashes, last), (sets.starts.astype(np.uint32), offsets), (sets.stops.astype(np.uint32), offsets)]
    lists = [pa.ListArray.from_arrays(pa.array(cuts.astype(np.int32)), pa.array(values)) for values, cuts in columns]
    return pa.RecordBatch.from_arrays(lists, schema=SIGNED)


def item_matrix(column: pa.ListArray, width: int) -> npt.NDArray[Any]:
    """The rows of all items of a SIGNED column (``signatures`` or ``bands``), as a view."""
    return column_spans(column)[0].reshape(-1, width)


class Shared(NamedTuple):
    """Which band hashes of a range two items have. ``bits``: one for each value of the first bits of a mark."""

    bits: bytes
    hashes: int  # how many have their bit set
    pairs: int  # how many pairs they give at most


def find_shared(marks: Iterable[bytes], width: int) -> Shared:
    """What is there twice. ``marks``: packed, the last 32 bits of all band hashes of a range, little-endian.

    >>> find_shared([np.array([7, 9 << 24, 7], "<u4").tobytes()], 8)
    Shared(bits=b'\\x01\\x00...', hashes=2, pairs=1)
    """
    found = np.sort(np.frombuffer(b"".join(marks), "<u4"))
    fresh = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]])) if len(found) else np.zeros(0, np.int64)
    sizes = np.diff(np.append(fresh, len(found)))
    is_set = np.zeros(1 << width, np.bool_)
    is_set[found[fresh[sizes > 1]] >> np.uint32(32 - width)] = True
    passing = np.count_nonzero(is_set[found >> np.uint32(32 - width)])
    return Shared(np.packbits(is_set, bitorder="little").tobytes(), int(passing), count_pairs(sizes))


def candidate_pairs(blocks: Iterable[bytes], *, ordered: bool = False) -> list[tuple[int, bytes]]:
    """Pairs of items that meet in a band, as packed rows for each unit of the later one (ascending).

    ``blocks``: of (band hash, document key, place), from `spans.pack_block`, of any units in any order; equal hashes
    must all be among them. ``ordered``: whether they hold orders. Which pairs of a large bucket are taken is said at
    `lsh.bucket_pairs`.
    """
    hashes, keys, places, *orders = unpack(blocks, 4 if ordered else 3)
    order = np.argsort(hashes)
    ascending = hashes[order]
    equal = ascending[1:] == ascending[:-1]
    shared = np.zeros(len(ascending), np.bool_)
    shared[1:] = equal
    shared[:-1] |= equal
    chosen = order[shared]
    first = [column[chosen].view(np.int64) for column in orders]
    pairs = bucket_pairs(hashes[chosen], (*first, keys[chosen], places[chosen]))
    return by_unit(places[chosen[pairs[:, 1]]], places[chosen[pairs[:, 0]]], UNIT_SHIFT)


def unpack_pairs(blocks: Iterable[bytes]) -> tuple[U64, U64]:
    """Pairs from any number of packed answers, each once, ascending by the later and then the earlier place."""
    later, earlier = unpack(blocks, 2)
    order = np.lexsort((earlier, later))
    later, earlier = later[order], earlier[order]
    fresh = np.ones(len(later), np.bool_)
    fresh[1:] = (later[1:] != later[:-1]) | (earlier[1:] != earlier[:-1])
    return later[fresh], earlier[fresh]


def best_pairs(pairs: Pairs) -> Pairs:
    """Of every later item the pair of the most similar earlier one, of equals the first in order; ascending.

    >>> places, rows = np.array([9, 9, 8], np.uint64), np.array([1, 2, 3])
    >>> best_pairs(Pairs(places, places, rows, places, rows, np.array([0.8, 0.9, 1], np.float32))).rows.tolist()
    [3, 2]
    """
    columns = (pairs.earlier, pairs.rows, pairs.keys, pairs.orders, -pairs.similarities, pairs.later)
    order = np.lexsort(columns)
    later = pairs.later[order]
    fresh = np.ones(len(later), np.bool_)
    fresh[1:] = later[1:] != later[:-1]
    return take_pairs(pairs, order[fresh])


def take_pairs(pairs: Pairs, chosen: I64) -> Pairs:
    """Some of the pairs."""
    return Pairs._make(column[chosen] for column in pairs)
