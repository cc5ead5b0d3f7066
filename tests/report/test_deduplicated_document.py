"""A deduplicated document beside its text before: marks are where text was cut, also after several methods."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from corpusforge import schemas, shards
from corpusforge.recipe import override
from corpusforge.report.duplicates import mark_cuts
from corpusforge.report.inspect import inspect
from corpusforge.sections import Recipe
from corpusforge.stages import dedupe
from corpusforge.stages.stage import Execution
from tests.report.handmade_run import write_stage

TEXT = "Menu. Home.\nOwn one. Own two. Own three.\nIt came. It saw. It went.\nOwn four."
OTHER = "Menu. Home.\nOther. It came. It saw. It went. Yes."


def deduplicated(folder: Path) -> Path:
    rows = [
        {"id": f"{n:032x}", "url": f"http://a/{n}", "source": "s", "position": n, "language": None, "timestamp": None,
         "text": text}
        for n, text in enumerate([TEXT, OTHER, TEXT.replace("Own", "My")])
    ]  # fmt: skip
    write_stage(folder / "clean", "clean", {"documents": (schemas.DOCUMENTS, rows)})
    chain = override(Recipe(), {"dedupe.method": "lines,exact-spans", "dedupe.sentences": "builtin"})
    dedupe.dedupe(chain, str(folder / "clean"), str(folder / "dedupe"), Execution(workers=1))
    return folder / "dedupe"


def shown(folder: Path, document: str) -> str:
    console = Console(width=200, record=True, file=(folder / "shown").open("w"))
    for part in inspect(str(folder), document=document):
        console.print(part)
    return console.export_text()


def rows_of(folder: Path) -> list[dict[str, Any]]:
    manifest = shards.Manifest.load(str(folder))
    return [r for p in manifest.paths(str(folder), "repeats") for b in shards.read_shard(p) for r in b.to_pylist()]


def test_before_and_after_are_shown(tmp_path: Path) -> None:
    folder = deduplicated(tmp_path)
    document = next(row["document"] for row in rows_of(folder) if not row["reason"].startswith("page:"))
    text = shown(folder, document)
    assert "before, with what was cut [-between marks-]:" in text and "after:" in text
    before = text.partition("after:")[0]
    assert "Menu. Home." in before and "It came. It saw. It went." in before and "-]" in before
    (tmp_path / "clean/manifest.json").unlink()
    text = shown(folder, document)
    assert "the text before is missing: no folder beside this one holds" in text
    assert "after:" in text and "[-" not in text


@pytest.mark.slow
@pytest.mark.parametrize("what", ["shards", "manifest", "folder"])
def test_an_unreadable_input_stage_is_reported(tmp_path: Path, what: str) -> None:
    folder = deduplicated(tmp_path)
    document = rows_of(folder)[0]["document"]
    if what == "shards":
        shutil.rmtree(tmp_path / "clean/documents")
    elif what == "manifest":
        (tmp_path / "clean/manifest.json").unlink()
        (tmp_path / "clean/manifest.json").mkdir()  # an OSError where a file is read
    else:
        (tmp_path / "clean").rename(tmp_path / "elsewhere")
        (tmp_path / "elsewhere/documents/part-00000-00000.parquet").write_bytes(b"PAR1")
    text = shown(folder, document)
    assert text.count("the text before is missing: ") == 1 and "after:" in text
    shutil.copytree(deduplicated(tmp_path / "again").parent / "clean", tmp_path / "copy")  # still there
    assert "before, with what was cut" in shown(folder, document)


def test_pages_dropped_whole_are_marked(tmp_path: Path) -> None:
    page = " ".join(f"Word{n} of it." for n in range(40))
    rows = [{"id": f"{n:032x}", "source": "s", "position": n, "text": text} for n, text in enumerate([page, page])]
    write_stage(tmp_path / "clean", "clean", {"documents": (schemas.DOCUMENTS, rows)})
    for method, reason in (("documents", "page:near-duplicate"), ("lines", "page:no-lines")):
        folder = tmp_path / method
        chain = override(Recipe(), {"dedupe.method": method, "dedupe.sentences": "builtin"})
        dedupe.dedupe(chain, str(tmp_path / "clean"), str(folder), Execution(workers=1))
        gone = next(row["document"] for row in rows_of(folder) if row["reason"] == reason)
        text = shown(folder, gone)
        assert f"the page was dropped: {reason}, by {method}" in text
        assert "[-" in text and "-]" in text


def test_marks_of_two_methods_and_of_several_bytes() -> None:
    cut = {"reason": "line:repeated", "method": "lines", "start": 3, "stop": 6}
    around = {"reason": "span:repeated", "method": "exact-spans", "start": 0, "stop": 8}
    marked = mark_cuts("aé\nb c é", [cut, around])
    assert marked.plain == "[-exact-spans: aé-][-lines: \nb -][-exact-spans: c -]é"
    assert [marked.plain[s.start : s.end] for s in marked.spans if s.style == "yellow"] == ["[-lines: \nb -]"]
    page = {"reason": "page:few-sentences", "method": "exact-spans", "start": 0, "stop": 9}
    assert mark_cuts("aé\nb c é", [page, cut, around]).plain == marked.plain[:-1] + "[-page:few-sentences: é-]"


def test_a_method_of_another_version_is_marked_too() -> None:
    assert mark_cuts("ab", [{"reason": "x:y", "method": "new", "start": 0, "stop": 1}]).plain == "[-a-]b"


@pytest.mark.parametrize("text", ["", "a"])
def test_text_without_cuts_is_unchanged(text: str) -> None:
    assert mark_cuts(text, []).plain == text
