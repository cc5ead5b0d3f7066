"""Fixtures shared by all tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real text beside the checkout; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data (real text that is not part of the repository)")
    return SHARED


@pytest.fixture(scope="session")
def punkt(shared_data: Path) -> Iterator[Path]:
    """Punkt's English parameters beside the checkout, where CorpusForge and NLTK, its oracle, look for them."""
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
    """The sample that is part of the repository."""
    return ROOT / "sample_data"


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def corpusforge() -> Run:
    """Run the command line in a process of its own; returns its exit code and what it printed."""

    def run(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "corpusforge", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)

    return run


@pytest.fixture(scope="session")
def finished_run(corpusforge: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart on the sample with a few training steps, made once for all tests that read it."""
    folder = tmp_path_factory.mktemp("run")
    settings = ["--set", "pretrain.steps=12", "--set", "pretrain.checkpoint_steps=5", "--set", "evaluate.blimp_pairs=5"]
    done = corpusforge("run", "quickstart", "--output", str(folder), "--quiet", *settings)
    assert done.returncode == 0, done.stderr
    return folder
