"""What a new cleaning rule costs: the rule, in the file of its kind, and the packs that use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = 'kind = "fineweb"\ntitle = "Pages of our own"\n'
OLD = f'{HEAD}[max_line_breaks_a_word]\nvalue = 0.5\nsource = "by eye"\n'
NEW = f'{HEAD}[max_questions_a_word]\nvalue = 0.2\nsource = "by eye"\n'

FIELD = """    max_questions_a_word: float = rule(0.0, "question marks for each word, at most")

    def check(self, where: str) -> None:"""
CODE = """def _judge(found: Findings, rules: FinewebRules) -> None:
    marks = np.asarray(pc.count_substring(found.texts, "?")).astype(np.int64)
    share = shares(marks, found.words.counts)
    found.at_most("page:questions", "question marks a word", share, rules.max_questions_a_word)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more rule in one file."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("corpusforge", "pipelines", "rules", "sample_data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = root / "corpusforge/clean/fineweb.py"
    text = path.read_text("utf-8")
    for old, new in (
        ("    def check(self, where: str) -> None:", FIELD),
        ("def _judge(found: Findings, rules: FinewebRules) -> None:\n", CODE),
        ('    "page:list",\n)', '    "page:list",\n    "page:questions",\n)'),
    ):
        assert text.count(old) == 1 or old.startswith("    def check"), old
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
    return root


def _clean(root: Path, folder: Path, pack: str) -> list[str]:
    """The texts that stay."""
    (folder / "pack.toml").write_text(pack)
    pages = ["A page that says things in one line.", "Who? What? Where? Why so?", "a\nb\nc\nd\ne"]
    (folder / "pages.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in pages))
    words = [sys.executable, "-m", "corpusforge", "clean", str(folder / "pages.jsonl"), "--output", str(folder / "out")]
    words += ["--rules", str(folder / "pack.toml"), "--language", "", "--badwords", "off", "--workers", "1"]
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [row["text"] for path in (folder / "out/documents").iterdir() for row in pq.read_table(path).to_pylist()]


def test_a_pack_uses_the_new_rule(copy: Path, tmp_path: Path) -> None:
    kept = _clean(copy, tmp_path, NEW)
    assert kept == ["A page that says things in one line.", "a\nb\nc\nd\ne"]
    rejects = [row for path in (tmp_path / "out/rejects").iterdir() for row in pq.read_table(path).to_pylist()]
    assert [(row["reason"], row["detail"]) for row in rejects] == [
        ("page:questions", "question marks a word 0.800 > 0.2")
    ]


def test_a_pack_from_before_goes_on_working(copy: Path, tmp_path: Path) -> None:
    """With the same result, and as the same run: the folder that the older code made is up to date."""
    before = _clean(ROOT, tmp_path, OLD)
    made = (tmp_path / "out/manifest.json").read_bytes()
    assert (
        _clean(copy, tmp_path, OLD) == before == ["A page that says things in one line.", "Who? What? Where? Why so?"]
    )
    assert (tmp_path / "out/manifest.json").read_bytes() == made
