"""A copy of the package with something added, and its command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]

ALL_PAGES = ("--language=", "--badwords", "off", "--sentences", "builtin", "--workers", "1")
"""Flags of ``clean`` that need nothing fetched and drop no language."""


def copy_package(
    root: Path, files: Mapping[str, str] | None = None, changes: Mapping[str, Sequence[tuple[str, str]]] | None = None
) -> Path:
    """Copy the package to ``root`` with more ``files``; ``changes``: of a file, lines and what replaces them."""
    for name in ("corpusforge", "pipelines", "rules", "sample_data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (files or {}).items():
        assert not (root / name).exists()
        (root / name).write_text(text, "utf-8")
    for name, replacements in (changes or {}).items():
        text = (root / name).read_text("utf-8")
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (root / name).write_text(text, "utf-8")
    return root


def run(root: Path, *words: str, code: int = 0) -> str:
    """Run the copy's command line; returns what it printed."""
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "corpusforge", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def prepare(root: Path, folder: Path) -> list[str]:
    """Clean the sample and learn a vocabulary; returns the words of a command that builds instances of it."""
    pages, clean, vocab = str(root / "sample_data/raw"), str(folder / "clean"), str(folder / "vocab")
    run(root, "clean", pages, "--output", clean, *ALL_PAGES)
    run(root, "train-vocab", clean, "--size", "512", "--unused", "0", "--output", vocab)
    return ["build-instances", clean, "--vocab", vocab, "--workers", "1"]


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table of a stage's folder."""
    instances = [
        pa.ipc.open_stream(pa.memory_map(str(path))).read_all() for path in sorted((folder / table).glob("*.arrow"))
    ]
    documents = [pq.read_table(path) for path in sorted((folder / table).glob("*.parquet"))]
    return [row for rows in (*instances, *documents) for row in rows.to_pylist()]
