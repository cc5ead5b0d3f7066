"""Similar documents and spans: runs killed again and again, wherever a file is finished, end as undisturbed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpusforge.beam.engine import BeamEngine
from corpusforge.dedupe import methods
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe
from corpusforge.shards import ShardWriter
from tests.beam.documents_on_disk import write_units
from tests.beam.stage_folders import content
from tests.beam.test_dedupe import PAGES

TABLES = {"near-spans": ("documents", "repeats"), "documents": ("documents", "repeats", "clusters", "signatures")}


@pytest.mark.slow
@pytest.mark.parametrize("method", TABLES)
def test_resumes_wherever_it_was_killed(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Dedupe(method=(method,), min_sentences=1, span_sentences=1, export_signatures=True)

    def run(folder: Path) -> None:
        units = write_units(folder / "in", PAGES, [20, 41])
        methods.run(BeamEngine(1), settings, units, str(folder / "out"), Silent())

    run(tmp_path / "straight")
    real, left = ShardWriter.finish, 0

    def sometimes(writer: ShardWriter) -> Any:
        nonlocal left
        if left == 0:
            raise RuntimeError("killed")
        left -= 1
        return real(writer)

    monkeypatch.setattr(ShardWriter, "finish", sometimes)
    attempts = 0
    while attempts < 20:
        attempts, left = attempts + 1, 3 + 9 * attempts  # a round is done anew, and writes up to 64 files
        try:
            run(tmp_path / "killed")
        except RuntimeError as error:
            assert "killed" in str(error)
            continue
        break
    assert 3 < attempts < 20
    assert content(tmp_path / "straight/out", "repeats")[1] > 10
    for table in TABLES[method]:
        assert content(tmp_path / "killed/out", table) == content(tmp_path / "straight/out", table)
    assert not (tmp_path / "killed/out/scratch").exists()
