"""The clean stage on Beam: any width, killed and resumed, as a transform, through the portable protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import corpusforge.beam as transforms
from corpusforge import shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.clean.work import CleanWork
from corpusforge.clean.work import run as run_stage
from corpusforge.documents.plan import unit_size
from corpusforge.documents.read import read_unit
from corpusforge.documents.records import ReadOptions
from corpusforge.progress import Silent
from tests.beam.raw_pages import UNIT_BYTES, cleaner, plan, write_pages
from tests.beam.stage_folders import content, counters, finished

TABLES = ("documents", "rejects")


def run(
    pages: Path,
    output: Path,
    engine: BeamEngine,
    *,
    keep_rejects: bool = True,
    shard_bytes: int = 1 << 26,
    newest_memory: int = 0,
) -> None:
    work = CleanWork(str(output), ReadOptions(), cleaner(), shard_bytes, keep_rejects)
    units = plan(pages)
    assert len(units) > 2
    sizes = [unit_size(u) for u in units]
    run_stage(engine, work, units, sizes, str(output), Silent(), newest_memory=newest_memory)


def counted(folder: Path) -> tuple[shards.Tallies, dict[str, Any]]:
    return shards.gather(shards.load_entries(str(folder)))[1:]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pages(tmp_path_factory.mktemp("raw") / "pages")


@pytest.fixture(scope="module")
def straight(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("straight") / "out"
    run(pages, folder, BeamEngine(1))
    return folder


def test_every_record_is_a_document_or_a_reject(straight: Path) -> None:
    _, tallies, statistics = shards.gather(shards.load_entries(str(straight)))
    assert statistics["records_in"] == 120
    records = sum(tally["rows"] for reason, tally in tallies.items() if reason.startswith("record:"))
    assert records == 24
    assert statistics["documents_in"] == 120 - records
    dropped = sum(tally["rows"] for reason, tally in tallies.items() if reason != "kept")
    assert content(straight, "rejects")[1] == dropped
    assert content(straight, "documents")[1] == statistics["documents_out"] > 50


@pytest.mark.parametrize("shard_bytes", [1 << 26, 5000])
def test_workers_and_shards_change_nothing(shard_bytes: int, pages: Path, straight: Path, tmp_path: Path) -> None:
    run(pages, tmp_path, BeamEngine(2), shard_bytes=shard_bytes)
    for table in TABLES:
        assert content(tmp_path, table) == content(straight, table)


def test_rejects_may_only_be_counted(pages: Path, straight: Path, tmp_path: Path) -> None:
    run(pages, tmp_path, BeamEngine(1), keep_rejects=False)
    assert not (tmp_path / "rejects").exists()
    assert counted(tmp_path) == counted(straight)


@pytest.mark.parametrize("after", [1, 2, 4])
def test_killed_anywhere_it_resumes(
    after: int, pages: Path, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of about 3 kB, a shard each; the reader stops in the middle of a unit."""
    import corpusforge.documents.read as reader

    left = [after]

    def broken(unit: object, options: object, skip: int = 0) -> Iterator[object]:
        for batch in read_unit(unit, options, skip, 3000):  # type: ignore[arg-type]
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            yield batch

    monkeypatch.setattr(reader, "read_unit", broken)
    with pytest.raises(KeyboardInterrupt):
        run(pages, tmp_path, BeamEngine(1), shard_bytes=2000)
    assert len(shards.load_entries(str(tmp_path))) == after
    left[0] = 10**6
    run(pages, tmp_path, BeamEngine(1), shard_bytes=2000)
    for table in TABLES:
        assert content(tmp_path, table) == content(straight, table)
    assert counted(tmp_path) == counted(straight)


def test_the_transforms_give_the_same(pages: Path, straight: Path, tmp_path: Path) -> None:
    out = str(tmp_path)
    p = beam.Pipeline(runner=FnApiRunner())
    documents, unreadable = p | transforms.ReadDocuments([str(pages)], unit_bytes=UNIT_BYTES, batch_bytes=7000)
    kept, dropped = documents | transforms.CleanDocuments(cleaner())
    written = (
        kept | "Documents" >> transforms.WriteShards(out, "documents"),
        (unreadable, dropped) | "Rejects" >> transforms.WriteShards(out, "rejects"),
    )
    _ = written | transforms.WriteManifest(out, "clean", TABLES)
    result = p.run()
    result.wait_until_finish()
    for table in TABLES:
        assert finished(tmp_path, table) == content(straight, table)
    _, tallies, _ = shards.gather(shards.load_entries(str(straight)))
    assert counters(result) == {reason: tally["rows"] for reason, tally in tallies.items()}
