"""The units of work: hostile shapes, going on after a crash, and what is written."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpusforge import schemas, shards
from corpusforge.dedupe import exact_spans, job
from corpusforge.dedupe.cut import Cut
from corpusforge.dedupe.exact_spans import CutWork, HashWork, span_blocks
from corpusforge.seeds import document_keys
from tests.dedupe.in_process import dedupe_units, documents_batch, read_table, write_units

PAGE = "The quick fox ran. It met a dog. They spoke at length. Then it left. Nobody saw it again.\n"


def texts_of(documents: Any) -> dict[str, str]:
    return dict(zip(documents["id"].to_pylist(), documents["text"].to_pylist(), strict=True))


def test_one_copy_of_a_page_stays_whole(tmp_path: Path) -> None:
    groups = [[(f"{shard}-{row}", PAGE) for row in range(50)] for shard in range(3)]
    documents, repeats, tallies, statistics = dedupe_units(write_units(tmp_path / "in", groups), tmp_path / "out")
    assert documents["text"].to_pylist() == [PAGE]
    assert tallies["page:few-sentences"]["rows"] == 149
    assert set(repeats["kept_document"].drop_null().to_pylist()) == set(documents["id"].to_pylist())
    assert statistics["documents_in"] == 150
    assert statistics["repeated_spans"] == 149 * 3


@pytest.mark.parametrize("copies", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_one_sentence_over_and_over(tmp_path: Path, copies: int) -> None:
    units = write_units(tmp_path / "in", [[("a", "Say it again. " * copies)], [("b", "")], []])
    documents, repeats, _, statistics = dedupe_units(units, tmp_path / "out", min_sentences=0)
    assert texts_of(documents) == {"a": "Say it again. ", "b": ""}
    assert repeats.num_rows == copies - 3  # each a copy of the first; the last three of the first three
    assert statistics["sentences_cut"] == copies - 1


@pytest.mark.slow
def test_ten_thousand_copies_and_a_document_of_20_megabytes(tmp_path: Path) -> None:
    large = "".join(f"Sentence number {i} stands alone. " for i in range(600_000))
    assert len(large) > 20_000_000
    groups = [[("large", large)], [(f"copy-{i}", PAGE) for i in range(10_000)], [("tail", large[-5_000:] + PAGE)]]
    documents, _, tallies, statistics = dedupe_units(write_units(tmp_path / "in", groups), tmp_path / "out")
    left = texts_of(documents)
    assert sum(PAGE.strip() in text for text in left.values()) == 1
    assert sum(len(text) for text in left.values()) < len(large) + 6_000
    lost = sum(counts["bytes"] for counts in tallies.values())
    assert statistics["text_bytes_in"] == statistics["text_bytes_out"] + lost


def test_short_documents_have_no_spans(tmp_path: Path) -> None:
    rows = [("a", "One. Two."), ("b", "One. Two."), ("c", ""), ("d", "* * *\n* * *\n* * *\n"), ("e", "...\n!!!\n???\n")]
    documents, repeats, tallies, _ = dedupe_units(write_units(tmp_path / "in", [rows]), tmp_path / "out")
    assert texts_of(documents) == dict(rows)
    assert repeats.num_rows == 0
    assert tallies == {}


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
            found = [(ids[1], 0, head, ids[0], 0), (ids[2], 0, tail, ids[0], len(head) + 1)]
        else:
            found = [(ids[2], 0, head, ids[0], 0), (ids[2], len(head) + 1, tail, ids[1], 0)]
        assert [(row[0], row[2], *row[4:7]) for row in rows] == found


def test_slices_go_on_in_any_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [documents_batch([(f"{b}-{i}", PAGE * (i + 1)) for i in range(n)]) for b, n in enumerate((3, 0, 5, 4))]
    monkeypatch.setattr(shards, "read_shard", lambda _: iter(batches))
    monkeypatch.setattr(job, "SLICE_BYTES", 2 * len(PAGE))
    whole = [s.column("id").to_pylist() for s in job.slices("")]
    assert [i for part in whole for i in part] == [i for batch in batches for i in batch.column("id").to_pylist()]
    for number in range(len(whole) + 1):
        skip = sum(len(part) for part in whole[:number])
        assert [s.column("id").to_pylist() for s in job.slices("", skip)] == whole[number:]


def test_documents_that_lost_nothing_are_never_dropped(tmp_path: Path) -> None:
    rows = [("a", "Short."), ("b", PAGE), ("c", PAGE + "Only this. And this.")]
    units = write_units(tmp_path / "in", [rows])
    documents, repeats, tallies, _ = dedupe_units(units, tmp_path / "out", min_sentences=0, min_words=5)
    assert "a" in texts_of(documents)
    assert tallies["page:few-words"]["rows"] + tallies.get("page:few-sentences", {"rows": 0})["rows"] == 1
    assert schemas.REPEATS.names == repeats.schema.names


def test_same_id_twice_keeps_one(tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", [[("same", PAGE)], [("same", PAGE)]])
    documents, _, _, _ = dedupe_units(units, tmp_path / "out")
    assert documents["text"].to_pylist() == [PAGE]


def test_partitions_and_rounds_share_out_every_span_once(tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", [[(str(i), f"A{i}. B{i}. C{i}. D{i}. E.") for i in range(200)]])
    result = HashWork(str(tmp_path / "h"))(units[0], lambda _: None)
    folder = str(tmp_path / "h")
    sizes = [sum(len(b) for _, b in span_blocks(folder, 7, r, 3, False, 0)) for r in range(3)]
    assert sum(sizes) == result.statistics["spans"] * 24 == 600 * 24
    assert min(sizes) > 0
    assert {p for p, _ in span_blocks(folder, 7, 0, 3, False, 0)} == set(range(7))


def test_a_hashed_unit_is_not_hashed_again(tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", [[("a", PAGE)]])
    first = HashWork(str(tmp_path / "h"))(units[0], lambda _: None)
    Path(units[0].path).unlink()
    again = HashWork(str(tmp_path / "h"))(units[0], lambda _: None)
    assert again == dataclasses.replace(first, resumed=True)


class Killed(Exception):
    pass


def test_killed_and_resumed_equals_straight_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "SLICE_BYTES", 300)
    groups = [
        [(f"{g}-{i}", PAGE if i % 3 else f"Own {i}. Text {g}. Here {i}. {PAGE}") for i in range(20)] for g in (0, 1)
    ]
    units = write_units(tmp_path / "in", groups)
    dedupe_units(units, tmp_path / "straight", shard_bytes=700)
    real, calls = exact_spans.cut_documents, 0

    def sometimes(*arguments: Any, **options: Any) -> Cut:
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            raise Killed
        return real(*arguments, **options)

    monkeypatch.setattr(exact_spans, "cut_documents", sometimes)
    for _ in range(30):
        try:
            dedupe_units(units, tmp_path / "killed", shard_bytes=700)
        except Killed:
            continue
        break
    assert calls > 10
    assert _files(tmp_path / "killed") == _files(tmp_path / "straight")
    hashes = str(tmp_path / "killed/hashes")
    work = CutWork(str(tmp_path / "killed"), hashes, shard_bytes=700)
    assert work(units[0], lambda _: None).resumed


def test_a_dry_run_counts_the_same_and_writes_no_documents(tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", [[("a", PAGE), ("b", PAGE)]])
    _, repeats, tallies, statistics = dedupe_units(units, tmp_path / "out")
    hashes = str(tmp_path / "out/hashes")
    work = CutWork(str(tmp_path / "dry"), hashes, audit_only=True)
    dry = work(units[0], lambda _: None)
    assert (dry.tallies, dry.statistics) == (tallies, statistics)
    assert read_table(tmp_path / "dry", "repeats") == repeats
    assert not (tmp_path / "dry/documents").exists()


def test_progress_covers_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "SLICE_BYTES", 300)
    units = write_units(tmp_path / "in", [[(str(i), PAGE) for i in range(64)]])
    told: list[int] = []
    HashWork(str(tmp_path / "h"))(units[0], told.append)
    assert units[0].bytes * 0.95 <= sum(told) <= units[0].bytes


def test_output_opens_as_the_documented_tables(tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", [[("a", PAGE), ("b", PAGE)]])
    dedupe_units(units, tmp_path / "out")
    assert read_table(tmp_path / "out", "documents").num_rows == 1
    stored = pq.read_schema(next((tmp_path / "out/repeats").glob("*.parquet")))
    assert stored.equals(schemas.REPEATS)
    entry = json.loads((tmp_path / "out/entries/part-00000-00000.json").read_text())
    assert set(entry["tables"]) == {"documents", "repeats"}
    assert documents_batch([]).schema.names == schemas.DOCUMENTS.names


def _files(folder: Path) -> dict[str, str]:
    names = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return {str(p.relative_to(folder)): shards.file_digest(str(p)) for p in names}


def _ordered_ids(count: int = 2) -> list[str]:
    """Ids in the order of kept copies."""
    return sorted(["one", "two", "three"][:count], key=lambda name: int(document_keys([name])[0]))
