"""What wheel and source distribution carry: the version, types, and recipes, packs and sample, found by bare name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from corpusforge.version import VERSION

ROOT = Path(__file__).resolve().parents[2]


def _built(target: str, checkout: Path, folder: Path) -> Path:
    """The one file that a target of the build backend makes."""
    pytest.importorskip("hatchling", reason="needs the build backend: pip install hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(build, cwd=checkout, check=True, capture_output=True)
    (made,) = (path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return _built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    """Its files, as an installer would unpack them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


def _run(unpacked: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    command = [sys.executable, "-m", "corpusforge", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_data_and_page_parts_are_inside(unpacked: Path) -> None:
    for name in ("data/pipelines/quickstart.toml", "data/rules/c4-tfds-3.1.toml", "data/sample_data/raw/crawl.warc.gz"):
        assert (unpacked / "corpusforge" / name).is_file(), name
    assert (unpacked / "corpusforge/report/page.css").is_file()
    assert not list(unpacked.glob("tests*"))


def test_type_checkers_and_installers_find_types_and_version(unpacked: Path) -> None:
    assert (unpacked / "corpusforge/py.typed").is_file()
    metadata = (unpacked / f"corpusforge-{VERSION}.dist-info/METADATA").read_text("utf-8")
    assert f"\nVersion: {VERSION}\n" in metadata


def test_the_citation_names_the_version() -> None:
    (cited,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited == VERSION


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    source = _built("sdist", ROOT, tmp_path)
    assert source.name == f"corpusforge-{VERSION}.tar.gz"
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    checkout = tmp_path / f"corpusforge-{VERSION}"
    assert f"\nVersion: {VERSION}\n" in (checkout / "PKG-INFO").read_text("utf-8")
    (tmp_path / "again").mkdir()
    again = _built("wheel", checkout, tmp_path / "again")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as two:
        assert sorted(one.namelist()) == sorted(two.namelist())


@pytest.mark.slow
def test_a_recipe_runs_from_any_directory(unpacked: Path, tmp_path: Path) -> None:
    done = _run(unpacked, tmp_path, "run", "quickstart", "--until", "dedupe", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/quickstart/dedupe/manifest.json").is_file()
    shown = _run(unpacked, tmp_path, "rules", "list")
    assert "c4-tfds-3.1" in shown.stdout


@pytest.mark.slow
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
