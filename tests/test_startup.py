"""The processor time that a command takes to start.

Limits are processor seconds (user and system, of all its processes), medians of five, on a machine where importing
NumPy and pyarrow takes `REFERENCE`. On a slower or busy machine they grow with the time that the same import takes in
the same run; they never shrink.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REFERENCE = 0.15
"""Seconds of ``import numpy, pyarrow`` on the machine on which the limits were set."""
BUSY = 1.25
"""Safety factor on such a machine: contention for caches slows imports of many files more than the reference."""
RUNS = 5


def seconds_of(words: list[str], code: int = 0) -> float:
    """Processor seconds of one run, which must end with this exit code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == code, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def check(limit: float, words: list[list[str]], code: int = 0) -> None:
    """The median of the runs is within the limit, by the time of the reference measured between them."""
    measured, reference = [], []
    for each in words:
        reference.append(seconds_of(["-c", "import numpy, pyarrow"]))
        measured.append(seconds_of(["-m", "corpusforge", *each], code))
    slower = statistics.median(reference) / REFERENCE
    slower = slower * BUSY if slower > 1 else 1.0
    assert statistics.median(measured) <= limit * slower, (measured, reference)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One page of JSONL."""
    path = tmp_path_factory.mktemp("page") / "page.jsonl"
    path.write_text('{"text": "' + "This sentence is about the weather in Bern. " * 9 + '", "url": "http://a.org/x"}\n')
    return str(path)


def test_help() -> None:
    check(0.2, [["--help"]] * RUNS)
    check(0.2, [["clean", "--help"]] * RUNS)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, "dedupe d --output o --nope"),
        (1, "dedupe NOTHING --output o"),
        (1, "clean NOTHING.jsonl --output o"),
        (1, "build-instances NOTHING --vocab v --output o"),
        (1, "pretrain NOTHING --output o"),
        (1, "evaluate NOTHING"),
        (1, "run nothing"),
        (1, "inspect NOTHING"),
    ],
)
def test_a_wrong_flag_or_path(code: int, words: str) -> None:
    check(0.5, [words.split()] * RUNS, code)


def test_a_missing_resource(page: str, tmp_path: Path) -> None:
    words = ["clean", page, "--output", str(tmp_path / "out"), "--sentences", "builtin", "--badwords", f"{tmp_path}/no"]
    check(0.5, [words] * RUNS, 1)


def _clean(page: str, output: Path) -> list[str]:
    words = ["clean", page, "--sentences", "builtin", "--badwords", "off", "--quiet", "--workers", "1"]
    return [*words, "--output", str(output)]


def test_one_page(page: str, tmp_path: Path) -> None:
    check(1.5, [_clean(page, tmp_path / str(number)) for number in range(RUNS)])


def test_a_finished_stage_again(page: str, tmp_path: Path) -> None:
    seconds_of(["-m", "corpusforge", *_clean(page, tmp_path / "out")])
    check(0.8, [_clean(page, tmp_path / "out")] * RUNS)
