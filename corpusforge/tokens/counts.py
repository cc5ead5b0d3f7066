"""Word counts of a corpus: tables small enough to shuffle, whatever the size of the corpus.

In: columns of text. Out: tables (word, count), sorted by the bytes of the word, counts in 64 bits. Tables travel as
Arrow IPC bytes, one block for each partition of the words; merging blocks is associative and commutative down to the
byte, so any combiner tree over any cut of the corpus gives the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import xxhash

from corpusforge.arrays import I64, U64
from corpusforge.text import text_bytes
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.splitting import Segmentation

COUNTS = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),  # normalized, never empty
        pa.field("count", pa.uint64(), nullable=False),  # occurrences, at least 1
    ]
)

_MERGE_ROWS = 1 << 20
"""Counted rows that pile up before they are merged: bounds memory at distinct words plus this many."""

FED_OCCURRENCES = 16_000_000
"""Most word occurrences a trainer reads, about ten seconds of reading; above it counts are scaled down."""


def count_words(text: pa.StringArray, segmentation: Segmentation = UNCASED) -> pa.Table:
    """Count every word of a text column, by default as uncased BERT splits it: COUNTS, sorted.

    >>> count_words(pa.array(["a b a", "B!"])).to_pydict()
    {'word': ['!', 'a', 'b'], 'count': [1, 2, 2]}
    """
    data, rows = text_bytes(text)
    merged, waiting, size = COUNTS.empty_table(), [], 0
    splitter = segmentation.splitter()
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


def scale_counts(counts: U64, bound: int) -> tuple[I64, float]:
    """Counts scaled down in proportion to a sum of ``bound`` where theirs is larger, and the factor.

    Running totals are rounded, not single counts: a word gets its share rounded down or up, and a hundred words that
    are due a hundredth each get one occurrence together. Keeping every rare word at one occurrence instead would give
    rare words far too much weight: on 100 MB of text fed as 1 M occurrences, 70 % of the tokens were those learned
    from full counts, against 90 % this way.

    >>> scale_counts(np.array([90, 3, 3, 4], np.uint64), 10)[0].tolist()
    [9, 0, 0, 1]
    """
    totals = np.cumsum(counts.astype(np.float64))  # exact below 2**53 occurrences
    if not len(totals) or totals[-1] <= bound:
        return counts.astype(np.int64), 1.0
    factor = bound / float(totals[-1])
    running = np.floor(totals * factor).astype(np.int64)
    return running - np.append(0, running[:-1]), factor


def repeated(words: list[str], counts: I64) -> Iterator[list[str]]:
    """Each word as often as it counts, in lists of limited length: the trainer counts what it reads."""
    most = 1 << 16
    for word, count in zip(words, counts.tolist(), strict=True):
        for begin in range(0, count, most):
            yield [word] * min(most, count - begin)


def _most_frequent(table: pa.Table, limit: int) -> pa.Table:
    order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("word", "ascending")])
    return table.take(order.slice(0, limit)).combine_chunks()


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, COUNTS) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
