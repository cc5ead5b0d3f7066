"""The engine: the same output for any number of workers, and what happens when something goes wrong."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the work must be importable by name in the workers too
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])

from corpusforge import errors, shards
from corpusforge.beam.engine import JOBS, BeamEngine
from corpusforge.beam.runners import make_pipeline
from corpusforge.beam.sdk import counters
from corpusforge.progress import Silent
from corpusforge.units import UnitResult
from tests.beam.counting_work import CountingWork, units


class Recorded(Silent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.events: list[str] = []

    def start(self, label: str, total: int, unit: str) -> None:
        self.events.append(f"start {label} {unit}")
        self.total = total

    def advance(self, amount: int) -> None:
        self.done += amount

    def finish(self) -> None:
        self.events.append("finish")


def run(folder: Path, workers: int, **how: object) -> list[UnitResult]:
    many = units()
    work = CountingWork(str(folder), **how)  # type: ignore[arg-type]
    sizes = [u.bytes for u in many]
    return BeamEngine(workers).map(work, many, sizes, label="count", folder=str(folder), progress=Silent())


def digests(folder: Path) -> list[tuple[str, str]]:
    return [(s.name, s.digest) for e in shards.load_entries(str(folder)) for s in e.tables.values()]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[UnitResult], list[tuple[str, str]]]:
    folder = tmp_path_factory.mktemp("straight")
    return run(folder, 1), digests(folder)


@pytest.mark.parametrize("workers", [2, 5])
def test_workers_change_nothing(workers: int, tmp_path: Path, straight: tuple[object, object]) -> None:
    assert (run(tmp_path, workers), digests(tmp_path)) == straight


def test_results_come_in_the_order_of_the_units(straight: tuple[list[UnitResult], object]) -> None:
    assert [r.unit for r in straight[0]] == list(range(7))
    assert [r.statistics.get("numbers", 0) for r in straight[0]] == [u.rows for u in units()]


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_adds_up(workers: int, tmp_path: Path) -> None:
    many, seen = units(), Recorded()
    sizes, work = [u.bytes for u in many], CountingWork(str(tmp_path))
    for _ in range(2):  # the second time everything is there already
        seen.done = 0
        results = BeamEngine(workers).map(work, many, sizes, label="x", folder=str(tmp_path), progress=seen)
        assert seen.done == seen.total == sum(sizes)
    assert all(r.resumed for r in results)
    assert seen.events == ["start x bytes", "finish"] * 2


class Elsewhere(BeamEngine):
    """A runner that is not this machine's, played by the local one; remembers the counters of what it ran."""

    is_local = False
    counted: ClassVar[dict[str, int]] = {}

    def run(self, build: Callable[[Any], None]) -> Any:
        result = super().run(build)
        self.counted.update(counters(result))
        return result


def test_units_on_a_beam_runner_give_the_same_and_are_counted(tmp_path: Path, straight: tuple[Any, Any]) -> None:
    many, work = units(), CountingWork(str(tmp_path))
    sizes = [u.bytes for u in many]
    for resumed in (False, True):
        results = Elsewhere().map(work, many, sizes, label="x", folder=str(tmp_path), progress=Silent())
        assert [dataclasses.replace(r, resumed=False) for r in results] == straight[0]
        assert {r.resumed for r in results} == {resumed}
        assert Elsewhere.counted == {"line:odd": sum(r.tallies["line:odd"]["rows"] for r in results if r.tallies)}
    assert digests(tmp_path) == straight[1]
    assert not (tmp_path / JOBS).exists()


