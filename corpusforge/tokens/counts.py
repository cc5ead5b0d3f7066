"""Word counts of a corpus: tables small enough to shuffle, whatever the size of the corpus.

In: columns of text. Out: tables (word, count), sorted by the bytes of the word, counts in 64 bits. Tables travel as
Arrow IPC bytes, one block for each partition of the words; merging blocks is associative and commutative down to the
byte, so any combiner tree over any cut of the corpus gives the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import xxhash

from corpusforge.text import text_bytes
from corpusforge.tokens.columns import Cutting
from corpusforge.tokens.words import UNCASED

COUNTS = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),  # normalised, never empty
        pa.field("count", pa.uint64(), nullable=False),  # occurrences, at least 1
    ]
)

_MERGE_ROWS = 1 << 20
"""Counted rows that pile up before they are merged: bounds memory at distinct words plus this many."""


def count_words(text: pa.StringArray, cutting: Cutting = UNCASED) -> pa.Table:
    """Occurrences of every word of a text column, as ``cutting`` cuts it (BERT's way, uncased): COUNTS, sorted.

    >>> count_words(pa.array(["a b a", "B!"])).to_pydict()
    {'word': ['!', 'a', 'b'], 'count': [1, 2, 2]}
    """
    data, rows = text_bytes(text)
    merged, waiting, size = COUNTS.empty_table(), [], 0
    splitter = cutting.splitter()
    for words in splitter.chunks(data, rows):
        values, counts = words.values.value_counts().flatten()
        waiting.append(pa.table([values, counts.cast(pa.uint64())], COUNTS))
        size += len(values)
        if size > _MERGE_ROWS:
            merged, waiting, size = merge_tables([merged, *waiting]), [], 0
    counted = merge_tables([merged, *waiting])
    return counted.set_column(0, COUNTS.field(0), splitter.marked(counted["word"]))


def merge_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """COUNTS of several tables together, sorted by word."""
    together = pa.concat_tables(tables) if tables else COUNTS.empty_table()
    summed = together.group_by("word", use_threads=False).aggregate([("count", "sum")])
    summed = summed.select(["word", "count_sum"]).rename_columns(COUNTS.names).cast(COUNTS)
    return summed.take(pc.sort_indices(summed["word"])).combine_chunks()


def pack_counts(counts: pa.Table, partitions: int) -> list[tuple[int, bytes]]:
    """Blocks of a COUNTS table for each partition that has words: (partition, Arrow IPC stream).

    A word's partition is its xxh3-64 modulo ``partitions``: the same in every process and release.
    """
    digest = xxhash.xxh3_64_intdigest
    words = counts["word"].to_pylist()
    # A Python loop with a reason: one C hash call (0.1 us) for each distinct word, far fewer than the text has.
    hashes = np.fromiter((digest(word.encode()) for word in words), np.uint64, len(words))
    keys = (hashes % np.uint64(partitions)).astype(np.int64)
    order = np.argsort(keys, kind="stable")
    bounds = np.searchsorted(keys[order], np.arange(partitions + 1))
    # A take for each block, no slice: the bytes of a slice would depend on where it stood.
    filled = np.flatnonzero(np.diff(bounds)).tolist()
    return [(p, _to_bytes(counts.take(order[bounds[p] : bounds[p + 1]]))) for p in filled]


def merge_counts(blocks: Sequence[bytes]) -> bytes:
    """One block with the counts of several added up. Associative and commutative.

    >>> block = lambda *words: pack_counts(count_words(pa.array(words)), 1)[0][1]
    >>> merge_counts([block("a b"), block("b c")]) == merge_counts([block("c"), block("b a b")])
    True
    """
    return _to_bytes(merge_tables([read_counts(block) for block in blocks]))


def read_counts(block: bytes) -> pa.Table:
    """The COUNTS table in a block."""
    return pa.ipc.open_stream(block).read_all()


def select_counts(blocks: Iterable[bytes], *, min_count: int, max_words: int) -> tuple[pa.Table, dict[str, int]]:
    """From merged blocks, one a partition: the words worth learning from, and what was left out.

    Kept are the ``max_words`` most frequent words seen at least ``min_count`` times; among words of the same count
    those that sort first. Memory: the kept words and one block, whatever the corpus.

    >>> block = pack_counts(count_words(pa.array(["a a a b b c d d"])), 1)[0][1]
    >>> table, statistics = select_counts([block], min_count=2, max_words=2)
    >>> table.to_pydict(), statistics["words"]
    ({'word': ['a', 'b'], 'count': [3, 2]}, 8)
    """
    kept = COUNTS.empty_table()
    found = {"words": 0, "distinct_words": 0, "words_too_rare": 0, "distinct_words_too_rare": 0}
    for block in blocks:
        table = read_counts(block)
        frequent = table.filter(pc.greater_equal(table["count"], pa.scalar(min_count, pa.uint64())))
        found["words"] += pc.sum(table["count"]).as_py() or 0
        found["distinct_words"] += len(table)
        found["words_too_rare"] += (pc.sum(table["count"]).as_py() or 0) - (pc.sum(frequent["count"]).as_py() or 0)
        found["distinct_words_too_rare"] += len(table) - len(frequent)
        kept = pa.concat_tables([kept, frequent])
        if len(kept) > 2 * max_words:
            kept = _most_frequent(kept, max_words)
    selected = _most_frequent(kept, max_words)
    found["distinct_words_selected"] = len(selected)
    found["words_selected"] = pc.sum(selected["count"]).as_py() or 0
    return selected.take(pc.sort_indices(selected["word"])).combine_chunks(), found


def _most_frequent(table: pa.Table, limit: int) -> pa.Table:
    order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("word", "ascending")])
    return table.take(order.slice(0, limit)).combine_chunks()


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, COUNTS) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
