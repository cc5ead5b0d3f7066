"""The stage clean with several packs: its manifest, and when a finished folder is up to date."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpusforge import errors, recipe
from corpusforge.progress import Silent
from corpusforge.sections import Recipe
from corpusforge.shards import Manifest
from corpusforge.stages import clean
from corpusforge.stages.stage import Execution, Outcome

PACK = """kind = "patterns"
title = "mine"
[drop_lines]
value = ["^Share"]
source = "seen on many pages"
[drop_pages]
value = []
source = "none"
"""
PAGE = (
    "This is a line that is long enough.\nShare this with all of your friends.\nmenu\nAnd here is one more of them.\n"
)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps({"text": PAGE + f"The number of it is {n}.\n"}) + "\n" for n in range(20)))
    return path


def run(pages: Path, output: Path, *rules: str) -> Outcome:
    values = {"input.paths": [str(pages)], "clean.rules": list(rules), "clean.language": ""}
    settings = recipe.override(Recipe(), values | {"clean.sentences": "builtin", "clean.badwords": "off"})
    return clean.clean(settings, str(output), Execution(1, "local", (), False, Silent()))


def test_the_manifest_has_every_pack_with_its_values(pages: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PACK)
    run(pages, tmp_path / "out", "c4-tfds-3.1", str(tmp_path / "mine.toml"))
    manifest = Manifest.load(str(tmp_path / "out"))
    assert manifest.recipe["clean"]["rules"] == ["c4-tfds-3.1", "mine"]
    steps = manifest.recipe["steps"]
    assert [step["step"] for step in steps] == ["c4-tfds-3.1", "mine"]
    assert steps[0]["sentences"] == "builtin" and steps[0]["pack"]["min_words"] == 5
    assert steps[1]["pack"] == {"drop_lines": ["^Share"], "drop_pages": []}
    assert manifest.tallies["line:pattern"]["rows"] == manifest.tallies["kept"]["rows"] == 20


def test_a_moved_pack_is_up_to_date_and_a_changed_one_is_refused(pages: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "mine.toml", tmp_path / "elsewhere" / "mine.toml"
    second.parent.mkdir()
    first.write_text(PACK)
    second.write_text(PACK.replace("seen on many pages", "another source"))
    assert not run(pages, tmp_path / "out", str(first)).skipped
    assert run(pages, tmp_path / "out", str(second)).skipped
    second.write_text(PACK.replace("^Share", "^Menu"))
    with pytest.raises(errors.OutputTaken):
        run(pages, tmp_path / "out", str(second))


def test_the_order_of_packs_counts(pages: Path, tmp_path: Path) -> None:
    run(pages, tmp_path / "out", "gopher", "fineweb")
    with pytest.raises(errors.OutputTaken):
        run(pages, tmp_path / "out", "fineweb", "gopher")
