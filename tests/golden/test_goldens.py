"""Every method, format, mask unit and family gives what it gave: tables to the bit, losses to a relative 1e-4.

Where a change is meant to alter a result, freeze again (`freeze.py`) and state why in the commit. Losses differ from
processor to processor in their last digits, contents must not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import STAGES, TRAIN, Case
from tests.golden.corpus import write_corpus
from tests.golden.digests import digests, losses
from tests.prestarted import Commands

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
CASES = {case.name: case for case in [*STAGES, *TRAIN]}
DIGESTS: dict[str, Any] = json.loads((HERE / "digests.json").read_text())
LOSSES: dict[str, Any] = json.loads((HERE / "losses.json").read_text())

Once = Callable[[str, Callable[[Path], object]], Path]


class Runs:
    """Runs cases, and those they read, once for all processes that run tests."""

    def __init__(self, corpusforge: Commands, once: Once, shared: Path) -> None:
        self.corpusforge, self.once, self.shared = corpusforge, once, shared

    def folder(self, name: str) -> Path:
        """Where the result of a case lies."""
        if name == "shared":
            return self.shared
        if name == "raw":
            return self.once("golden-raw", lambda folder: write_corpus(self.shared, folder))
        return self.once(f"golden-{name}", lambda folder: self.run(CASES[name], folder))

    def run(self, case: Case, folder: Path) -> None:
        done = self.corpusforge(*self.command(case, folder), timeout=600)
        assert done.returncode == 0, done.stderr

    def command(self, case: Case, folder: Path) -> list[str]:
        return case.command({name: str(self.folder(name)) for name in case.reads}, str(folder))


@pytest.fixture(scope="module")
def runs(corpusforge: Commands, once: Once, shared_data: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
        yield Runs(corpusforge, once, shared_data)


def test_every_case_is_frozen() -> None:
    assert set(DIGESTS) == {case.name for case in STAGES}
    assert set(LOSSES) == {case.name for case in TRAIN}


@pytest.mark.parametrize("name", [case.name for case in STAGES])
def test_tables_and_vocabularies_are_equal_to_the_bit(runs: Runs, name: str) -> None:
    """Rows, contents with ids and places, and contents without."""
    assert digests(runs.folder(name)) == DIGESTS[name]


def assert_close(found: list[dict[str, Any]], frozen: list[dict[str, Any]]) -> None:
    for line, expected in zip(found, frozen, strict=True):
        assert {key for key in line if line[key] is None} == {key for key in expected if expected[key] is None}
        numbers = {key: value for key, value in expected.items() if value is not None}
        assert {key: line[key] for key in numbers} == pytest.approx(numbers, rel=1e-4), line["step"]


@pytest.mark.parametrize("name", [case.name for case in TRAIN])
def test_the_losses_of_a_family(runs: Runs, name: str) -> None:
    assert_close(losses(runs.folder(name)), LOSSES[name])
