"""Exact spans from shards to shards: against the brute-force oracle, hostile shapes, resuming after a crash."""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import schemas, shards
from corpusforge.content import ContentDigest
from corpusforge.dedupe import exact_spans, job
from corpusforge.dedupe.cut import Cut
from corpusforge.dedupe.exact_spans import CutWork, HashWork, span_blocks
from corpusforge.seeds import document_keys
from tests.dedupe.in_process import dedupe_units, documents_batch, read_table, write_units
from tests.draws import draws
from tests.oracles import spans as oracle

PAGE = "The quick fox ran. It met a dog. They spoke at length. Then it left. Nobody saw it again.\n"

SENTENCES = ["Aa b.", "aa, B!", "Cc d?", "Ee é.", "ee É!", "...", "F f.", "G 1.", "G 2.", "你好。", "!!"]

GAPS = [" ", "\n", "  ", " \n ", "\n\n"]


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
def test_one_sentence_repeated(tmp_path: Path, copies: int) -> None:
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


def test_same_id_twice_keeps_one(tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", [[("same", PAGE)], [("same", PAGE)]])
    documents, _, _, _ = dedupe_units(units, tmp_path / "out")
    assert documents["text"].to_pylist() == [PAGE]


def test_every_span_is_in_one_partition_of_one_round(tmp_path: Path) -> None:
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


@st.composite
def corpora(draw: st.DrawFn) -> dict[str, str]:
    texts = draw(
        st.lists(st.lists(st.tuples(st.sampled_from(SENTENCES), st.sampled_from(GAPS)), max_size=12), max_size=7)
    )
    ends = draw(st.lists(st.sampled_from(["", "", " ", "\n"]), min_size=2, max_size=2))
    return {f"d{i}": ends[0] + "".join(s + g for s, g in rows) + ends[1] for i, rows in enumerate(texts)}


def digest(table: pa.Table) -> str:
    total = ContentDigest()
    for batch in table.to_batches():
        total.add(batch)
    return total.hex()


def grouped(corpus: dict[str, str], seed: int, groups: int) -> list[list[tuple[str, str]]]:
    """The corpus in random order in ``groups`` shards, some perhaps empty."""
    dice = random.Random(seed)
    rows = list(corpus.items())
    dice.shuffle(rows)
    shard_rows: list[list[tuple[str, str]]] = [[] for _ in range(groups)]
    for row in rows:
        shard_rows[dice.randrange(groups)].append(row)
    return shard_rows


def run(
    groups: list[list[tuple[str, str]]], **options: Any
) -> tuple[pa.Table, pa.Table, dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        units = write_units(Path(folder) / "in", groups)
        return dedupe_units(units, Path(folder) / "out", **options)


def rows_of(repeats: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in the form of the oracle."""
    assert {(row["method"], row["similarity"]) for row in repeats.to_pylist()} <= {("exact-spans", None)}
    return [tuple(row.values())[:7] for row in repeats.to_pylist()]


def sentence_words(text: str) -> list[tuple[str, ...]]:
    raw = text.encode()
    return [oracle.words_of(raw[a:b].decode()) for a, b in oracle.sentences_of(text)]


@given(corpora(), st.integers(1, 4), st.sampled_from([0, 1, 3]), st.sampled_from([0, 4]), st.booleans(), st.integers())
@draws(60)
def test_equals_the_oracle(
    corpus: dict[str, str], length: int, sentences: int, words: int, fold: bool, seed: int
) -> None:
    dice = random.Random(seed)
    keep = dice.choice(["hash", "longest"])
    documents, repeats, tallies, statistics = run(
        grouped(corpus, seed, dice.randint(1, 4)),
        partitions=dice.randint(1, 5),
        rounds=dice.randint(1, 3),
        span_sentences=length,
        fold_numbers=fold,
        min_sentences=sentences,
        min_words=words,
        keep=keep,
    )
    floors = {"min_sentences": sentences, "min_words": words}
    expected = oracle.dedupe(corpus, length=length, fold_numbers=fold, keep=keep, **floors)
    assert dict(zip(documents["id"].to_pylist(), documents["text"].to_pylist(), strict=True)) == expected.documents
    by_place = lambda row: (row[0], row[1] != "span:repeated", row[2])  # noqa: E731
    assert sorted(rows_of(repeats), key=by_place) == sorted(expected.repeats, key=by_place)
    lost = sum(counts["bytes"] for counts in tallies.values())
    assert statistics.get("text_bytes_in", 0) == statistics.get("text_bytes_out", 0) + lost
    assert sum(counts["rows"] for counts in tallies.values()) == repeats.num_rows


@given(corpora(), st.integers(), st.integers())
@draws(20)
def test_nothing_depends_on_how_the_corpus_is_cut(corpus: dict[str, str], one: int, other: int) -> None:
    results = []
    for seed in (one, other):
        dice = random.Random(seed)
        documents, repeats, tallies, statistics = run(
            grouped(corpus, seed, dice.randint(1, 6)), partitions=dice.randint(1, 9), rounds=dice.randint(1, 4)
        )
        results.append((digest(documents), digest(repeats), tallies, statistics))
    assert results[0] == results[1]


@given(corpora())
@draws(60)
def test_every_sentence_cut_is_kept_somewhere_unless_its_page_was_dropped(corpus: dict[str, str]) -> None:
    documents, repeats, _, _ = run([list(corpus.items())], min_sentences=0)
    dropped = [row[4] for row in rows_of(repeats) if row[1].startswith("page:")]
    left = {words for text in documents["text"].to_pylist() + dropped for words in sentence_words(text)}
    for row in rows_of(repeats):
        if row[1] == "span:repeated":
            assert set(sentence_words(row[4])) <= left
