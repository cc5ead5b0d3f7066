"""The public transforms in a pipeline of one's own: the content of the stages, and what travels on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that

import corpusforge.beam as transforms
from corpusforge import errors, sections, shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.beam.sdk import counters
from corpusforge.content import ContentDigest
from corpusforge.dedupe import methods
from corpusforge.instances import build
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe, Instances
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.wordpiece import learn
from tests.beam.documents_on_disk import documents, write_units
from tests.beam.test_stage_graphs import ROWS, content


def pipeline() -> Any:
    return beam.Pipeline(runner=FnApiRunner())


def batches(rows: pa.RecordBatch, size: int) -> list[pa.RecordBatch]:
    return [rows.slice(first, size) for first in range(0, rows.num_rows, size)]


def finished(folder: Path, table: str) -> tuple[str, int]:
    manifest = shards.Manifest.load(str(folder))
    for path, shard in zip(manifest.paths(str(folder), table), manifest.shards[table], strict=True):
        read = ContentDigest()
        for batch in shards.read_shard(path):
            read.add(batch)
        assert read.hex() == shard.content == Path(path).stem.removeprefix("part-")
    return manifest.content[table], manifest.rows[table]


def test_all_names_load() -> None:
    assert all(getattr(transforms, name) for name in transforms.__all__)
    with pytest.raises(AttributeError):
        _ = transforms.Nothing


def test_coder_keeps_only_what_a_slice_shows() -> None:
    coder = transforms.RecordBatchCoder()
    part = documents(1000).slice(10, 2)
    encoded = coder.encode(part)
    assert coder.decode(encoded).equals(part)
    assert len(encoded) < 8000
    assert isinstance(beam.coders.registry.get_coder(pa.RecordBatch), transforms.RecordBatchCoder)


@pytest.mark.parametrize("size", [7, 90])
def test_dedupe_gives_what_the_stage_gives(size: int, tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", ROWS, [20])
    methods.run(BeamEngine(1), Dedupe(), units, str(tmp_path / "stage"), Silent())
    out = str(tmp_path / "own")
    with pipeline() as p:
        kept, repeats = p | beam.Create(batches(ROWS, size)) | transforms.DedupeSpans()
        written = (
            kept | "Documents" >> transforms.WriteShards(out, "documents", shard_bytes=4000),
            repeats | "Repeats" >> transforms.WriteShards(out, "repeats"),
        )
        _ = written | transforms.WriteManifest(out, "dedupe", ("documents", "repeats"))
    for table in ("documents", "repeats"):
        assert finished(tmp_path / "own", table) == content(tmp_path / "stage", table)


def test_dedupe_refuses_documents_given_twice() -> None:
    p = pipeline()
    _ = p | beam.Create(batches(ROWS, 50) * 2) | transforms.DedupeSpans()
    with pytest.raises(errors.StageMismatch, match="come twice"):
        p.run()


def test_words() -> None:
    def check(found: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(found).sort_by("word").combine_chunks()
        assert table.equals(count_words(ROWS.column("text")))

    with pipeline() as p:
        assert_that(p | beam.Create(batches(ROWS, 11)) | transforms.CountWords(), check)


@pytest.mark.parametrize(
    "section",
    [
        Instances(format="doc-sentences", length=32, heldout=0.2),
        Instances(format="segment-pair", length=32, heldout=0.2, masking="duplicated", copies=2),
        Instances(format="segment-pair", length=32, heldout=0.2, heldout_by="url"),
        Instances(format="segment-pair", length=32, heldout=0.2, masking="static", mask_unit="span"),
    ],
    ids=["doc-sentences", "segment-pair", "held out by URL", "spans"],
)
def test_instances_are_those_of_the_stage(section: Instances, tmp_path: Path) -> None:
    vocab = learn(count_words(ROWS.column("text")), sections.Vocab(size=512, unused=16)).vocab
    units = write_units(tmp_path / "in", ROWS, [20])
    build.run(BeamEngine(1), section, 3, vocab, units, str(tmp_path / "stage"), Silent())
    out = str(tmp_path / "own")
    with pipeline() as p:
        train, heldout = p | beam.Create(batches(ROWS, 13)) | transforms.BuildInstances(vocab, section, seed=3)
        written = (
            train | "Train" >> transforms.WriteShards(out, "train", kind="arrow"),
            heldout | "Heldout" >> transforms.WriteShards(out, "heldout", kind="arrow"),
        )
        _ = written | transforms.WriteManifest(out, "build-instances", ("train", "heldout"))
    for table in ("train", "heldout"):
        assert finished(tmp_path / "own", table) == content(tmp_path / "stage", table)


def test_shards_are_read_back_in_bounded_batches(tmp_path: Path) -> None:
    out = str(tmp_path)
    with pipeline() as p:
        written = p | beam.Create([ROWS]) | transforms.WriteShards(out, "documents")
        _ = written | transforms.WriteManifest(out, "made", ("documents", "rejects"))
    assert finished(tmp_path, "rejects")[1] == 0

    def check(found: list[pa.RecordBatch]) -> None:
        assert len(found) > 3
        digest = ContentDigest()
        for batch in found:
            digest.add(batch)
        assert digest.hex() == finished(tmp_path, "documents")[0]

    with pipeline() as p:
        assert_that(p | transforms.ReadShards(out, "documents", batch_bytes=5000), check)


def test_reading_a_table_that_is_not_there(tmp_path: Path) -> None:
    p = pipeline()
    _ = p | transforms.ReadShards(str(tmp_path), "documents")
    with pytest.raises(errors.ManifestInvalid, match="no manifest"):
        p.run()


def test_counters_of_a_pipeline() -> None:
    p = pipeline()
    _ = p | beam.Create(batches(ROWS, 30)) | transforms.DedupeSpans()
    result = p.run()
    result.wait_until_finish()
    assert counters(result)["span:repeated"] > 20


@pytest.mark.parametrize("transform", [transforms.DedupeSpans, transforms.DedupeDocuments])
def test_the_old_name_of_keep_warns(transform: Any) -> None:
    with pytest.warns(DeprecationWarning, match="use keep"):
        assert transform(survivor="longest").keep == "longest"
