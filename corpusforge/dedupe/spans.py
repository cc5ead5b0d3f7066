"""Spans of consecutive sentences: their hashes, where they are, and which of them are duplicates.

A span of n sentences is identified by its first sentence. A span without a single word (only punctuation in all its
sentences) is not a span, and a document of fewer than n sentences has none. Lines and whole documents are stored in the
same tables, as spans of one row.

Shuffles carry packed blocks: columns of 64-bit words, one column after another, little-endian. A block does not
describe itself; whoever packs it knows how many columns it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools, repeated_rows, run_starts
from corpusforge.dedupe.keep import keep_order
from corpusforge.dedupe.normalize import sentence_hashes
from corpusforge.dedupe.offset_map import OFFSET_MAP, original_offsets
from corpusforge.sentences.splitter import sentence_spans

SPANS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("key", pa.uint64(), nullable=False),  # seeds.document_keys of it
        pa.field("starts", pa.list_(pa.uint32()), nullable=False),  # byte offset of each sentence in the text
        pa.field("stops", pa.list_(pa.uint32()), nullable=False),  # byte offset after each sentence
        # Hash of the span that begins with each sentence; 0: there is none (too near the end, or without words).
        pa.field("hashes", pa.list_(pa.uint64()), nullable=False),
        # Byte offset of each sentence in the text as it came to the stage. Null: as in starts.
        pa.field("origins", pa.list_(pa.int64())),
        pa.field("order", pa.int64(), nullable=False),  # keep.keep_order of it, which has precedence over the key
    ]
)
"""One row per document; the sentences of all rows, counted through, are the *sentence rows* of the unit."""

BLOCK_BYTES = 24
"""Bytes of a packed span: hash, document key, place."""

PAIR_BYTES = 16
"""Bytes of a packed pair of places."""

UNIT_SHIFT = 40
"""A place is ``unit << 40 | sentence row``: 16 million units of 10^12 sentences."""


def hash_documents(
    documents: pa.RecordBatch, *, span_sentences: int = 3, fold_numbers: bool = False, keep: str = "hash"
) -> pa.RecordBatch:
    """The SPANS rows of a DOCUMENTS batch, in its order."""
    sentences = sentence_spans(documents.column("text"))
    hashes, empty = sentence_hashes(sentences, fold_numbers=fold_numbers)
    spans = span_hashes(hashes, empty, sentences.offsets, span_sentences)
    inside = np.repeat(sentences.bases[: documents.num_rows], np.diff(sentences.offsets))
    return span_rows(documents, sentences.offsets, sentences.starts - inside, sentences.stops - inside, spans, keep)


def span_rows(
    documents: pa.RecordBatch, offsets: I64, starts: I64, stops: I64, hashes: U64, keep: str = "hash"
) -> pa.RecordBatch:
    """SPANS of a batch from its columns; document i owns ``starts[offsets[i]:offsets[i + 1]]`` and so on."""
    origins = pa.nulls(documents.num_rows, pa.list_(pa.int64()))
    if OFFSET_MAP.name in documents.schema.names:
        owners = np.repeat(np.arange(documents.num_rows), np.diff(offsets))
        origins = _lists(offsets, original_offsets(documents, owners, starts), np.int64)
    columns = [
        documents.column("id"),
        pa.array(seeds.document_keys(documents.column("id").to_pylist())),
        _lists(offsets, starts, np.uint32),
        _lists(offsets, stops, np.uint32),
        _lists(offsets, hashes, np.uint64),
        origins,
        pa.array(keep_order(documents, keep)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SPANS)


def span_hashes(sentences: U64, empty: Bools, offsets: I64, length: int) -> U64:
    """The hash of the span of ``length`` sentences beginning at each sentence; 0 where there is none.

    ``sentences``: their hashes; ``empty``: which have no words; document i owns rows ``offsets[i]:offsets[i + 1]``.

    >>> rows = np.array([7, 8, 7, 8, 9], np.uint64)
    >>> hashes = span_hashes(rows, np.zeros(5, bool), np.array([0, 5]), 2)
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1]), int(hashes[4])
    (True, False, 0)
    """
    total = len(sentences)
    hashes = np.zeros(total, np.uint64)
    if total < length:
        return hashes
    count = total - length + 1
    spans, wordless = np.zeros(count, np.uint64), np.ones(count, np.bool_)
    for k in range(length):
        spans = seeds.mix(spans ^ sentences[k : k + count])
        wordless &= empty[k : k + count]
    ends = np.repeat(offsets[1:], np.diff(offsets))[:count]
    is_span = (np.arange(count) + length <= ends) & ~wordless
    hashes[:count] = np.where(is_span, np.maximum(spans, np.uint64(1)), np.uint64(0))
    return hashes


def find_duplicates(blocks: Iterable[bytes], *, ordered: bool = False) -> list[tuple[int, bytes]]:
    """Every span of these blocks that duplicates an earlier one: packed pairs of places for each unit, ascending.

    ``blocks``: packed columns of hashes, document keys, places and, where they are ``ordered``, of the order that has
    precedence over the keys; of any units in any order, but with all spans of equal hashes among them. A pair is the
    place of the dropped span and of the kept copy (`unpack_duplicates`). Of documents with the same id the one of the
    smaller place is kept.
    """
    columns = unpack(blocks, 4 if ordered else 3)
    repeated = repeated_rows(columns[0])
    hashes, keys, places, *orders = (column[repeated] for column in columns)
    order = np.lexsort((places, keys, *(column.view(np.int64) for column in orders), hashes))
    hashes, places = hashes[order], places[order]
    is_first = run_starts(hashes)
    kept = places[np.flatnonzero(is_first)][np.cumsum(is_first) - 1]
    return pack_by_unit(places[~is_first], kept[~is_first])


def unpack_duplicates(blocks: Iterable[bytes]) -> tuple[U64, U64]:
    """Places of dropped spans and of their kept copies from any number of packed pairs, ascending, each once."""
    dropped, kept = unpack(blocks, 2)
    dropped, first = np.unique(dropped, return_index=True)
    return dropped, kept[first]


def place(unit: int, rows: npt.NDArray[Any]) -> U64:
    """Places of sentence rows of a unit."""
    return np.uint64(unit << UNIT_SHIFT) | rows.astype(np.uint64)


def unit_of(places: U64) -> I64:
    """The unit of each place."""
    return (places >> np.uint64(UNIT_SHIFT)).astype(np.int64)


def row_of(places: U64) -> I64:
    """The sentence row of each place."""
    return (places & np.uint64((1 << UNIT_SHIFT) - 1)).astype(np.int64)


def partition_of(hashes: U64, partitions: int) -> I64:
    """The range of each hash, of ``partitions`` equal ranges of 64 bits (Lemire's multiply and shift, on 32 bits)."""
    return ((hashes >> np.uint64(32)) * np.uint64(partitions) >> np.uint64(32)).astype(np.int64)


def pack(*columns: npt.NDArray[Any]) -> bytes:
    """Columns of 64-bit words and of one length as bytes.

    >>> pack(np.array([1], np.uint64), np.array([2], np.int64)).hex()
    '01000000000000000200000000000000'
    """
    return b"".join(column.view(np.uint64).astype("<u8").tobytes() for column in columns)


def pack_groups(groups: I64, *columns: npt.NDArray[Any]) -> list[tuple[int, bytes]]:
    """The packed rows of each group, ascending by group; the rows of a group keep their order.

    >>> [(group, len(block)) for group, block in pack_groups(np.array([7, 3, 7]), np.arange(3))]
    [(3, 8), (7, 16)]
    """
    # A sort of 16-bit numbers is a radix sort, ten times as fast.
    small = len(groups) > 0 and groups.min() >= 0 and groups.max() < 1 << 16
    order = np.argsort(groups.astype(np.uint16) if small else groups, kind="stable")
    groups, columns = groups[order], tuple(column[order] for column in columns)
    bounds = np.append(np.flatnonzero(run_starts(groups)), len(groups)).tolist()
    return [(int(groups[a]), pack(*(column[a:b] for column in columns))) for a, b in itertools.pairwise(bounds)]


def pack_by_unit(places: U64, others: U64) -> list[tuple[int, bytes]]:
    """Packed pairs of places for each unit of the first, ascending."""
    order = np.argsort(places)
    return pack_groups(unit_of(places[order]), places[order], others[order])


def unpack(blocks: Iterable[bytes], columns: int) -> list[U64]:
    """The columns of any number of blocks, one block after another."""
    parts = [np.frombuffer(block, "<u8").reshape(columns, -1) for block in blocks]
    if not parts:
        return [np.zeros(0, np.uint64)] * columns
    return [np.concatenate([part[k] for part in parts]).astype(np.uint64, copy=False) for k in range(columns)]


def column_spans(column: pa.ListArray) -> tuple[npt.NDArray[Any], I64]:
    """Values and ``n + 1`` offsets from 0 of a list column without nulls, without copying the values."""
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    values = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return values.to_numpy(), offsets - offsets[0]


def _lists(offsets: I64, values: npt.NDArray[Any], kind: type[np.generic]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values.astype(kind)))
