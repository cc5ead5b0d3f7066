"""Batches in and out of a pipeline: the coder, shards, manifests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that

import corpusforge.beam as transforms
from corpusforge import errors
from corpusforge.content import ContentDigest
from corpusforge.shards import Manifest
from tests.beam.documents_on_disk import documents
from tests.beam.stage_folders import ROWS, counters, finished, pipeline


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


def test_rows_give_the_same_documents_in_any_order_and_bundles(tmp_path: Path) -> None:
    rows = [{"body": f"Text {n}. " * n, "url": f"u{n}", "timestamp": n, "likes": n} for n in range(40)]
    rows += [{"body": None, "url": f"null{n}", "timestamp": None, "likes": 0} for n in range(3)]
    shuffled = random.Random(0).sample(rows, len(rows))
    with pipeline() as p:
        parts = tuple(p | f"Rows {n}" >> beam.Create(shuffled[n::5]) for n in range(5))
        given: dict[str, tuple[Any, int]] = {
            "alone": (p | "Alone" >> beam.Create(rows), 1),
            "together": (p | "Together" >> beam.Create(rows, reshuffle=False), 1 << 20),
            "mixed": (parts | beam.Flatten() | beam.Reshuffle(), 2000),
        }
        for name, (collection, size) in given.items():
            converting = transforms.RowsToDocuments(text_column="body", source="table", batch_bytes=size)
            documents, rejects = collection | f"Convert {name}" >> converting
            written = (
                documents | f"Documents {name}" >> transforms.WriteShards(str(tmp_path / name), "documents"),
                rejects | f"Rejects {name}" >> transforms.WriteShards(str(tmp_path / name), "rejects"),
            )
            _ = written | f"Manifest {name}" >> transforms.WriteManifest(str(tmp_path / name), "read", ())
    manifests = [Manifest.load(str(tmp_path / name)) for name in given]
    assert [manifest.rows for manifest in manifests] == [{"documents": 40, "rejects": 3}] * 3
    assert manifests[0].content == manifests[1].content == manifests[2].content
    assert counters(p.result) == {"record:no-text": 3}  # of one of the three


def test_rows_that_are_no_dicts() -> None:
    p = pipeline()
    _ = p | beam.Create([{"text": "a"}, ("a", "b")]) | transforms.RowsToDocuments()
    with pytest.raises(errors.InputUnreadable, match="a row is a tuple, not a dict"):
        p.run()


def test_reading_a_table_that_is_not_there(tmp_path: Path) -> None:
    p = pipeline()
    _ = p | transforms.ReadShards(str(tmp_path), "documents")
    with pytest.raises(errors.ManifestInvalid, match="no manifest"):
        p.run()
