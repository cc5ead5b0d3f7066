"""The engine on Beam runners: units run and counted, blocks shuffled, errors raised unchanged."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from corpusforge import errors, shards
from corpusforge.beam.engine import JOBS, BeamEngine
from corpusforge.beam.runners import make_pipeline
from corpusforge.content import combine
from corpusforge.progress import Silent
from tests.beam.stage_folders import counters
from tests.counting_work import CountingWork, units


class Recorded(Silent):
    """Remembers what was reported."""

    def __init__(self) -> None:
        self.done = 0
        self.events: list[str] = []

    def start(self, label: str, total: int, unit: str) -> None:
        self.events.append(f"start {label} {total} {unit}")

    def advance(self, amount: int) -> None:
        self.done += amount

    def say(self, line: str) -> None:
        self.events.append(line)

    def finish(self) -> None:
        self.events.append("finish")


class Elsewhere(BeamEngine):
    """A runner that is not this machine's, played by the local one; remembers the counters of what it ran."""

    is_local = False
    counted: ClassVar[dict[str, int]] = {}

    def run(self, build: Callable[[Any], None]) -> Any:
        result = super().run(build)
        self.counted.update(counters(result))
        return result


def content(folder: Path) -> str:
    return combine(shard.content for entry in shards.load_entries(str(folder)) for shard in entry.tables.values())


def test_units_on_a_beam_runner_give_the_same_and_are_counted(tmp_path: Path) -> None:
    all_units, here, there = units(), tmp_path / "here", tmp_path / "there"
    sizes = [u.bytes for u in all_units]
    straight = BeamEngine(1).map(
        CountingWork(str(here)), all_units, sizes, label="x", folder=str(here), progress=Silent()
    )
    work = CountingWork(str(there))
    for resumed in (False, True):
        results = Elsewhere().map(work, all_units, sizes, label="x", folder=str(there), progress=Silent())
        assert [dataclasses.replace(r, resumed=False) for r in results] == straight
        assert {r.resumed for r in results} == {resumed}
        assert Elsewhere.counted == {"line:odd": sum(r.tallies["line:odd"]["rows"] for r in results if r.tallies)}
    assert content(there) == content(here)
    assert not (there / JOBS).exists()


@pytest.mark.parametrize("engine", [BeamEngine(1, "DirectRunner"), Elsewhere()])
def test_progress(engine: BeamEngine, tmp_path: Path) -> None:
    all_units, seen = units(), Recorded()
    work, sizes = CountingWork(str(tmp_path)), [u.bytes for u in all_units]
    engine.map(work, all_units, sizes, label="count", folder=str(tmp_path), progress=seen)
    assert seen.done == sum(sizes)
    begun = f"start count {sum(sizes)} bytes"
    if engine.is_local:
        assert seen.events[1:] == [begun, "finish"]
        assert "taken as local" in seen.events[0]
    else:
        assert seen.events == [begun, "count: 7 units through local", "finish"]


@pytest.mark.slow
def test_a_local_map_does_not_import_beam(tmp_path: Path) -> None:
    program = f"""
import sys
from tests.counting_work import CountingWork, units
from corpusforge.beam.engine import BeamEngine
from corpusforge.progress import Silent
work = CountingWork({str(tmp_path)!r})
for workers, runner in ((1, "local"), (2, "DirectRunner")):
    BeamEngine(workers, runner).map(work, units(), [1] * 7, label="x", folder=work.output, progress=Silent())
print("apache_beam" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("False\n", "")


def digits(item: tuple[str, int]) -> Iterator[tuple[int, bytes]]:
    """The numbers up to an item's, under their last digit."""
    yield from ((number % 10, str(number).encode()) for number in range(item[1]))


