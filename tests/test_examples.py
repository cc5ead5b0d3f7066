"""The Python of README.md and the pages fits the types of the package, as a user's own type checker sees them.

Those of the docstrings run as doctests, and those of docs/instances.md in `tests/loader/test_loading_docs.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

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

PAGES = ("README.md", "docs/beam.md", "docs/python.md")


def _python_of(page: Path) -> str:
    """A module of all examples of a page, each line where it stands in the page; its first two are the title."""
    lines, inside = ["# mypy: disable-error-code=no-untyped-def", "from users_own import *"], False
    for line in page.read_text("utf-8").splitlines()[2:]:
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
    sources = {page.replace("/", "_").removesuffix(".md"): _python_of(ROOT / page) for page in PAGES}
    assert all("import" in source.partition("\n")[2] for source in sources.values())
    wrong = {"wrong": "\n\nimport corpusforge as cf\nclean = cf.clean('a', language=3)\nclean.folders\n"}
    found = _complaints(tmp_path, sources | wrong)
    assert [line.partition(": ")[0] for line in found if line.startswith("wrong")] == ["wrong.py:4", "wrong.py:5"]
    assert not [line for line in found if not line.startswith("wrong")]
