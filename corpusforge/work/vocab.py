"""Counting the words of one document shard, and handing the counts to a shuffle.

In: a Parquet shard of DOCUMENTS. Out: one ``counts/`` shard (word, count), sorted by word, and blocks of it for each
partition. Text is read and counted a few megabytes at a time, and what was counted is merged at a fixed size of text,
so memory follows the distinct words of the shard. Nothing is left out here: rare words of one shard may be frequent in
the corpus.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from corpusforge import shards
from corpusforge.text import text_bytes
from corpusforge.tokens.counts import COUNTS, count_words, merge_tables, pack_counts
from corpusforge.tokens.splitting import Segmentation
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult

TABLES = {"counts": (COUNTS, "arrow")}

_WHOLE = 1 << 62
"""A unit's counts are one shard: half a shard's counts would only have to be merged again."""


@dataclasses.dataclass(frozen=True)
class CountWork:
    """Counts the words of document shards into ``output``. ``merge_bytes``: text between two merges."""

    output: str
    segmentation: Segmentation
    merge_bytes: int = 64 << 20

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Count one shard; statistics: documents, text_bytes, words, distinct_words (summed over shards)."""
        with UnitOutput(self.output, unit.number, TABLES, _WHOLE) as output:
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
        documents = size = unmerged = told = 0
        for batch in shards.read_shard(unit.path):
            column = batch.column("text")
            _, offsets = text_bytes(column)
            waiting.append(count_words(column, self.segmentation))
            documents, size = documents + len(column), size + int(offsets[-1] - offsets[0])
            unmerged += int(offsets[-1] - offsets[0])
            if unmerged >= self.merge_bytes:
                merged, waiting, unmerged = merge_tables([merged, *waiting]), [], 0
            done = unit.bytes * documents // max(unit.rows, documents)
            advance(done - told)
            told = done
        advance(unit.bytes - told)
        return merge_tables([merged, *waiting]), documents, size


def partition_blocks(path: str, partitions: int) -> list[tuple[int, bytes]]:
    """The counts of one ``counts/`` shard as blocks for `merge_counts`: (partition, bytes), ascending."""
    batches = list(shards.read_shard(path))
    return pack_counts(pa.Table.from_batches(batches, COUNTS), partitions)