def totals(key: int, blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The sum of a key's numbers, under the rest of it by two."""
    yield key % 2, b"%d" % sum(map(int, blocks))


def write(folder: str, key: int, blocks: Iterable[bytes]) -> None:
    (Path(folder) / f"{key}.txt").write_bytes(b" ".join(sorted(blocks, key=int)))


@dataclasses.dataclass(frozen=True)
class Sum:
    def __call__(self, blocks: Iterable[bytes]) -> bytes:
        return b"%d" % sum(map(int, blocks))


ITEMS = [("a", 25), ("b", 0), ("c", 7)]


@pytest.mark.parametrize("engine", [BeamEngine(1), Elsewhere()])
@pytest.mark.parametrize("combine", [None, Sum()])
def test_a_shuffle_groups_reduces_and_groups_again(engine: BeamEngine, combine: Any, tmp_path: Path) -> None:
    scratch = str(tmp_path / "scratch")
    engine.shuffle(ITEMS, digits, totals, partial(write, str(tmp_path)), folder=scratch, combine=combine)
    sums = [sum(n for _, top in ITEMS for n in range(top) if n % 10 == digit) for digit in range(10)]
    for key in (0, 1):
        assert (tmp_path / f"{key}.txt").read_text() == " ".join(map(str, sorted(sums[key::2])))
    assert not list(Path(scratch).iterdir())


def test_a_shuffle_may_write_what_it_reduces(tmp_path: Path) -> None:
    BeamEngine(1).shuffle(ITEMS, digits, partial(write, str(tmp_path)), folder=str(tmp_path / "scratch"))
    assert (tmp_path / "4.txt").read_text() == "4 4 14 24"


def broken(how: type[Exception], *_: object) -> Iterator[tuple[int, bytes]]:
    if issubclass(how, errors.CorpusForgeError):
        raise how("here", "it is broken", "mend it")
    raise how("of theirs")
    yield


def test_errors_of_a_shuffle(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(errors.InputUnreadable) as raised:
        BeamEngine(1).shuffle(ITEMS, digits, partial(broken, errors.InputUnreadable), write, folder=str(tmp_path))
    assert str(raised.value) == "here: it is broken; mend it"
    assert "Traceback" not in capfd.readouterr().err
    with pytest.raises(ZeroDivisionError, match=r"of theirs.*Produce broken"):
        BeamEngine(1).shuffle(ITEMS, partial(broken, ZeroDivisionError), totals, folder=str(tmp_path))


def test_steps_of_a_shuffle_are_named_by_what_runs_in_them(tmp_path: Path) -> None:
    steps: list[str] = []

    class Seen(BeamEngine):
        def run(self, build: Callable[[Any], None]) -> Any:
            pipeline = make_pipeline("local", ())
            build(pipeline)
            steps.extend(name.split("/")[0] for name in pipeline.applied_labels)

    Seen().shuffle(ITEMS, digits, totals, partial(write, ""), folder=str(tmp_path), combine=Sum())
    assert {"Produce digits", "Combine Sum", "Reduce totals", "Consume write"} <= set(steps)


def test_what_is_missing_is_reported_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    BeamEngine().check(shuffles=False)
    for engine, shuffles in ((BeamEngine(), True), (BeamEngine(runner="FlinkRunner"), False)):
        with pytest.raises(errors.ExtraMissing, match=r"pip install 'corpusforge\[beam\]'"):
            engine.check(shuffles=shuffles)
    with pytest.raises(errors.RunnerRefused):
        BeamEngine(runner="FlinkRuner").check(shuffles=False)


def test_a_notebook_is_no_different(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a notebook Beam would import its interactive part, which takes seconds and fails with pandas 3."""
    from apache_beam import pipeline

    shell = SimpleNamespace(config={"IPKernelApp": {}}, execution_count=1)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "apache_beam.runners.interactive", None)
    BeamEngine(1).shuffle(ITEMS, digits, partial(write, str(tmp_path)), folder=str(tmp_path / "scratch"))
    assert (tmp_path / "4.txt").read_text() == "4 4 14 24"
    assert pipeline.is_in_ipython()
