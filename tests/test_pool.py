"""The pool: the same output for any number of workers, and its behavior after errors and crashes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from corpusforge import arrays, errors, shards
from corpusforge.pool import run_units
from corpusforge.units import UnitResult
from tests.counting_work import CountingWork, ImportingWork, units

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
"""For separate programs, which import the work by its name."""


def run(folder: Path, workers: int, **how: object) -> list[UnitResult]:
    all_units = units()
    work = CountingWork(str(folder), **how)  # type: ignore[arg-type]
    sizes = [u.bytes for u in all_units]
    return run_units(work, all_units, sizes, workers, str(folder), lambda _: None)


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
    all_units, work = units(), CountingWork(str(tmp_path))
    sizes = [u.bytes for u in all_units]
    for resumed in (False, True):  # the second time, everything is finished
        advanced: list[int] = []
        results = run_units(work, all_units, sizes, workers, str(tmp_path), advanced.append)
        assert sum(advanced) == sum(sizes)
        assert {r.resumed for r in results} == {resumed}


@pytest.mark.parametrize("spared", [True, False])
def test_workers_spare_pandas_as_their_parent_does(
    spared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setattr(arrays, "pandas_is_spared", spared)
    results = run_units(ImportingWork(), units(2), [1, 1], 2, str(tmp_path), lambda _: None)
    assert [r.statistics["pandas"] for r in results] == [not spared] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_known_errors_are_raised_unchanged(
    workers: int, tmp_path: Path, straight: tuple[object, object], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(errors.InputUnreadable) as raised:
        run(tmp_path, workers, fail_at=3, how="known")
    assert str(raised.value) == "unit 3: it is broken; mend it; or leave it out"
    assert "Traceback" not in capfd.readouterr().err
    assert not list(tmp_path.rglob(".unfinished-*"))
    run(tmp_path, workers)
    assert digests(tmp_path) == straight[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_other_errors_keep_their_type(workers: int, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="not ours"):
        run(tmp_path, workers, fail_at=3, how="unknown")


def test_a_killed_worker_is_one_clear_error_and_a_rerun_resumes(
    tmp_path: Path, straight: tuple[object, object]
) -> None:
    began = time.monotonic()
    with pytest.raises(errors.CorpusForgeError, match=r"killed from outside.*run the same command again"):
        run(tmp_path, 2, fail_at=3, how="kill")
    assert time.monotonic() - began < 10
    run(tmp_path, 2)
    assert digests(tmp_path) == straight[1]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_leaves_no_orphans(how: signal.Signals, tmp_path: Path, straight: tuple[object, object]) -> None:
    program = [sys.executable, str(Path(__file__).with_name("counting_work.py")), str(tmp_path / "out"), "0.3"]
    parent = subprocess.Popen(program, stderr=subprocess.PIPE, env=ENVIRONMENT)
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
    """It has no file that workers could import again, and no ``__main__`` guard."""
    program = f"""
import sys
from tests.counting_work import CountingWork, ImportingWork, units
from corpusforge.pool import run_units
work = CountingWork({str(tmp_path)!r})
print(len(run_units(work, units(), [1] * 7, 2, work.output, lambda _: None)), "apache_beam" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.stdout, done.stderr) == ("7 False\n", "")


def test_only_files_of_dead_processes_are_swept(tmp_path: Path) -> None:
    """Another run may be writing into the same folder at the same time."""
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


def test_unfinished_files_are_named_after_their_writer(tmp_path: Path) -> None:
    with shards.atomic_path(str(tmp_path / "a")) as temporary:
        assert Path(temporary).name.startswith(f"{shards.UNFINISHED}{socket.gethostname()}-{os.getpid()}-")
        run(tmp_path, 1)
        assert Path(temporary).exists()
    assert (tmp_path / "a").exists()
