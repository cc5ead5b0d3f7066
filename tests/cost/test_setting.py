"""What a new setting costs: its field in a section, and the one place that reads it; nothing between copies it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from corpusforge import sections
from tests.cost.changed_copy import ALL_PAGES, ROOT, copy_package, run

PACKAGE = ROOT / "corpusforge"
FIELD = '    shout: bool = option(False, "warn loudly", flag="--shout/--whisper")\n    rejects: str = option('
USE = '        execution.progress.say(f"shouting: {recipe.clean.shout}")\n        if manifest := claimed.finished():'


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more field in [clean] and one line that reads it."""
    field = ("    rejects: str = option(", FIELD)
    use = ("        if manifest := claimed.finished():", USE)
    changes = {"corpusforge/sections/corpus.py": [field], "corpusforge/stages/clean.py": [use]}
    return copy_package(tmp_path_factory.mktemp("copy"), changes=changes)


@pytest.mark.slow
def test_a_new_setting_works_as_flag_in_a_recipe_and_by_set(copy: Path, tmp_path: Path) -> None:
    page, recipe = tmp_path / "page.jsonl", tmp_path / "loud.toml"
    page.write_text('{"text": "A page of text."}\n')
    recipe.write_text("[clean]\nshout = true\n")
    words = ["clean", str(page), *ALL_PAGES, "--output"]
    for number, (given, expected) in enumerate(
        [
            ([], "False"),
            (["--shout"], "True"),
            (["--recipe", str(recipe)], "True"),
            (["--recipe", str(recipe), "--whisper"], "False"),
            (["--set", "clean.shout=true"], "True"),
        ]
    ):
        assert f"shouting: {expected}" in run(copy, *words, str(tmp_path / str(number)), *given)
    assert '"shout": true' in (tmp_path / "1/run.json").read_text()  # the digest of the stage knows it


def test_a_new_setting_is_in_the_help_and_in_the_listing_of_a_recipe(copy: Path) -> None:
    shown = " ".join(run(copy, "clean", "--help").split())
    assert "--shout / --whisper warn loudly [default: --whisper]" in shown
    assert "clean.shout" in run(copy, "inspect", "quickstart")


@pytest.mark.parametrize("key", [key for key in sections.settings() if "." in key])
def test_every_setting_is_read(key: str) -> None:
    assert key.split(".")[1] in READ, f"nothing reads {key}"


def _read() -> set[str]:
    """Names of all attributes that some module outside of the sections reads."""
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "sections":
            tree = ast.parse(path.read_text("utf-8"))
            names |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
            names |= _read_by_pattern(tree)
    return names


def _read_by_pattern(tree: ast.AST) -> set[str]:
    """Names that ``getattr(settings, f"{task}_data")`` reads for the tasks of an evaluation."""
    called = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "getattr")
    patterns = [n.args[1] for n in called if len(n.args) > 1 and isinstance(n.args[1], ast.JoinedStr)]
    ends = [p.values[-1].value for p in patterns if isinstance(p.values[-1], ast.Constant)]
    return {f"{task}{end}" for task in sections.TASKS for end in ends}


READ = _read()
