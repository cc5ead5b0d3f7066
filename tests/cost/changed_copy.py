"""A copy of the package with something added, and its command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]


def copy_package(root: Path, files: dict[str, str], rows: dict[str, tuple[str, str]]) -> Path:
    """Copy the package to ``root`` with more ``files`` and more ``rows``: of a file, a line and what goes before it."""
    for name in ("corpusforge", "pipelines", "rules", "sample_data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in files.items():
        assert not (root / name).exists()
        (root / name).write_text(text, "utf-8")
    for name, (line, row) in rows.items():
        text = (root / name).read_text("utf-8")
        assert text.count(line) == 1
        (root / name).write_text(text.replace(line, row + line), "utf-8")
    return root


def run(root: Path, *words: str) -> str:
    """Run the copy's command line; returns what it printed."""
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "corpusforge", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def prepare(root: Path, folder: Path) -> list[str]:
    """Clean the sample and learn a vocabulary; returns the words of a command that builds instances of it."""
    pages, clean, vocab = str(root / "sample_data/raw"), str(folder / "clean"), str(folder / "vocab")
    given = ["--language=", "--badwords", "off", "--sentences", "builtin", "--workers", "1"]
    run(root, "clean", pages, "--output", clean, *given)
    run(root, "train-vocab", clean, "--size", "512", "--unused", "0", "--output", vocab)
    return ["build-instances", clean, "--vocab", vocab, "--workers", "1"]


def rows_of(folder: Path, table: str) -> list[dict]:  # type: ignore[type-arg]
    """All rows of a table of instances."""
    paths = sorted((folder / table).glob("*.arrow"))
    return [row for path in paths for row in pa.ipc.open_stream(pa.memory_map(str(path))).read_all().to_pylist()]
