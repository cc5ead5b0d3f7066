"""Exact repeats of n consecutive sentences: their hashes, and which of them are not the first.

Comes in: DOCUMENTS batches; later, packed blocks of hashes from all units. Goes out: SPANS batches (a row a document);
later, for each unit, which spans must go and where the copy stands that stays.

Definition (T5, Raffel et al. 2020, section 2.2): all but one of any three-sentence span occurring more than once. A
span is named by its first sentence. The first copy stays in the order of (`survivors.survivor_order`, document key,
position in the document): of content alone, never of arrival. A repeat inside one document counts. A span without a
single word (only punctuation in all its sentences) is no span, and a document of fewer than n sentences has none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools
from corpusforge.dedupe.chain import PIECES, original
from corpusforge.dedupe.keep import survivor_order
from corpusforge.dedupe.normalize import sentence_hashes
from corpusforge.sentences.splitter import sentence_spans

SPANS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("key", pa.uint64(), nullable=False),  # seeds.document_keys of it
        pa.field("starts", pa.list_(pa.uint32()), nullable=False),  # byte offset of each sentence in the text
        pa.field("stops", pa.list_(pa.uint32()), nullable=False),  # byte offset behind each sentence
        # Hash of the span that begins with each sentence; 0: none does (too near the end, or without words).
        pa.field("hashes", pa.list_(pa.uint64()), nullable=False),
        # Byte offset of each sentence in the text as it came to the stage. Null: as in starts.
        pa.field("origins", pa.list_(pa.int64())),
        pa.field("order", pa.int64(), nullable=False),  # survivors.survivor_order of it, which goes before the key
    ]
)
"""One row a document; the sentences of all rows, counted through, are the *sentence rows* of the unit."""

BLOCK_BYTES = 24
"""Bytes a span in a block: hash, document key, place; one column behind the other, little-endian uint64."""

LOSER_BYTES = 16
"""Bytes a losing span in `find_losers`' answer: its place and the survivor's, one column behind the other."""

UNIT_SHIFT = 40
"""A place is ``unit << 40 | sentence row``: 16 million units of 10^12 sentences."""


def hash_documents(
    documents: pa.RecordBatch, *, span_sentences: int = 3, fold_numbers: bool = False, survivor: str = "hash"
) -> pa.RecordBatch:
    """The SPANS rows of a DOCUMENTS batch, in its order."""
    found = sentence_spans(documents.column("text"))
    hashes, empty = sentence_hashes(found, fold_numbers=fold_numbers)
    spans = span_hashes(hashes, empty, found.offsets, span_sentences)
    inside = np.repeat(found.bases[: documents.num_rows], np.diff(found.offsets))
    return span_rows(documents, found.offsets, found.starts - inside, found.stops - inside, spans, survivor)


def span_rows(
    documents: pa.RecordBatch, offsets: I64, starts: I64, stops: I64, hashes: U64, survivor: str = "hash"
) -> pa.RecordBatch:
    """SPANS of a batch from its columns; document i owns ``starts[offsets[i]:offsets[i + 1]]`` and so on."""
    columns = [
        documents.column("id"),
        pa.array(seeds.document_keys(documents.column("id").to_pylist())),
        _lists(offsets, starts, np.uint32),
        _lists(offsets, stops, np.uint32),
        _lists(offsets, hashes, np.uint64),
        _origins(documents, offsets, starts),
        pa.array(survivor_order(documents, survivor)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SPANS)


def span_hashes(sentences: U64, empty: Bools, offsets: I64, length: int) -> U64:
    """The hash of the span of ``length`` sentences beginning at each sentence; 0 where there is none.

    ``sentences``: their hashes; ``empty``: which have no words; document i owns rows ``offsets[i]:offsets[i + 1]``.

    >>> rows = np.array([7, 8, 7, 8, 9], np.uint64)
    >>> found = span_hashes(rows, np.zeros(5, bool), np.array([0, 5]), 2)
    >>> bool(found[0] == found[2]), bool(found[0] == found[1]), int(found[4])
    (True, False, 0)
    """
    total = len(sentences)
    found = np.zeros(total, np.uint64)
    if total < length:
        return found
    count = total - length + 1
    spans, wordless = np.zeros(count, np.uint64), np.ones(count, np.bool_)
    for k in range(length):
        spans = seeds.mix(spans ^ sentences[k : k + count])
        wordless &= empty[k : k + count]
    ends = np.repeat(offsets[1:], np.diff(offsets))[:count]
    is_span = (np.arange(count) + length <= ends) & ~wordless
    found[:count] = np.where(is_span, np.maximum(spans, np.uint64(1)), np.uint64(0))
    return found


def pack_block(hashes: U64, keys: U64, places: U64, *orders: npt.NDArray[Any]) -> bytes:
    """A block of spans as bytes, `BLOCK_BYTES` each, and 8 more where documents have an order before their keys."""
    return pack(hashes, keys, places, *(order.view(np.uint64) for order in orders))


def find_losers(blocks: Iterable[bytes], *, ordered: bool = False) -> list[tuple[int, bytes]]:
    """Every span of these blocks that repeats an earlier one, as packed rows for each unit (ascending).

    ``blocks``: from `pack_block`, of any units in any order; equal hashes must all be among them. The rows of a unit:
    uint64 place of the losing span, then as many places of the survivors (`unpack_losers`), ascending by the first.
    ``ordered``: whether the blocks hold orders. Of documents with one and the same id the one of the smaller place
    stays.
    """
    columns = unpack(blocks, 4 if ordered else 3)
    hashes, keys, places = columns[:3]
    by_hash = np.argsort(hashes)
    ascending = hashes[by_hash]
    equal = ascending[1:] == ascending[:-1]
    repeated = np.zeros(len(ascending), np.bool_)
    repeated[1:] = equal
    repeated[:-1] |= equal
    chosen = by_hash[repeated]
    hashes, keys, places = hashes[chosen], keys[chosen], places[chosen]
    orders = [columns[3][chosen].view(np.int64)] if ordered else []
    order = np.lexsort((places, keys, *orders, hashes))
    hashes, places = hashes[order], places[order]
    is_first = np.ones(len(hashes), np.bool_)
    is_first[1:] = hashes[1:] != hashes[:-1]
    survivors = places[np.flatnonzero(is_first)][np.cumsum(is_first) - 1]
    return by_unit(places[~is_first], survivors[~is_first], UNIT_SHIFT)


def pack_losers(losers: U64, survivors: U64) -> bytes:
    """Losing spans and their survivors as bytes, `LOSER_BYTES` each."""
    return pack(losers, survivors)


def unpack_losers(blocks: Iterable[bytes]) -> tuple[U64, U64]:
    """Places of losing spans and of their survivors from any number of packed answers, ascending, each once."""
    losers, survivors = unpack(blocks, 2)
    losers, first = np.unique(losers, return_index=True)
    return losers, survivors[first]


def place(unit: int, rows: npt.NDArray[Any]) -> U64:
    """Places of sentence rows of a unit."""
    return np.uint64(unit << UNIT_SHIFT) | rows.astype(np.uint64)


def unit_of(places: U64) -> I64:
    """The unit of each place."""
    return (places >> np.uint64(UNIT_SHIFT)).astype(np.int64)


def row_of(places: U64) -> I64:
    """The sentence row of each place."""
    return (places & np.uint64((1 << UNIT_SHIFT) - 1)).astype(np.int64)


def column_spans(column: pa.ListArray) -> tuple[npt.NDArray[Any], I64]:
    """Values and ``n + 1`` offsets from 0 of a list column without nulls, without copying the values."""
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    values = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return values.to_numpy(), offsets - offsets[0]


def _origins(documents: pa.RecordBatch, offsets: I64, starts: I64) -> pa.ListArray:
    if PIECES.name not in documents.schema.names:
        return pa.nulls(documents.num_rows, pa.list_(pa.int64()))
    found = original(documents, np.repeat(np.arange(documents.num_rows), np.diff(offsets)), starts)
    return _lists(offsets, found, np.int64)


def _lists(offsets: I64, values: npt.NDArray[Any], kind: type[np.generic]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values.astype(kind)))


# MERGED DOCSTRING of corpusforge.dedupe.packed:
# Packed rows: what is shuffled, as bytes.
#
# Comes in: columns of 64-bit words, packed one behind the other, little-endian. Goes out: the columns of many
# such blocks
# together, or pairs of places cut by the unit of the first. The one decision: a block says nothing about itself; who
# packed it knows how many columns it has.


def pack(*columns: U64) -> bytes:
    """Columns of one length as bytes.

    >>> pack(np.array([1], np.uint64), np.array([2], np.uint64)).hex()
    '01000000000000000200000000000000'
    """
    return np.stack(columns).astype("<u8").tobytes()


def unpack(blocks: Iterable[bytes], columns: int) -> list[U64]:
    """The columns of any number of blocks, one behind the other."""
    parts = [np.frombuffer(block, "<u8").reshape(columns, -1) for block in blocks]
    if not parts:
        return [np.zeros(0, np.uint64)] * columns
    return [np.concatenate([part[k] for part in parts]).astype(np.uint64, copy=False) for k in range(columns)]


def by_unit(places: U64, others: U64, shift: int) -> list[tuple[int, bytes]]:
    """Packed pairs of places for each unit of the first (``place >> shift``), ascending."""
    order = np.argsort(places)
    places, others = places[order], others[order]
    units, first = np.unique(places >> np.uint64(shift), return_index=True)
    bounds = itertools.pairwise([*first.tolist(), len(places)])
    return [(int(unit), pack(places[a:b], others[a:b])) for unit, (a, b) in zip(units, bounds, strict=True)]
