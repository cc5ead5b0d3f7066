"""`BuildInstances` builds the instances of the stage, `CountWords` counts what a plain count of all text gives."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that

import corpusforge.beam as transforms
from corpusforge import sections
from corpusforge.beam.engine import BeamEngine
from corpusforge.instances import build
from corpusforge.progress import Silent
from corpusforge.sections import Instances
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.wordpiece import learn
from tests.beam.documents_on_disk import write_units
from tests.beam.stage_folders import ROWS, batches, content, finished, pipeline


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


def test_words() -> None:
    def check(counted: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(counted).sort_by("word").combine_chunks()
        assert table.equals(count_words(ROWS.column("text")))

    with pipeline() as p:
        assert_that(p | beam.Create(batches(ROWS, 11)) | transforms.CountWords(), check)
