"""Fixtures and settings shared by all tests."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.draws import PROFILE
from tests.prestarted import Commands, run_fresh

settings.load_profile(PROFILE)  # --hypothesis-profile overrides it
if "PYTEST_XDIST_WORKER" in os.environ:  # one process per core: torch's threads would compete for them
    os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
KERNELS = ("documents", "clean", "dedupe", "tokens", "instances")


def pytest_configure(config: pytest.Config) -> None:
    """Let the server from which worker processes are forked import all kernels once."""
    server = forkserver._forkserver  # type: ignore[attr-defined]
    preload = server.set_forkserver_preload
    files = sorted(path for room in KERNELS for path in (ROOT / "corpusforge" / room).rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files]
    server.set_forkserver_preload = lambda modules: preload([*modules, *names])


RUN_COMMANDS = {"corpusforge", "fresh_corpusforge", "finished_run"}
"""Fixtures that run the command line in processes, each of which takes seconds to import what it needs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that run commands are ``slow``; those marked ``exhaustive`` run only under the profile of that name."""
    for item in items:
        if RUN_COMMANDS & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    if config.getoption("hypothesis_profile") != "exhaustive":
        deselected = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real text beside the checkout; tests that need it are skipped if it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data (real text that is not part of the repository)")
    return SHARED


@pytest.fixture(scope="session")
def punkt(shared_data: Path) -> Iterator[Path]:
    """Punkt's English parameters beside the checkout, set as the place where CorpusForge and NLTK search for them."""
    import nltk

    folder = str(shared_data / "nltk_data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLTK_DATA", folder)
        patch.setattr(nltk.data, "path", [folder, *nltk.data.path])
        yield Path(folder)


@pytest.fixture(scope="session")
def nltk_punkt(punkt: Path) -> Any:
    """The oracle: NLTK's own tokenizer."""
    from nltk.tokenize.punkt import PunktTokenizer

    return PunktTokenizer("english")


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The sample in the repository."""
    return ROOT / "sample_data"


A_FEW_STEPS = [
    *("--set", "pretrain.steps=12"),
    *("--set", "pretrain.checkpoint_steps=5"),
    *("--set", "pretrain.batch_tokens=1024"),
    *("--set", "pretrain.micro_batch_tokens=1024"),
    *("--set", "evaluate.blimp_pairs=5"),
]
"""The settings that ``finished_run`` changes in the recipe."""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def corpusforge() -> Iterator[Run]:
    """Run the command line in a process of its own; returns its exit code and output."""
    with Commands() as commands:
        yield commands


@pytest.fixture(scope="session")
def fresh_corpusforge() -> Run:
    """As ``corpusforge``, in a new interpreter: for tests of imports or start-up time."""
    return run_fresh


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Make a folder once for all test processes: ``once("name", make)`` calls ``make(folder)`` or waits for it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # the base of the session; each process has one below it

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        path, mark = root / name, root / f"{name}.done"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not mark.exists():
                make(path)
                mark.touch()
        return path

    return folder


@pytest.fixture(scope="session")
def finished_run(corpusforge: Run, once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The quickstart on the sample with a few training steps, made once for all tests that read it."""

    def make(folder: Path) -> None:
        result = corpusforge("run", "quickstart", "--output", str(folder), "--quiet", *A_FEW_STEPS)
        assert result.returncode == 0, result.stderr

    return once("finished-run", make)
