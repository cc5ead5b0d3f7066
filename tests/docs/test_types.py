"""The Python of README.md and the pages fits the types of the package, as a user's own type checker sees them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

NAMES = """
from collections.abc import Iterator
from typing import Any
import datasets as datasets
my_dataframe: Any
def my_pages() -> Iterator[dict[str, str]]:
    yield {}
def classify(text: str) -> bool:
    return True
"""
"""What the pages call a user's own."""

BRIEF = "no-untyped-def,no-untyped-call,type-arg,no-redef"
"""Errors of the strict mode that examples may have: of annotations left out, and of names defined again on a page."""


def _python_of(page: str) -> str:
    """A module of all examples of a page, each line where it stands in the page; its first two are the title."""
    lines, inside = [f'# mypy: disable-error-code="{BRIEF}"', "from users_own import *"], False
    for line in page.splitlines()[2:]:
        inside = line == "```python" or (inside and line != "```")
        lines.append(line if inside and line != "```python" else "")
    return "\n".join(lines)


def _complaints(folder: Path, sources: dict[str, str]) -> list[str]:
    """What mypy says of modules, as ``NAME.py:LINE: error: ...``."""
    api = pytest.importorskip("mypy.api")
    for name, source in (sources | {"users_own": NAMES}).items():
        (folder / f"{name}.py").write_text(source, "utf-8")
    options = ["--strict", f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache' / 'users'}"]
    output, problems, _ = api.run([*options, *(str(folder / f"{name}.py") for name in sources)])
    assert not problems, problems
    return [re.sub(r"^.*/", "", line) for line in output.splitlines() if ": error:" in line]


@pytest.mark.slow  # with an empty cache of mypy
def test_examples_fit_the_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", f"{tmp_path}:{ROOT}")
    pages = {name: text for name, text in PAGES.items() if "\n```python\n" in text}
    sources = {re.sub(r"\W", "_", name.removesuffix(".md")): _python_of(text) for name, text in pages.items()}
    wrong = {"wrong": "\n\nimport corpusforge as cf\nclean = cf.clean('a', language=3)\nclean.folders\n"}
    found = _complaints(tmp_path, sources | wrong)
    assert [line.partition(": ")[0] for line in found if line.startswith("wrong")] == ["wrong.py:4", "wrong.py:5"]
    assert not [line for line in found if not line.startswith("wrong")], found
