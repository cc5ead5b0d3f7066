"""Counting words on Beam: the first half of the stage `train-vocab`, and the transform for anyone's pipeline.

    document shards -> CountWork -> word counts of each shard
    counts -> (partition, packed counts) -> CombinePerKey(merge) -> words/part-PPPPP.arrow

Memory is that of distinct words, whatever the corpus. The learner reads the merged blocks one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from corpusforge import shards
from corpusforge.beam.engine import Engine, listed, run_map
from corpusforge.beam.sdk import as_itself, beam
from corpusforge.progress import Progress
from corpusforge.tokens.columns import Cutting
from corpusforge.tokens.counts import count_words, merge_counts, pack_counts, read_counts
from corpusforge.tokens.words import UNCASED
from corpusforge.units import ShardUnit
from corpusforge.work.vocab import CountWork, partition_blocks

PARTITIONS = 64
"""Parts of the word table, by hash of the word: one is merged at a time."""

SCRATCH = "scratch"


def run(engine: Engine, cutting: Cutting, units: Sequence[ShardUnit], output: str, progress: Progress) -> list[str]:
    """Count the words of all units; returns the paths of the merged blocks, Arrow streams of COUNTS, by partition."""
    scratch = shards.join(output, SCRATCH)
    sizes = [unit.bytes for unit in units]
    run_map(engine, CountWork(scratch, cutting), units, sizes, label="count", folder=scratch, progress=progress)
    entries = shards.load_entries(scratch, len(units))
    paths = [shards.join(scratch, entry.tables["counts"].name) for entry in entries]
    words = shards.join(output, "words")
    shards.remove(words)

    def build(pipeline: Any) -> None:
        _ = (
            listed(pipeline, engine, scratch, paths)
            | "Partition" >> beam.ParDo(_Partition())
            | "Merge" >> beam.CombinePerKey(merge_blocks)
            | "WriteWords" >> beam.ParDo(_WriteWords(words))
        )

    engine.run(build)
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


class _Partition(beam.DoFn):  # type: ignore[misc, name-defined]
    """Path of a shard's counts -> (partition, packed counts)."""

    def process(self, path: str) -> Iterator[tuple[int, bytes]]:
        with as_itself():
            yield from partition_blocks(path, PARTITIONS)


class _WriteWords(beam.DoFn):  # type: ignore[misc, name-defined]
    """(partition, packed counts of the corpus) -> a file under ``words/``."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def process(self, group: tuple[int, bytes]) -> None:
        partition, block = group
        shards.write_bytes(shards.join(self.folder, f"part-{partition:05d}.arrow"), block)


class CountWords(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to COUNTS batches (word, count): one a partition of the words, each word in one of them.

    What travels are the packed counts of a batch, never words one by one.

        counts = documents | CountWords(Normalization(lowercase=True))
    """

    def __init__(self, cutting: Cutting = UNCASED) -> None:
        super().__init__()
        self.cutting = cutting

    def expand(self, documents: Any) -> Any:
        return (
            documents
            | "Count" >> beam.ParDo(_CountBatch(self.cutting))
            | "Merge" >> beam.CombinePerKey(merge_blocks)
            | "Unpack" >> beam.ParDo(_Unpack()).with_output_types(pa.RecordBatch)
        )


class _CountBatch(beam.DoFn):  # type: ignore[misc, name-defined]
    """A batch -> (partition, packed counts)."""

    def __init__(self, cutting: Cutting) -> None:
        self.cutting = cutting

    def process(self, documents: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        yield from pack_counts(count_words(documents.column("text"), self.cutting), PARTITIONS)


class _Unpack(beam.DoFn):  # type: ignore[misc, name-defined]
    """(partition, packed counts) -> COUNTS batches."""

    def process(self, group: tuple[int, bytes]) -> Iterator[pa.RecordBatch]:
        yield from read_counts(group[1]).combine_chunks().to_batches()
