"""Counting words on Beam: the first half of the stage `train-vocab`, and the transform for anyone's pipeline.

    document shards -> CountWork -> word counts of each shard
    counts -> (partition, packed counts) -> CombinePerKey(merge) -> words/part-PPPPP.arrow

Memory is that of distinct words, whatever the corpus. The learner reads the merged blocks one after another.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from corpusforge import shards
from corpusforge.beam.sdk import beam
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.counts import count_words, merge_counts, pack_counts, read_counts
from corpusforge.tokens.splitting import Segmentation
from corpusforge.units import ShardUnit
from corpusforge.work.vocab import CountWork, partition_blocks

PARTITIONS = 64
"""Parts of the word table, by hash of the word: one is merged at a time."""

SCRATCH = "scratch"


def run(
    engine: Engine, segmentation: Segmentation, units: Sequence[ShardUnit], output: str, progress: Progress
) -> list[str]:
    """Count the words of all units; returns the paths of the merged blocks, Arrow streams of COUNTS, by partition."""
    scratch = shards.join(output, SCRATCH)
    sizes = [unit.bytes for unit in units]
    engine.map(CountWork(scratch, segmentation), units, sizes, label="count", folder=scratch, progress=progress)
    entries = shards.load_entries(scratch, len(units))
    paths = [shards.join(scratch, entry.tables["counts"].name) for entry in entries]
    words = shards.join(output, "words")
    shards.remove(words)

    write = functools.partial(_write_words, words)
    engine.shuffle(paths, _partition, write, combine=merge_blocks, folder=scratch)
    shards.remove(scratch)
    return [shards.join(words, name) for name in shards.list_names(words, ".arrow")]


def read_blocks(paths: Iterable[str]) -> Iterator[bytes]:
    """The merged blocks that `run` wrote, for `tokens.counts.select_counts`."""
    for path in paths:
        with shards.open_binary(path) as file:
            yield file.read()


def merge_blocks(blocks: Iterable[bytes]) -> bytes:
    """Packed counts added up; Beam calls this with a few at a time, in any order, and with none at first."""
    return merge_counts(list(blocks))


def _partition(path: str) -> list[tuple[int, bytes]]:
    """The counts of a shard: (partition, packed counts)."""
    return partition_blocks(path, PARTITIONS)


def _write_words(folder: str, partition: int, blocks: Iterable[bytes]) -> None:
    """The counts of one partition of the words in the whole corpus -> a file under ``words/``."""
    shards.write_bytes(shards.join(folder, f"part-{partition:05d}.arrow"), merge_blocks(blocks))


class CountWords(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to COUNTS batches (word, count): one a partition of the words, each word in one of them.

    What travels are the packed counts of a batch, never words one by one.

        counts = documents | CountWords(BertSegmentation(lowercase=True))
    """

    def __init__(self, segmentation: Segmentation = UNCASED) -> None:
        super().__init__()
        self.segmentation = segmentation

    def expand(self, documents: Any) -> Any:
        return (
            documents
            | "Count" >> beam.ParDo(_CountBatch(self.segmentation))
            | "Merge" >> beam.CombinePerKey(merge_blocks)
            | "Unpack" >> beam.ParDo(_Unpack()).with_output_types(pa.RecordBatch)
        )


class _CountBatch(beam.DoFn):  # type: ignore[misc, name-defined]
    """A batch -> (partition, packed counts)."""

    def __init__(self, segmentation: Segmentation) -> None:
        self.segmentation = segmentation

    def process(self, documents: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        yield from pack_counts(count_words(documents.column("text"), self.segmentation), PARTITIONS)


class _Unpack(beam.DoFn):  # type: ignore[misc, name-defined]
    """(partition, packed counts) -> COUNTS batches."""

    def process(self, group: tuple[int, bytes]) -> Iterator[pa.RecordBatch]:
        yield from read_counts(group[1]).combine_chunks().to_batches()
