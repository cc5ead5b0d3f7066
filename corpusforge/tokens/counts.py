"""Count the words of a corpus: the first half of the stage `train-vocab`, exact and in 64 bits.

    document shards -> CountWork -> counts of each shard -> blocks by partition -> merged -> words/part-PPPPP.arrow

Counts are tables (word, count), sorted by the bytes of the word. Between workers they travel as Arrow IPC bytes, one
block for each partition of the words. Merging blocks is associative and commutative down to the byte, so any combiner
tree over any shards of the corpus gives the same vocabulary. Memory follows distinct words, whatever the size of the
corpus.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import xxhash

from corpusforge import shards
from corpusforge.arrays import I64, U64
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.text import text_bytes
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.splitting import Segmentation
from corpusforge.units import ONE_SHARD, Advance, ShardUnit, UnitOutput, UnitResult

COUNTS = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),  # normalized, never empty
        pa.field("count", pa.uint64(), nullable=False),  # occurrences, at least 1
    ]
)

PARTITIONS = 64
"""Parts of the word table, by hash of the word: one is merged at a time."""

FED_OCCURRENCES = 16_000_000
"""The most word occurrences that a trainer reads, about ten seconds of reading; larger counts are scaled down."""

_MERGE_ROWS = 1 << 20
"""Counted rows that pile up before they are merged: bounds memory at distinct words plus this many."""


def count_units(
    engine: Engine, segmentation: Segmentation, units: Sequence[ShardUnit], output: str, progress: Progress
) -> list[str]:
    """Count the words of all units; returns the paths of the merged blocks, one per partition (`read_blocks`)."""
    scratch, words = shards.join(output, "scratch"), shards.join(output, "words")
    sizes = [unit.bytes for unit in units]
    engine.map(CountWork(scratch, segmentation), units, sizes, label="count", folder=scratch, progress=progress)
    entries = shards.load_entries(scratch, len(units))
    paths = [shards.join(scratch, entry.tables["counts"].name) for entry in entries]
    shards.remove(words)
    engine.shuffle(paths, shard_blocks, functools.partial(_write_words, words), combine=merge_counts, folder=scratch)
    shards.remove(scratch)
    return [shards.join(words, name) for name in shards.list_names(words, ".arrow")]


def read_blocks(paths: Iterable[str]) -> Iterator[bytes]:
    """The merged blocks that `count_units` wrote, one after another, for `select_counts`."""
    for path in paths:
        with shards.open_binary(path) as file:
            yield file.read()


@dataclasses.dataclass(frozen=True)
class CountWork:
    """Counts the words of a document shard into one shard ``counts/`` below ``output``.

    Nothing is left out: rare words of a shard may be frequent in the corpus. ``merge_bytes``: text between two merges
    of what was counted, so that memory follows the distinct words of the shard.
    """

    output: str
    segmentation: Segmentation
    merge_bytes: int = 64 << 20

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Count one shard; statistics: documents, text_bytes, words, distinct_words (summed over shards)."""
        # One shard: half a unit's counts would only have to be merged again.
        with UnitOutput(self.output, unit.number, {"counts": (COUNTS, "arrow")}, ONE_SHARD) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            counts, documents, size = self._count(unit, advance)
            statistics = {
                "documents": documents,
                "text_bytes": size,
                "words": sum(counts["count"].to_numpy().tolist()),
                "distinct_words": len(counts),
            }
            for batch in counts.to_batches():
                output.write({"counts": batch}, position=documents, size=0, tallies={}, statistics={})
            output.write({}, position=documents, size=size, tallies={}, statistics=statistics)
            return output.finish()

    def _count(self, unit: ShardUnit, advance: Advance) -> tuple[pa.Table, int, int]:
        merged, waiting = COUNTS.empty_table(), []
        documents = size = unmerged = reported = 0
        for batch in shards.read_shard(unit.path):
            column = batch.column("text")
            _, offsets = text_bytes(column)
            waiting.append(count_words(column, self.segmentation))
            documents, size = documents + len(column), size + int(offsets[-1] - offsets[0])
            unmerged += int(offsets[-1] - offsets[0])
            if unmerged >= self.merge_bytes:
                merged, waiting, unmerged = merge_tables([merged, *waiting]), [], 0
            done = unit.bytes * documents // max(unit.rows, documents)
            advance(done - reported)
            reported = done
        advance(unit.bytes - reported)
        return merge_tables([merged, *waiting]), documents, size


