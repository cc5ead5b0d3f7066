"""`CountWords` counts what a plain count of all text gives."""

from __future__ import annotations

import apache_beam as beam
import pyarrow as pa
from apache_beam.testing.util import assert_that

import corpusforge.beam as transforms
from corpusforge.tokens.counts import count_words
from tests.beam.stage_folders import ROWS, batches, pipeline


def test_words() -> None:
    def check(found: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(found).sort_by("word").combine_chunks()
        assert table.equals(count_words(ROWS.column("text")))

    with pipeline() as p:
        assert_that(p | beam.Create(batches(ROWS, 11)) | transforms.CountWords(), check)
