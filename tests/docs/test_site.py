"""The documentation site builds without a warning; its search knows the pages; pictures have alternative text."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusforge import sections
from tests.docs.pages import PAGES, ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The site, built as ``make docs`` builds it."""
    missing = [name for name in ("sphinx", "myst_nb", "furo") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: pip install 'corpusforge[docs]'")

    def build(folder: Path) -> None:
        recipe = re.search(
            r"^docs:.*\n\t\$\(BIN\)/python (.*) build/docs$", (ROOT / "Makefile").read_text(), re.MULTILINE
        )
        assert recipe
        command = [sys.executable, *recipe[1].split(), str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return once("site", build)


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in PAGES:
        if page.startswith("docs/"):
            assert (site / page.removeprefix("docs/")).with_suffix(".html").is_file(), page


def test_the_reference_has_every_setting_and_function(site: Path) -> None:
    import corpusforge

    settings = (site / "reference" / "settings.html").read_text("utf-8")
    for key, setting in sections.settings().items():
        assert f">{key.rpartition('.')[2]}</span>" in settings, key
        assert all(f">{flag}</span>" in settings for flag in setting.flag.split("/") if flag and "." in key), key
    api = (site / "reference" / "api.html").read_text("utf-8")
    for name in corpusforge.__all__:
        assert f'id="corpusforge.{name}"' in api, name


def test_search_finds_words(site: Path) -> None:
    """The index of the search box holds the stems of the words of all pages."""
    index = (site / "searchindex.js").read_text("utf-8")
    for word in ("contamin", "shingl", "checkpoint_step", "punkt"):
        assert f'"{word}' in index, word


def test_pictures_have_alternative_text(site: Path) -> None:
    for page in site.rglob("*.html"):
        for picture in re.findall(r"<img [^>]*>", page.read_text("utf-8")):
            assert re.search(r'alt="[^"]+"', picture), (page.name, picture)
