"""Batches in and out of a pipeline: the coder, shards, manifests."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that

import corpusforge.beam as transforms
from corpusforge import errors
from corpusforge.content import ContentDigest
from tests.beam.documents_on_disk import documents
from tests.beam.stage_folders import ROWS, finished, pipeline


def test_coder_keeps_only_what_a_slice_shows() -> None:
    coder = transforms.RecordBatchCoder()
    part = documents(1000).slice(10, 2)
    encoded = coder.encode(part)
    assert coder.decode(encoded).equals(part)
    assert len(encoded) < 8000
    assert isinstance(beam.coders.registry.get_coder(pa.RecordBatch), transforms.RecordBatchCoder)


def test_shards_are_read_back_in_bounded_batches(tmp_path: Path) -> None:
    out = str(tmp_path)
    with pipeline() as p:
        written = p | beam.Create([ROWS]) | transforms.WriteShards(out, "documents")
        _ = written | transforms.WriteManifest(out, "made", ("documents", "rejects"))
    assert finished(tmp_path, "rejects")[1] == 0

    def check(read: list[pa.RecordBatch]) -> None:
        assert len(read) > 3
        digest = ContentDigest()
        for batch in read:
            digest.add(batch)
        assert digest.hex() == finished(tmp_path, "documents")[0]

    with pipeline() as p:
        assert_that(p | transforms.ReadShards(out, "documents", batch_bytes=5000), check)


def test_reading_a_table_that_is_not_there(tmp_path: Path) -> None:
    p = pipeline()
    _ = p | transforms.ReadShards(str(tmp_path), "documents")
    with pytest.raises(errors.ManifestInvalid, match="no manifest"):
        p.run()
