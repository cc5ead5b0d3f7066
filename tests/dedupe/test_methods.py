"""A chain of methods that is killed resumes in the method it was in, and ends as an undisturbed one."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpusforge import shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.content import combine
from corpusforge.dedupe import exact_spans, lines, methods
from corpusforge.dedupe.exact_spans import CutWork
from corpusforge.dedupe.job import Job
from corpusforge.dedupe.lines import CutLinesWork
from corpusforge.dedupe.methods import CarryWork
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit
from tests.dedupe.test_any_order import ROWS, deduped, units_of

CHAIN = Dedupe(method=("lines", "exact-spans"), sentences="builtin")


class Killed(BaseException):
    pass


def content(folder: Path) -> dict[str, str]:
    entries = shards.load_entries(str(folder))
    return {t: combine(e.tables[t].content for e in entries if t in e.tables) for t in ("documents", "repeats")}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Any, Any]:
    contents, tallies, statistics = deduped(tmp_path_factory.mktemp("straight"), CHAIN, 0, 3, 1)
    return contents, tallies, statistics


@pytest.fixture
def units(tmp_path: Path) -> Iterator[list[ShardUnit]]:
    yield units_of(tmp_path / "in", ROWS, random.Random(0), 3)


def fail_at(number: int, work: Any) -> Any:
    """The work of a class, without its subclasses, killed at the unit of this number."""
    real = work.__call__

    def call(self: Any, unit: Any, advance: Any) -> Any:
        if type(self) is work and unit.number % 3 == number:
            raise Killed
        return real(self, unit, advance)

    return call


@pytest.mark.parametrize("work", [CutLinesWork, CarryWork, CutWork], ids=lambda work: work.__name__)
def test_killed_in_any_method_and_resumed(
    work: type, units: list[ShardUnit], tmp_path: Path, straight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "out")
    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(work, "__call__", fail_at(1, work))
        methods.run(BeamEngine(1), CHAIN, units, out, Silent())
    assert not (tmp_path / "out/documents/part-00001-00000.parquet").exists()
    if work is not CutLinesWork:  # the first method is through, and is not begun again
        monkeypatch.setattr(lines, "run", None)
    done = methods.run(BeamEngine(1), CHAIN, units, out, Silent())
    assert (content(tmp_path / "out"), done.tallies, done.statistics) == straight
    assert not (tmp_path / "out/scratch").exists()


@pytest.mark.slow
def test_killed_while_scratch_is_removed(
    units: list[ShardUnit], tmp_path: Path, straight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, remove = tmp_path / "out", shards.remove

    def half(path: str) -> None:
        if path.endswith("/scratch"):
            remove(f"{path}/methods/0-lines/documents")
            raise Killed
        remove(path)

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(shards, "remove", half)
        methods.run(BeamEngine(1), CHAIN, units, str(out), Silent())
    done = methods.run(BeamEngine(1), CHAIN, units, str(out), Silent())
    assert (content(out), done.tallies, done.statistics) == straight


def test_a_dry_run_of_a_chain_finds_the_same(units: list[ShardUnit], tmp_path: Path, straight: Any) -> None:
    done = methods.run(BeamEngine(1), CHAIN, units, str(tmp_path / "out"), Silent(), audit_only=True)
    assert (done.tallies, done.statistics) == straight[1:]
    assert not (tmp_path / "out/documents").exists()


def test_numbers_of_a_chain_are_reported_by_method(straight: Any) -> None:
    _, tallies, statistics = straight
    first, last = (statistics["methods"][name] for name in CHAIN.method)
    assert statistics["documents_in"] == first["documents_in"] == len(ROWS)
    assert statistics["documents_out"] == last["documents_out"]
    assert first["documents_out"] == last["documents_in"]
    assert "line:repeated" in first["tallies"] and "span:repeated" in last["tallies"]
    assert tallies["span:repeated"] == last["tallies"]["span:repeated"]


def test_a_method_does_not_know_the_others(units: list[ShardUnit], tmp_path: Path) -> None:
    """Units with offset maps give the same documents as units without."""
    methods.run(BeamEngine(1), Dedupe(), units, str(tmp_path / "a"), Silent())
    b = str(tmp_path / "b")
    exact_spans.run(Job(BeamEngine(1), Dedupe(), units, b, f"{b}/scratch", Silent()))
    assert content(tmp_path / "a") == content(tmp_path / "b")
