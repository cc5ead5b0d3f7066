"""A deduplicated document beside what it was: marks lie where the text was cut, after several methods too."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_run import write_stage
from rich.console import Console

from corpusforge import schemas, shards
from corpusforge.recipe import override
from corpusforge.report.before import marked
from corpusforge.report.inspect import inspect
from corpusforge.sections import Recipe
from corpusforge.stages import corpus
from corpusforge.stages.stage import Execution

TEXT = "Menu. Home.\nOwn one. Own two. Own three.\nIt came. It saw. It went.\nOwn four."
OTHER = "Menu. Home.\nOther. It came. It saw. It went. Yes."


def made(folder: Path) -> Path:
    rows = [
        {"id": f"{n:032x}", "url": f"http://a/{n}", "source": "s", "position": n, "language": None, "timestamp": None,
         "text": text}
        for n, text in enumerate([TEXT, OTHER, TEXT.replace("Own", "My")])
    ]  # fmt: skip
    write_stage(folder / "clean", "clean", {"documents": (schemas.DOCUMENTS, rows)})
    chain = override(Recipe(), {"dedupe.method": "lines,exact-spans", "dedupe.sentences": "builtin"})
    corpus.dedupe(chain, str(folder / "clean"), str(folder / "dedupe"), Execution(workers=1))
    return folder / "dedupe"


def shown(folder: Path, document: str) -> str:
    console = Console(width=200, record=True, file=(folder / "shown").open("w"))
    for part in inspect(str(folder), document=document):
        console.print(part)
    return console.export_text()


def test_before_and_after_stand_together(tmp_path: Path) -> None:
    folder = made(tmp_path)
    manifest = shards.Manifest.load(str(folder))
    cuts = [r for p in manifest.paths(str(folder), "repeats") for b in shards.read_shard(p) for r in b.to_pylist()]
    document = next(row["document"] for row in cuts if row["reason"] != "page:few-sentences")
    text = shown(folder, document)
    assert "before, with what was cut:" in text and "after:" in text
    before = text.partition("after:")[0]
    assert "Menu. Home." in before and "It came. It saw. It went." in before
    (tmp_path / "clean/manifest.json").unlink()
    assert "before" not in shown(folder, document)


def test_marks_of_two_methods_and_of_several_bytes() -> None:
    cut = {"reason": "line:repeated", "method": "lines", "start": 3, "stop": 6}
    around = {"reason": "span:repeated", "method": "exact-spans", "start": 0, "stop": 8}
    page = {"reason": "page:few-sentences", "method": "exact-spans", "start": 0, "stop": 9}
    spans = marked("aé\nb c é", [page, cut, around]).spans
    assert [(s.start, s.end, s.style) for s in spans] == [(0, 2, "red"), (2, 5, "yellow"), (5, 7, "red")]


@pytest.mark.parametrize("text", ["", "a"])
def test_nothing_cut(text: str) -> None:
    assert marked(text, []).plain == text
