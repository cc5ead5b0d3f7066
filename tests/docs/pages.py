"""The code of the documentation: its pages, their blocks of code, and which of these tests run.

A comment before a block says that it is not run, and why: ``<!-- not run: needs a GPU -->``. The same for all blocks of
a page, anywhere on it: ``<!-- page not run: ... -->``. Neither shows where the page is rendered. A block whose first
line is ``# NAME.py`` or ``# NAME.toml`` is a file.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if not {"_build", "notebooks"} & set(path.parts)
}

_PAGE_MARK = re.compile(r"^<!-- page not run: (.+?) -->", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>.+?) -->\n+)?"
    r"(?:^(?P<fence>```+|:::+)(?P<language>[^\n]*)\n(?P<fenced>.*?)^(?P=fence)$|(?P<indented>(?:^ {4}[^\n]*\n)+))",
    re.DOTALL | re.MULTILINE,
)
_SHELL = ("", "bash", "sh", "console")
_FILE = re.compile(r"# (\S+\.(?:py|toml))\n")


class Block(NamedTuple):
    """A block of code. ``reason``: why it is not run, or None."""

    language: str
    text: str
    reason: str | None

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, or None."""
        match = _FILE.match(self.text)
        return match[1] if match else None

    @property
    def commands(self) -> list[list[str]]:
        """The words of its command lines that begin with ``corpusforge``."""
        if self.language not in _SHELL:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        return [shlex.split(line, comments=True) for line in lines if line.lstrip().startswith("corpusforge ")]

    @property
    def is_code(self) -> bool:
        """Whether it is something to run."""
        return bool(self.commands) or self.language == "python"


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    mark = _PAGE_MARK.search(text)
    return [
        Block(
            (match["language"] or "").strip(),
            match["fenced"] if match["fence"] else re.sub("^ {4}", "", match["indented"], flags=re.MULTILINE),
            match["reason"] or (mark[1] if mark else None),
        )
        for match in _BLOCK.finditer(text)
    ]
