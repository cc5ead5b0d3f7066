"""The text left around a cut, and the rows that record it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpusforge import schemas
from corpusforge.seeds import document_keys
from tests.dedupe.in_process import dedupe_units, write_units

PAGE = "The quick fox ran. It met a dog. They spoke at length. Then it left. Nobody saw it again.\n"


def texts_of(documents: Any) -> dict[str, str]:
    return dict(zip(documents["id"].to_pylist(), documents["text"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("X one. {0} Y two.", "X one. Y two."),
        ("X one.\n{0} Y two.", "X one.\nY two."),
        ("X one. {0}\nY two.", "X one.\nY two."),
        ("X one.  {0} Y two.", "X one.  Y two."),
        ("X one.\n\n{0}\nY two.", "X one.\n\nY two."),
        (" {0} Y two.\n", " Y two.\n"),
        ("\nX one. {0} \n", "\nX one. \n"),
        ("X one. {0} {0} Y two.", "X one. Y two."),
        ("X one. {0} Z mid. {0}\nY two.", "X one. Z mid.\nY two."),
    ],
)
def test_white_space_around_cuts(tmp_path: Path, text: str, left: str) -> None:
    ids = _ordered_ids()
    passage = "It began. It went on. It ended."
    units = write_units(tmp_path / "in", [[(ids[1], text.format(passage)), (ids[0], passage)]])
    documents, repeats, _, _ = dedupe_units(units, tmp_path / "out", min_sentences=0)
    assert texts_of(documents) == {ids[0]: passage, ids[1]: left}
    for row in repeats.to_pylist():
        assert text.format(passage).encode()[row["start"] : row["stop"]].decode() == row["text"]
        assert (row["kept_document"], row["kept_start"]) == (ids[0], 0)


def test_a_line_break_inside_the_cut_is_kept(tmp_path: Path) -> None:
    ids = _ordered_ids()
    passage = "It began.\nIt went on. It ended."
    units = write_units(tmp_path / "in", [[(ids[0], passage), (ids[1], f"X one. {passage} Y two.")]])
    documents, _, _, _ = dedupe_units(units, tmp_path / "out", min_sentences=0)
    assert texts_of(documents)[ids[1]] == "X one.\nY two."


def test_audit_rows_end_where_either_document_ends(tmp_path: Path) -> None:
    ids = _ordered_ids(3)
    head, tail = "A one. B two. C three.", "D four. E five. F six."
    both = f"{head} {tail}"
    for number, texts in enumerate([(both, head, tail), (head, tail, both)]):
        units = write_units(tmp_path / f"in-{number}", [list(zip(ids, texts, strict=True))])
        _, repeats, _, _ = dedupe_units(units, tmp_path / f"out-{number}")
        rows = [tuple(row.values()) for row in repeats.to_pylist() if row["reason"] == "span:repeated"]
        if number == 0:
            expected = [(ids[1], 0, head, ids[0], 0), (ids[2], 0, tail, ids[0], len(head) + 1)]
        else:
            expected = [(ids[2], 0, head, ids[0], 0), (ids[2], len(head) + 1, tail, ids[1], 0)]
        assert [(row[0], row[2], *row[4:7]) for row in rows] == expected


def test_documents_that_lost_nothing_are_never_dropped(tmp_path: Path) -> None:
    rows = [("a", "Short."), ("b", PAGE), ("c", PAGE + "Only this. And this.")]
    units = write_units(tmp_path / "in", [rows])
    documents, repeats, tallies, _ = dedupe_units(units, tmp_path / "out", min_sentences=0, min_words=5)
    assert "a" in texts_of(documents)
    assert tallies["page:few-words"]["rows"] + tallies.get("page:few-sentences", {"rows": 0})["rows"] == 1
    assert schemas.REPEATS.names == repeats.schema.names


def _ordered_ids(count: int = 2) -> list[str]:
    """Ids in the order of kept copies."""
    return sorted(["one", "two", "three"][:count], key=lambda name: int(document_keys([name])[0]))
