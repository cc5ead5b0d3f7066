"""Kept copies that were cut later: inspect follows them, and a copy without such a note is still in the output."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from corpusforge import schemas, shards
from corpusforge.recipe import override
from corpusforge.report.duplicates import describe_copy, follow_copies
from corpusforge.report.inspect import inspect
from corpusforge.sections import Recipe
from corpusforge.stages import dedupe
from corpusforge.stages.stage import Execution
from tests.report.handmade_run import write_stage

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
SENTENCES = [f"The {word} of it goes here." for word in WORDS]


def letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def deduplicated(folder: Path, texts: dict[str, str], method: str) -> tuple[str, list[dict[str, Any]], dict[str, str]]:
    """The stage's folder, its rows of REPEATS, and the remaining texts."""
    rows = [{"id": name, "source": "s", "position": n, "text": text} for n, (name, text) in enumerate(texts.items())]
    write_stage(folder / "clean", "clean", {"documents": (schemas.DOCUMENTS, rows)})
    settings = {"dedupe.method": method, "dedupe.sentences": "builtin", "dedupe.min_sentences": 0}
    out = str(folder / "dedupe")
    dedupe.dedupe(override(Recipe(), settings), str(folder / "clean"), out, Execution(workers=1))
    manifest = shards.Manifest.load(out)
    read = {t: [b for p in manifest.paths(out, t) for b in shards.read_shard(p)] for t in ("repeats", "documents")}
    left = {row["id"]: row["text"] for batch in read["documents"] for row in batch.to_pylist()}
    return out, [row for batch in read["repeats"] for row in batch.to_pylist()], left


def overlapping(seed: int) -> dict[str, str]:
    """Documents that share runs of sentences with different beginnings and ends."""
    dice = random.Random(seed)
    texts = {}
    for number in range(6):
        first = dice.randrange(5)
        run = SENTENCES[first : first + dice.randint(3, 6)]
        texts[f"{number:032x}"] = f"Own{number} a. Own{number} b.\n" + " ".join(run) + f"\nEnd{number} of it."
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact-spans", "lines,exact-spans"])
@pytest.mark.parametrize("seed", range(8))
def test_a_copy_without_a_note_is_in_the_output(tmp_path: Path, method: str, seed: int) -> None:
    folder, cuts, left = deduplicated(tmp_path, overlapping(seed), method)
    trails = follow_copies(folder, shards.Manifest.load(folder), cuts)
    for cut, trail in zip(cuts, trails, strict=True):
        if cut["kept_document"] is None:
            assert not trail and not describe_copy(cut, trail)
            continue
        text, kept = letters(cut["text"]), (trail[-1] if trail else cut)["kept_document"]
        if not trail:
            assert text in letters(left[kept])
        elif "part of" not in describe_copy(cut, trail):  # its first sentence is followed to where it is kept
            assert letters(cut["text"].split(".")[0]) in letters(left[kept])


def test_inspect_shows_that_the_copy_was_cut(tmp_path: Path) -> None:
    folder, cuts, _ = deduplicated(tmp_path, overlapping(3), "lines,exact-spans")
    trails = follow_copies(folder, shards.Manifest.load(folder), cuts)
    cut = next(cut for cut, trail in zip(cuts, trails, strict=True) if trail)
    console = Console(width=2000, record=True, file=(tmp_path / "shown").open("w"))
    console.print(*inspect(folder, document=cut["document"]), sep="\n")
    assert f"{cut['kept_document']} at byte {cut['kept_start']}, " in (text := console.export_text())
    assert " was cut by exact-spans (span:repeated) and kept in " in text


