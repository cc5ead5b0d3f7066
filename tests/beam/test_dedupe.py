"""`DedupeSpans` and `DedupeDocuments` give what the stage gives, whatever the batches."""

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
from tests.beam.stage_folders import ROWS, batches, content, counters, finished, pipeline


@pytest.mark.slow
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


PAGES = corpus()


@pytest.mark.slow
@pytest.mark.parametrize(("size", "keep"), [(9, "hash"), (70, "hash"), (23, "longest")])
def test_documents_give_what_the_stage_gives(size: int, keep: str, tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", PAGES, [20, 41])
    settings = Dedupe(method=("documents",), keep=keep)
    methods.run(BeamEngine(1), settings, units, str(tmp_path / "stage"), Silent())
    out = str(tmp_path / "own")
    with pipeline() as p:
        outputs = p | beam.Create(batches(PAGES, size)) | transforms.DedupeDocuments(keep=keep)
        names = ("documents", "repeats", "clusters")
        written = tuple(
            rows | n.title() >> transforms.WriteShards(out, n) for n, rows in zip(names, outputs, strict=True)
        )
        _ = written | transforms.WriteManifest(out, "dedupe", names)
    for table in names:
        assert finished(tmp_path / "own", table) == content(tmp_path / "stage", table)
    assert content(tmp_path / "stage", "clusters")[1] > content(tmp_path / "stage", "repeats")[1] > 15


@pytest.mark.slow
def test_no_similar_documents_and_no_documents() -> None:
    def all_of(rows: pa.RecordBatch) -> Any:
        def check(outputs: list[pa.RecordBatch]) -> None:
            assert sorted(i for batch in outputs for i in batch["id"].to_pylist()) == sorted(rows["id"].to_pylist())

        return check

    for rows in (PAGES.slice(0, 3), PAGES.slice(0, 0)):
        with pipeline() as p:
            kept, _, _ = p | beam.Create([rows]) | transforms.DedupeDocuments()
            assert_that(kept, all_of(rows))


def test_documents_given_twice_are_refused() -> None:
    p = pipeline()
    _ = p | beam.Create(batches(PAGES, 30) * 2) | transforms.DedupeDocuments()
    with pytest.raises(errors.StageMismatch, match="come twice"):
        p.run()