def test_a_local_map_does_not_import_beam(tmp_path: Path) -> None:
    program = f"""
import sys
from counting_work import CountingWork, units
from corpusforge.beam.engine import BeamEngine
from corpusforge.progress import Silent
work = CountingWork({str(tmp_path)!r})
for workers, runner in ((1, "local"), (2, "DirectRunner")):
    BeamEngine(workers, runner).map(work, units(), [1] * 7, label="x", folder=work.output, progress=Silent())
print("apache_beam" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("workers", [1, 2])
def test_our_errors_come_out_as_themselves(
    workers: int, tmp_path: Path, straight: tuple[object, object], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(errors.InputUnreadable) as raised:
        run(tmp_path, workers, fail_at=3, how="ours")
    assert str(raised.value) == "unit 3: it is broken; mend it; or leave it out"
    assert "Traceback" not in capfd.readouterr().err
    assert not list(tmp_path.rglob(".unfinished-*"))
    run(tmp_path, workers)
    assert digests(tmp_path) == straight[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_other_errors_keep_their_type(workers: int, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="of theirs"):
        run(tmp_path, workers, fail_at=3, how="theirs")


def test_a_killed_worker_is_one_clear_error_and_a_rerun_goes_on(
    tmp_path: Path, straight: tuple[object, object]
) -> None:
    began = time.monotonic()
    with pytest.raises(errors.CorpusForgeError, match=r"killed from outside.*run the same command again"):
        run(tmp_path, 2, fail_at=3, how="kill")
    assert time.monotonic() - began < 10
    run(tmp_path, 2)
    assert digests(tmp_path) == straight[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_leaves_no_orphans(how: signal.Signals, tmp_path: Path, straight: tuple[object, object]) -> None:
    program = [sys.executable, str(Path(__file__).with_name("counting_work.py")), str(tmp_path / "out"), "0.3"]
    parent = subprocess.Popen(program, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not digests(tmp_path / "out"):
        assert time.monotonic() < deadline and parent.poll() is None
        time.sleep(0.05)
    family = psutil.Process(parent.pid).children(recursive=True)
    assert family
    parent.send_signal(how)
    code = parent.wait(5)
    assert code in {signal.SIGINT: (-2, 1, 130), signal.SIGTERM: (143,), signal.SIGKILL: (-9,)}[how]
    _, alive = psutil.wait_procs(family, 5)
    assert not alive
    if how != signal.SIGKILL:
        assert not list(tmp_path.rglob(".unfinished-*"))
    run(tmp_path / "out", 2)
    assert digests(tmp_path / "out") == straight[1]


def test_a_program_from_standard_input(tmp_path: Path) -> None:
    """Its file cannot be run again in the workers, nor is it guarded against that."""
    program = f"""
from counting_work import CountingWork, units
from corpusforge.beam.engine import BeamEngine
from corpusforge.progress import Silent
many = units()
work = CountingWork({str(tmp_path)!r})
print(len(BeamEngine(2).map(work, many, [1] * 7, label="x", folder=work.output, progress=Silent())))
"""
    done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("7\n", "")


def test_only_what_dead_processes_left_is_swept(tmp_path: Path) -> None:
    """Another run may be writing into the same folder now."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    old = time.time() - 90_000
    names = {"here-dead": dead.pid, "here-alive": os.getppid(), "here-own": os.getpid(), "other-host": dead.pid}
    for name, process in names.items():
        host = "elsewhere-1" if name == "other-host" else socket.gethostname()
        for age in ("new", "old"):
            path = tmp_path / name / age / f"{shards.UNFINISHED}{host}-{process}-abc_{name.replace('-', '_')}"
            path.parent.mkdir(parents=True)
            path.write_bytes(b"half")
            if age == "old":
                os.utime(path, (old, old))
    run(tmp_path, 1)
    left = {str(p.parent.relative_to(tmp_path)) for p in tmp_path.rglob(f"{shards.UNFINISHED}*")}
    assert left == {"here-alive/new", "here-own/new", "other-host/new"}


def test_unfinished_files_carry_their_writer(tmp_path: Path) -> None:
    with shards.atomic_path(str(tmp_path / "a")) as temporary:
        assert Path(temporary).name.startswith(f"{shards.UNFINISHED}{socket.gethostname()}-{os.getpid()}-")
        run(tmp_path, 1)
        assert Path(temporary).exists()
    assert (tmp_path / "a").exists()


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