def test_a_page_dropped_later_is_followed(tmp_path: Path) -> None:
    line = {"reason": "line:repeated", "start": 9, "stop": 14, "text": "Line.", "kept_start": 3, "method": "lines"}
    rows = [
        {**line, "document": "a", "kept_document": "b"},
        {**line, "document": "b", "reason": "page:near-duplicate", "method": "documents", "kept_document": "c"},
        {**line, "document": "c", "reason": "page:few-words", "kept_document": None, "kept_start": None},
    ]
    manifest = write_stage(tmp_path, "dedupe", {"repeats": (schemas.REPEATS, rows)})
    (trail,) = follow_copies(str(tmp_path), manifest, rows[:1])
    assert describe_copy(rows[0], trail) == (
        "kept in b at byte 3, which itself was dropped by documents (page:near-duplicate) and kept in c, "
        "which itself was dropped by lines (page:few-words)"
    )


def test_following_copies_ends_on_circular_rows(tmp_path: Path) -> None:
    line = {"reason": "line:repeated", "start": 0, "stop": 5, "text": "Line.", "kept_start": 0, "method": "lines"}
    page = {**line, "reason": "page:near-duplicate", "method": "documents"}
    rows = [{"document": "a", "kept_document": "b", **line}, {**page, "document": "b", "kept_document": "a"}]
    manifest = write_stage(tmp_path, "dedupe", {"repeats": (schemas.REPEATS, rows)})
    (trail,) = follow_copies(str(tmp_path), manifest, rows[:1])
    assert describe_copy(rows[0], trail).endswith("and kept in a, which is this document: there may be no copy left")
    circle = [rows[0], {**rows[1], "reason": "line:repeated"}]
    manifest = write_stage(tmp_path, "dedupe", {"repeats": (schemas.REPEATS, circle)})
    assert len(follow_copies(str(tmp_path), manifest, circle[:1])[0]) == 2


def test_cuts_of_an_earlier_method_were_not_part_of_the_copy(tmp_path: Path) -> None:
    kept = {"start": 0, "stop": 22, "text": "One of it. Two of it.", "kept_start": 5}
    span = {**kept, "reason": "span:repeated", "method": "exact-spans", "document": "a", "kept_document": "b"}
    line = {**kept, "reason": "line:repeated", "method": "lines", "document": "b", "kept_document": "c"}
    manifest = write_stage(tmp_path, "dedupe", {"repeats": (schemas.REPEATS, [span, line])})
    for methods, is_followed in ((["lines", "exact-spans"], False), (["exact-spans", "lines"], True)):
        chain = dataclasses.replace(manifest, recipe={"dedupe": {"method": methods}})
        assert bool(follow_copies(str(tmp_path), chain, [span])[0]) is is_followed


def test_a_partly_removed_copy_is_described_as_such(tmp_path: Path) -> None:
    kept = {"reason": "span:repeated", "method": "exact-spans", "start": 0, "stop": 21, "text": "One of it. Two of it."}
    cut = {**kept, "document": "a", "kept_document": "b", "kept_start": 0}
    for start, stop, text, how in (
        (0, 21, "One of it! Two of it.", "which itself"),
        (0, 10, "One of it.", "the beginning of which"),
        (11, 30, "Two of it. More of it.", "part of which"),
        (11, 30, "Other things of it.", ""),
    ):
        row = {
            **kept,
            "document": "b",
            "kept_document": "c",
            "start": start,
            "stop": stop,
            "text": text,
            "kept_start": 7,
        }
        manifest = write_stage(tmp_path, "dedupe", {"repeats": (schemas.REPEATS, [row])})
        (trail,) = follow_copies(str(tmp_path), manifest, [cut])
        assert describe_copy(cut, trail).removeprefix("kept in b at byte 0") == (
            f", {how} was cut by exact-spans (span:repeated) and kept in c at byte 7" if how else ""
        )


def test_a_copy_in_an_index_is_not_followed(tmp_path: Path) -> None:
    row = {"document": "a", "kept_document": "a", "reason": "page:in-index", "start": 0, "stop": 5, "text": "Line.",
           "method": "documents"}  # fmt: skip
    manifest = write_stage(tmp_path, "dedupe", {"repeats": (schemas.REPEATS, [row])})
    row["kept_start"] = None
    assert follow_copies(str(tmp_path), manifest, [row]) == [[]]
    assert describe_copy(row, []) == "kept in a of an index"
