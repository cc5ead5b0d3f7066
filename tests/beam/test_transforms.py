"""Transforms give what the stages give: `CleanDocuments` with filters, `BuildInstances`, `CountWords`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that

import corpusforge as cf
import corpusforge.beam as transforms
from corpusforge import errors, sections
from corpusforge.beam.engine import BeamEngine
from corpusforge.clean.cleaner import cleaner_of
from corpusforge.instances import build
from corpusforge.progress import Silent
from corpusforge.sections import Clean, Instances
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.wordpiece import learn
from tests.beam.documents_on_disk import write_units
from tests.beam.raw_pages import OFFLINE, OWN_REASONS, own_filters, rows_of, write_pages
from tests.beam.stage_folders import ROWS, batches, content, finished, pipeline


def clean_to(folder: Path, documents: Any, unread: Any, cleaning: Any) -> None:
    """Clean documents, and write the folder of a finished stage."""
    name = folder.name
    kept, dropped = documents | f"Clean {name}" >> cleaning
    written = (
        kept | f"Documents {name}" >> transforms.WriteShards(str(folder), "documents"),
        (unread, dropped) | f"Rejects {name}" >> transforms.WriteShards(str(folder), "rejects"),
    )
    _ = written | f"Manifest {name}" >> transforms.WriteManifest(str(folder), "clean", ("documents", "rejects"))


def what_stays_and_goes(folder: Path) -> list[list[tuple[Any, ...]]]:
    """The documents and rejects of a folder without what depends on where rows are."""
    columns = {"documents": ("url", "text"), "rejects": ("reason", "step", "url", "line", "detail", "text")}
    tables = {name: cf.load(folder).table(name).to_pylist() for name in columns}
    return [sorted((tuple(row[c] for c in columns[name]) for row in tables[name]), key=repr) for name in columns]


@pytest.mark.slow
def test_filters_of_ones_own_give_what_the_stage_gives(tmp_path: Path) -> None:
    pages, section = write_pages(tmp_path / "pages", 60), Clean(**OFFLINE)
    rows = rows_of(pages)
    local = cf.clean(pages, output=tmp_path / "stage", filters=own_filters(), workers=1, progress=False, **OFFLINE)
    assert set(local.counts) > OWN_REASONS
    cf.clean(iter(rows), output=tmp_path / "memory", filters=own_filters(), workers=1, progress=False, **OFFLINE)
    with pipeline() as p:
        documents, unread = p | transforms.ReadDocuments([str(pages)], batch_bytes=3000)
        clean_to(tmp_path / "section", documents, unread, transforms.CleanDocuments(section, filters=own_filters()))
        ready = cleaner_of(section, filters=own_filters())
        clean_to(tmp_path / "cleaner", documents, unread, transforms.CleanDocuments(ready))
        documents, unread = p | beam.Create(rows) | transforms.RowsToDocuments(batch_bytes=3000)
        clean_to(tmp_path / "rows", documents, unread, transforms.CleanDocuments(section, filters=own_filters()))
    for table in ("documents", "rejects"):
        stage = local.manifest.content[table], local.manifest.rows[table]
        assert finished(tmp_path / "section", table) == finished(tmp_path / "cleaner", table) == stage
    assert what_stays_and_goes(tmp_path / "rows") == what_stays_and_goes(tmp_path / "memory")


def test_wrong_filters_are_refused_when_the_graph_is_built() -> None:
    lock = threading.Lock()
    with pytest.raises(errors.FilterFailed, match="no digest can be made"):
        transforms.CleanDocuments(Clean(**OFFLINE), filters=[lambda text: lock.locked()])
    with pytest.raises(errors.FilterFailed, match="takes no more filters"):
        transforms.CleanDocuments(cleaner_of(Clean(**OFFLINE)), filters=[str.isascii])


@pytest.mark.slow
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
