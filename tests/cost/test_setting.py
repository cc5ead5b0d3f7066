"""What a new setting costs: its field in a section, and the one place that reads it; nothing between copies it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from corpusforge import sections

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "corpusforge"
FIELD = '    shout: bool = option(False, "warn loudly", flag="--shout/--whisper")\n    rejects: str = option('
USE = '        execution.progress.say(f"shouting: {recipe.clean.shout}")\n        if manifest := claimed.finished():'


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more field in [clean] and one line that reads it."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("corpusforge", "pipelines", "rules", "sample_data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    _replace(root / "corpusforge/sections/corpus.py", "    rejects: str = option(", FIELD)
    _replace(root / "corpusforge/stages/clean.py", "        if manifest := claimed.finished():", USE)
    return root


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def _run(root: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "corpusforge", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_new_setting_works_as_flag_in_a_recipe_and_by_set(copy: Path, tmp_path: Path) -> None:
    page, recipe = tmp_path / "page.jsonl", tmp_path / "loud.toml"
    page.write_text('{"text": "A page of text."}\n')
    recipe.write_text("[clean]\nshout = true\n")
    words = ["clean", str(page), "--sentences", "builtin", "--badwords", "off", "--workers", "1", "--output"]
    for number, (given, expected) in enumerate(
        [
            ([], "False"),
            (["--shout"], "True"),
            (["--recipe", str(recipe)], "True"),
            (["--recipe", str(recipe), "--whisper"], "False"),
            (["--set", "clean.shout=true"], "True"),
        ]
    ):
        assert f"shouting: {expected}" in _run(copy, *words, str(tmp_path / str(number)), *given)
    assert '"shout": true' in (tmp_path / "1/run.json").read_text()  # the digest of the stage knows it


def test_a_new_setting_is_in_the_help_and_in_the_listing_of_a_recipe(copy: Path) -> None:
    shown = " ".join(_run(copy, "clean", "--help").split())
    assert "--shout / --whisper warn loudly [default: --whisper]" in shown
    assert "clean.shout" in _run(copy, "inspect", "quickstart")


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
