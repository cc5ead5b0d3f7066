"""Two packs on the same input: the counts equal those of a plain loop, and the page shows corpus text only as text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corpusforge import errors, schemas
from corpusforge.cli import cli
from corpusforge.report import comparison
from corpusforge.seeds import rng_for
from corpusforge.shards import Manifest
from tests.report.handmade_run import HOSTILE, document, reject, write_stage

REASONS = ["page:few-sentences", "page:language", "page:badword"]


def identity(number: int) -> str:
    """An id as hashes are: its first digits differ."""
    return f"{(number * 0x9E3779B97F4A7C15) % 2**64:016x}{number:016x}"


def write_side(folder: Path, fates: list[str], texts: list[str]) -> None:
    documents: list[dict[str, Any]] = []
    rejects: list[dict[str, Any]] = []
    for number, (fate, text) in enumerate(zip(fates, texts, strict=True)):
        if fate == "kept":
            documents.append(document(number, text) | {"id": identity(number)})
            rejects.append(reject(number, 7, "line:few-words", HOSTILE) | {"document": identity(number)})
        else:
            rejects.append(reject(number, None, fate, f"{text}\n{HOSTILE}", "why") | {"document": identity(number)})
    tables = {"documents": (schemas.DOCUMENTS, documents), "rejects": (schemas.REJECTS, rejects)}
    write_stage(folder, "clean", tables)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[list[str], list[str]]:
    draw = rng_for(0, "test", "compare")
    choices = ["kept", *REASONS]
    fates = [[choices[k] for k in draw.integers(0, 4, 500)] for _ in range(2)]
    left = [f"text {k}" for k in range(500)]
    right = [text if k % 3 else f"{text} changed" for k, text in enumerate(left)]
    write_side(tmp_path / "a", fates[0], left)
    write_side(tmp_path / "b", fates[1], right)
    return fates[0], fates[1]


@pytest.mark.parametrize("round_size", [10**7, 200])
def test_counts_equal_those_of_a_loop(
    tmp_path: Path, sides: tuple[list[str], list[str]], monkeypatch: pytest.MonkeyPatch, round_size: int
) -> None:
    monkeypatch.setattr(comparison, "ROUND", round_size)
    pairing = comparison.pair(str(tmp_path / "a"), str(tmp_path / "b"))
    assert pairing.counts == Counter(zip(*sides, strict=True))
    assert pairing.changed == sum(
        k % 3 == 0 for k, fates in enumerate(zip(*sides, strict=True)) if set(fates) == {"kept"}
    )
    assert pairing.only == (0, 0)
    by_id = {identity(k): fates for k, fates in enumerate(zip(*sides, strict=True))}
    for fates, names in pairing.examples.items():
        assert 0 < len(names) <= comparison.EXAMPLES
        assert all(by_id[name] == fates for name in names)


def test_documents_on_one_side_alone_are_counted(tmp_path: Path) -> None:
    write_side(tmp_path / "a", ["kept", "kept", "page:language"], ["x", "y", "z"])
    write_side(tmp_path / "b", ["kept"], ["x"])
    assert comparison.pair(str(tmp_path / "a"), str(tmp_path / "b")).only == (2, 0)


def test_page_shows_disagreements_and_escapes_corpus_text(tmp_path: Path, sides: tuple[list[str], list[str]]) -> None:
    result = CliRunner().invoke(cli, ["report", str(tmp_path / "a"), "--against", str(tmp_path / "b")])
    assert result.exit_code == 0, result.output
    page = Path(result.output.strip()).read_text("utf-8")
    assert "<h2>Disagreements" in page
    assert "page:badword" in page
    assert "<img src=x" not in page
    assert page.count("</script>") == page.count("<script")


def test_runs_over_different_input_are_refused(tmp_path: Path) -> None:
    write_side(tmp_path / "a", ["kept"], ["x"])
    write_side(tmp_path / "b", ["kept"], ["x"])
    manifest = Manifest.load(str(tmp_path / "b"))
    manifest.upstream["input"] = "2" * 32
    manifest.save(str(tmp_path / "b"))
    with pytest.raises(errors.StageMismatch, match="another input"):
        comparison.write_comparison(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "c.html"))


def test_side_without_rejects_is_refused(tmp_path: Path) -> None:
    write_stage(tmp_path / "a", "clean", {"documents": (schemas.DOCUMENTS, [document(0, "x")])})
    with pytest.raises(errors.StageMismatch, match="kept no rejects"):
        comparison.pair(str(tmp_path / "a"), str(tmp_path / "a"))
