"""The graph of exact spans: the same content for any cut of the corpus, any width, and after a crash."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from corpusforge import shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.dedupe import exact_spans, memory, methods
from corpusforge.dedupe.job import Job
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit
from tests.beam.documents_on_disk import write_units
from tests.beam.stage_folders import ROWS, Elsewhere, content


def deduped(folder: Path, cuts: list[int], workers: int) -> Path:
    units = write_units(folder, ROWS, cuts)
    methods.run(BeamEngine(workers), Dedupe(), units, str(folder / "out"), Silent())
    assert not (folder / "out" / methods.SCRATCH).exists()
    return folder / "out"


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return deduped(tmp_path_factory.mktemp("straight"), [], 1)


def test_dedupe_cuts_something(straight: Path) -> None:
    assert content(straight, "repeats")[1] > 20
    assert 0 < content(straight, "documents")[1] <= 90


@pytest.mark.parametrize("workers", [1, 2])
def test_dedupe_does_not_depend_on_the_cut(workers: int, tmp_path: Path, straight: Path) -> None:
    out = deduped(tmp_path, [10, 1, 40, 0], workers)
    for table in ("documents", "repeats"):
        assert content(out, table) == content(straight, table)


def test_dedupe_in_rounds(tmp_path: Path, straight: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "exact_rounds", lambda *_: 3)
    out = deduped(tmp_path, [30], 1)
    for table in ("documents", "repeats"):
        assert content(out, table) == content(straight, table)


@pytest.mark.parametrize("rounds", [3, 2])
def test_dedupe_resumes_after_a_crash_between_rounds(
    rounds: int, tmp_path: Path, straight: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same number of rounds complete ones are kept; with another number all are run again."""
    units = write_units(tmp_path, ROWS, [30])
    whole, done = exact_spans._compare_round, []

    def stumble(job: Job, units: Sequence[ShardUnit], number: int, rounds: int, *how: Any) -> None:
        done.append((number, rounds))
        if done == [(0, 3), (1, 3), (2, 3)]:
            raise RuntimeError("crash")
        whole(job, units, number, rounds, *how)

    monkeypatch.setattr(exact_spans, "_compare_round", stumble)
    monkeypatch.setattr(memory, "exact_rounds", lambda *_: 3)
    with pytest.raises(RuntimeError, match="crash"):
        methods.run(BeamEngine(1), Dedupe(), units, str(tmp_path / "out"), Silent())
    monkeypatch.setattr(memory, "exact_rounds", lambda *_: rounds)
    methods.run(BeamEngine(1), Dedupe(), units, str(tmp_path / "out"), Silent())
    assert done[3:] == ([(2, 3)] if rounds == 3 else [(0, 2), (1, 2)])
    for table in ("documents", "repeats"):
        assert content(tmp_path / "out", table) == content(straight, table)


class Killed(BaseException):
    pass


@pytest.mark.slow
def test_dedupe_killed_while_it_removes_cuts(tmp_path: Path, straight: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds are complete; a run in two is killed where it removes cuts; the next runs in three again."""
    units, out, remove = write_units(tmp_path, ROWS, [30]), str(tmp_path / "out"), shards.remove

    def run(rounds: int) -> None:
        monkeypatch.setattr(memory, "exact_rounds", lambda *_: rounds)
        with contextlib.suppress(Killed):
            methods.run(BeamEngine(1), Dedupe(), units, out, Silent())

    def killed(*_: object, **__: object) -> None:
        raise Killed

    def half(path: str) -> None:
        if Path(path).name.startswith("duplicates"):
            for part in Path(path).glob("*.arrow"):
                part.unlink()
            raise Killed
        remove(path)

    with monkeypatch.context() as patched:
        patched.setattr(exact_spans.CutWork, "of", killed)
        run(3)
    with monkeypatch.context() as patched:
        patched.setattr(shards, "remove", half)
        run(2)
    run(3)
    for table in ("documents", "repeats"):
        assert content(tmp_path / "out", table) == content(straight, table)


def test_dedupe_killed_while_it_removes_its_scratch(
    tmp_path: Path, straight: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half removed cuts are never mistaken for complete ones, even if output was lost since."""
    units, out, remove = write_units(tmp_path, ROWS, [30]), tmp_path / "out", shards.remove

    def half(path: str) -> None:
        if Path(path).name == methods.SCRATCH:
            for part in Path(path).glob("*/duplicates*/*.arrow"):
                part.unlink()
            raise Killed
        remove(path)

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(shards, "remove", half)
        methods.run(BeamEngine(1), Dedupe(), units, str(out), Silent())
    for part in (out / "documents").glob("*.parquet"):
        part.unlink()
    methods.run(BeamEngine(1), Dedupe(), units, str(out), Silent())
    for table in ("documents", "repeats"):
        assert content(out, table) == content(straight, table)


def test_other_runners_compare_in_one_round(tmp_path: Path, straight: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    whole = exact_spans._compare_round
    monkeypatch.setattr(memory, "exact_rounds", lambda *_: 5)
    monkeypatch.setattr(exact_spans, "_compare_round", lambda *given: (seen.append(given[2:4]), whole(*given)))
    methods.run(Elsewhere(1), Dedupe(), write_units(tmp_path, ROWS, [30]), str(tmp_path / "out"), Silent())
    assert seen == [(0, 1)]
    for table in ("documents", "repeats"):
        assert content(tmp_path / "out", table) == content(straight, table)
