"""What a new input format costs: one file that reads it, and one row of the table of formats."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = '        InputFormat("mbox", "mbox", (".mbox",)),\n        InputFormat("hub", "hub"),\n'
MODULE = '''"""Mail folders: a document a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from corpusforge.documents.files import blocks
from corpusforge.documents.records import FilePart, ReaderOutput, ReadOptions, Rows, Skip


def recognizes(head: bytes) -> bool:
    """Whether content begins like a message."""
    return head.startswith(b"From ")


def read(file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    """The messages of a folder without their headers; the position is the number of the message."""
    rows = Rows()
    for position, message in enumerate(b"".join(blocks(file)).decode().split("From ")[1:]):
        if not skip.take(1):
            rows.add(position, message.partition("\\n\\n")[2].strip())
    yield rows.take(), part.size
'''
MAIL = "From a@a.org\nSubject: one\n\nThe first message.\n\nFrom b@b.org\nSubject: two\n\nThe second message.\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more module and one more row."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("corpusforge", "pipelines", "rules", "sample_data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "corpusforge/documents/mbox.py").write_text(MODULE)
    path = root / "corpusforge/sections/corpus.py"
    text, old = path.read_text("utf-8"), '        InputFormat("hub", "hub"),\n'
    assert text.count(old) == 1
    path.write_text(text.replace(old, ROW), "utf-8")
    return root


def _run(root: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "corpusforge", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "flags"), [("inbox.mbox", ()), ("inbox", ()), ("inbox.txt", ("--format", "mbox"))], ids="nch"
)
def test_the_new_format_is_read(copy: Path, tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    """By its name, its content, or the flag."""
    (tmp_path / name).write_text(MAIL)
    words = ["--rules", "", "--language", "", "--badwords", "off", "--workers", "1", *flags]
    _run(copy, "clean", str(tmp_path / name), "--output", str(tmp_path / "out"), *words)
    rows = [row for path in (tmp_path / "out/documents").iterdir() for row in pq.read_table(path).to_pylist()]
    assert [(row["position"], row["text"]) for row in rows] == [(0, "The first message."), (1, "The second message.")]


def test_the_new_format_is_in_the_help(copy: Path) -> None:
    assert "mbox" in _run(copy, "clean", "--help")
