"""What a new cleaning rule costs: the rule, in the file of its kind, and the packs that use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cost.changed_copy import ALL_PAGES, ROOT, copy_package, rows_of, run

pytestmark = pytest.mark.slow

HEAD = 'kind = "fineweb"\ntitle = "Pages of our own"\n'
OLD = f'{HEAD}[max_line_breaks_a_word]\nvalue = 0.5\nsource = "by eye"\n'
NEW = f'{HEAD}[max_questions_a_word]\nvalue = 0.2\nsource = "by eye"\n'

FIELD = '    max_questions_a_word: float = rule(0.0, "question marks for each word, at most")\n'
CODE = """def _judge(findings: Findings, rules: FinewebRules) -> None:
    marks = np.asarray(pc.count_substring(findings.texts, "?")).astype(np.int64)
    share = shares(marks, findings.words.counts)
    findings.at_most("page:questions", "question marks a word", share, rules.max_questions_a_word)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more rule in one file."""
    last, judge, reason = "    max_line_breaks_a_word:", CODE.splitlines(keepends=True)[0], '    "page:list",\n)'
    changes = [(last, FIELD + last), (judge, CODE), (reason, '    "page:list",\n    "page:questions",\n)')]
    return copy_package(tmp_path_factory.mktemp("copy"), changes={"corpusforge/clean/fineweb.py": changes})


def _clean(root: Path, folder: Path, pack: str) -> list[str]:
    """The texts that stay."""
    (folder / "pack.toml").write_text(pack)
    pages = ["A page that says things in one line.", "Who? What? Where? Why so?", "a\nb\nc\nd\ne"]
    (folder / "pages.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in pages))
    rules = ["--rules", str(folder / "pack.toml"), *ALL_PAGES]
    run(root, "clean", str(folder / "pages.jsonl"), "--output", str(folder / "out"), *rules)
    return [row["text"] for row in rows_of(folder / "out", "documents")]


def test_a_pack_uses_the_new_rule(copy: Path, tmp_path: Path) -> None:
    kept = _clean(copy, tmp_path, NEW)
    assert kept == ["A page that says things in one line.", "a\nb\nc\nd\ne"]
    assert [(row["reason"], row["detail"]) for row in rows_of(tmp_path / "out", "rejects")] == [
        ("page:questions", "question marks a word 0.800 > 0.2")
    ]


def test_a_pack_from_before_still_works(copy: Path, tmp_path: Path) -> None:
    """With the same result, and as the same run: the folder that the older code wrote is up to date."""
    expected = ["A page that says things in one line.", "Who? What? Where? Why so?"]
    assert _clean(ROOT, tmp_path, OLD) == expected
    manifest = (tmp_path / "out/manifest.json").read_bytes()
    assert _clean(copy, tmp_path, OLD) == expected
    assert (tmp_path / "out/manifest.json").read_bytes() == manifest
