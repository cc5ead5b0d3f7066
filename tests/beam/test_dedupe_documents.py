"""`DedupeDocuments` in a pipeline of one's own: what the stage's method `documents` gives, whatever the batches."""

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
from corpusforge.beam.engine import BeamEngine
from corpusforge.dedupe import methods
from corpusforge.progress import Silent
from corpusforge.schemas import DOCUMENTS
from corpusforge.sections import Dedupe
from tests.beam.documents_on_disk import write_units
from tests.beam.test_stage_graphs import content
from tests.beam.test_transforms import batches, finished, pipeline

WORDS = ["river", "forest", "hill", "teacher", "engine", "garden", "window", "market", "station", "bridge"]


def corpus() -> pa.RecordBatch:
    """Copies, edited copies, chains of edits, pages of their own, and pages without words."""
    dice = random.Random(5)
    pages = [[dice.choice(WORDS) + str(dice.randrange(50)) for _ in range(90)] for _ in range(8)]
    rows = []
    for number in range(70):
        words = list(pages[number % 8])
        for _ in range(number % 4):
            words[dice.randrange(90)] = f"edit{number}"
        text = " ".join(words) if number % 9 else "" if number % 2 else "... !"
        rows.append({"id": f"{number:032x}", "source": "made", "position": number, "text": text + "." * (number % 3)})
    return pa.RecordBatch.from_pylist(rows, schema=DOCUMENTS)


ROWS = corpus()


@pytest.mark.parametrize(("size", "keep"), [(9, "hash"), (70, "hash"), (23, "longest")])
def test_gives_what_the_stage_gives(size: int, keep: str, tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", ROWS, [20, 41])
    settings = Dedupe(method=("documents",), keep=keep)
    methods.run(BeamEngine(1), settings, units, str(tmp_path / "stage"), Silent())
    out = str(tmp_path / "own")
    with pipeline() as p:
        outputs = p | beam.Create(batches(ROWS, size)) | transforms.DedupeDocuments(keep=keep)
        names = ("documents", "repeats", "clusters")
        written = tuple(
            rows | n.title() >> transforms.WriteShards(out, n) for n, rows in zip(names, outputs, strict=True)
        )
        _ = written | transforms.WriteManifest(out, "dedupe", names)
    for table in names:
        assert finished(tmp_path / "own", table) == content(tmp_path / "stage", table)
    assert content(tmp_path / "stage", "clusters")[1] > content(tmp_path / "stage", "repeats")[1] > 15


def test_nothing_alike_and_nothing_at_all() -> None:
    def all_of(rows: pa.RecordBatch) -> Any:
        def check(found: list[pa.RecordBatch]) -> None:
            assert sorted(i for batch in found for i in batch["id"].to_pylist()) == sorted(rows["id"].to_pylist())

        return check

    for rows in (ROWS.slice(0, 3), ROWS.slice(0, 0)):
        with pipeline() as p:
            kept, _, _ = p | beam.Create([rows]) | transforms.DedupeDocuments()
            assert_that(kept, all_of(rows))


def test_refuses_documents_given_twice() -> None:
    p = pipeline()
    _ = p | beam.Create(batches(ROWS, 30) * 2) | transforms.DedupeDocuments()
    with pytest.raises(errors.StageMismatch, match="come twice"):
        p.run()
