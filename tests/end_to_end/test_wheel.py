"""What a wheel carries: recipes, packs and sample, found by bare name from any directory."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the wheel, built from this checkout and unpacked as an installer would."""
    pytest.importorskip("hatchling", reason="needs the build backend: pip install hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def _run(unpacked: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    command = [sys.executable, "-m", "corpusforge", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_data_and_page_parts_are_inside(unpacked: Path) -> None:
    for name in ("data/pipelines/quickstart.toml", "data/rules/c4-tfds-3.1.toml", "data/sample_data/raw/crawl.warc.gz"):
        assert (unpacked / "corpusforge" / name).is_file(), name
    assert (unpacked / "corpusforge/report/page.css").is_file()
    assert not list(unpacked.glob("tests*"))


@pytest.mark.slow
def test_a_recipe_runs_from_any_directory(unpacked: Path, tmp_path: Path) -> None:
    done = _run(unpacked, tmp_path, "run", "quickstart", "--until", "dedupe", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/quickstart/dedupe/manifest.json").is_file()
    shown = _run(unpacked, tmp_path, "rules", "list")
    assert "c4-tfds-3.1" in shown.stdout


@pytest.mark.parametrize("module", ["apache_beam", "torch", "plotly"])
def test_a_missing_part_says_what_to_install(unpacked: Path, tmp_path: Path, module: str) -> None:
    """A module of that name that cannot be found stands for an environment without the extra."""
    words = {
        "apache_beam": ["run", "quickstart", "--until", "dedupe"],
        "torch": ["pretrain", "x", "--output", "y"],
        "plotly": ["run", "quickstart"],
    }[module]
    code = (
        "import sys\n"
        f"sys.modules[{module!r}] = None\n"
        "from corpusforge.cli import main\n"
        f"main({words!r})"
    )  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    if module != "torch":  # pretrain first finds that there is no data
        assert "pip install 'corpusforge[" in done.stderr, done.stderr
