"""What a new input format costs: one file that reads it, and one row of the table of formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cost.changed_copy import ALL_PAGES, copy_package, rows_of, run

pytestmark = pytest.mark.slow

LINE = '        InputFormat("hub", "hub"),\n'
ROW = '        InputFormat("mbox", "mbox", (".mbox",)),\n'
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
    files, changes = {"corpusforge/documents/mbox.py": MODULE}, {"corpusforge/sections/corpus.py": [(LINE, ROW + LINE)]}
    return copy_package(tmp_path_factory.mktemp("copy"), files, changes)


@pytest.mark.parametrize(
    ("name", "flags"), [("inbox.mbox", ()), ("inbox", ()), ("inbox.txt", ("--format", "mbox"))], ids="nch"
)
def test_the_new_format_is_read(copy: Path, tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    """By its name, its content, or the flag."""
    (tmp_path / name).write_text(MAIL)
    words = ["--output", str(tmp_path / "out"), "--rules=", *ALL_PAGES, *flags]
    run(copy, "clean", str(tmp_path / name), *words)
    documents = rows_of(tmp_path / "out", "documents")
    assert [(row["position"], row["text"]) for row in documents] == [
        (0, "The first message."),
        (1, "The second message."),
    ]


def test_the_new_format_is_in_the_help(copy: Path) -> None:
    assert "mbox" in run(copy, "clean", "--help")