def shard_blocks(path: str, partitions: int = PARTITIONS) -> list[tuple[int, bytes]]:
    """The blocks of one shard that `CountWork` wrote: (partition, block), ascending."""
    return pack_counts(pa.Table.from_batches(list(shards.read_shard(path)), COUNTS), partitions)


def _write_words(folder: str, partition: int, blocks: Iterable[bytes]) -> None:
    shards.write_bytes(shards.join(folder, f"part-{partition:05d}.arrow"), merge_counts(blocks))


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
    # Python loop: one C hash call (0.1 us) per distinct word, far fewer than the text has.
    hashes = np.fromiter((digest(word.encode()) for word in words), np.uint64, len(words))
    keys = (hashes % np.uint64(partitions)).astype(np.int64)
    order = np.argsort(keys, kind="stable")
    bounds = np.searchsorted(keys[order], np.arange(partitions + 1))
    # A take for each block, not a slice: the bytes of a slice would depend on its offset.
    filled = np.flatnonzero(np.diff(bounds)).tolist()
    return [(p, _to_bytes(counts.take(order[bounds[p] : bounds[p + 1]]))) for p in filled]


def merge_counts(blocks: Iterable[bytes]) -> bytes:
    """One block with the counts of several added up. Associative and commutative; of no blocks an empty one.

    >>> block = lambda *words: pack_counts(count_words(pa.array(words)), 1)[0][1]
    >>> merge_counts([block("a b"), block("b c")]) == merge_counts([block("c"), block("b a b")])
    True
    """
    return _to_bytes(merge_tables([read_counts(block) for block in blocks]))


def read_counts(block: bytes) -> pa.Table:
    """The COUNTS table in a block."""
    return pa.ipc.open_stream(block).read_all()


def select_counts(blocks: Iterable[bytes], *, min_count: int, max_words: int) -> tuple[pa.Table, dict[str, int]]:
    """From merged blocks, one per partition: the words worth learning from, and what was left out.

    Kept are the ``max_words`` most frequent words seen at least ``min_count`` times; among words of the same count
    those that sort first. Memory: the kept words and one block, whatever the corpus.

    >>> block = pack_counts(count_words(pa.array(["a a a b b c d d"])), 1)[0][1]
    >>> table, statistics = select_counts([block], min_count=2, max_words=2)
    >>> table.to_pydict(), statistics["words"]
    ({'word': ['a', 'b'], 'count': [3, 2]}, 8)
    """
    kept = COUNTS.empty_table()
    statistics = {"words": 0, "distinct_words": 0, "words_too_rare": 0, "distinct_words_too_rare": 0}
    for block in blocks:
        table = read_counts(block)
        frequent = table.filter(pc.greater_equal(table["count"], pa.scalar(min_count, pa.uint64())))
        statistics["words"] += pc.sum(table["count"]).as_py() or 0
        statistics["distinct_words"] += len(table)
        statistics["words_too_rare"] += (pc.sum(table["count"]).as_py() or 0) - (pc.sum(frequent["count"]).as_py() or 0)
        statistics["distinct_words_too_rare"] += len(table) - len(frequent)
        kept = pa.concat_tables([kept, frequent])
        if len(kept) > 2 * max_words:
            kept = _most_frequent(kept, max_words)
    selected = _most_frequent(kept, max_words)
    statistics["distinct_words_selected"] = len(selected)
    statistics["words_selected"] = pc.sum(selected["count"]).as_py() or 0
    return selected.take(pc.sort_indices(selected["word"])).combine_chunks(), statistics


def _most_frequent(table: pa.Table, limit: int) -> pa.Table:
    order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("word", "ascending")])
    return table.take(order.slice(0, limit)).combine_chunks()


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
    """Each word repeated by its count, in lists of limited length: the trainer counts what it reads."""
    most = 1 << 16
    for word, count in zip(words, counts.tolist(), strict=True):
        for begin in range(0, count, most):
            yield [word] * min(most, count - begin)


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, COUNTS) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
