"""Counting words in anyone's pipeline: the transform over the same functions as the stage `train-vocab`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from corpusforge.beam.sdk import beam
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.counts import PARTITIONS, count_words, merge_counts, pack_counts, read_counts
from corpusforge.tokens.splitting import Segmentation


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
            | "Merge" >> beam.CombinePerKey(merge_counts)
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
