"""Every method, and chains of them, on one corpus: shuffled, in other shards, with other workers, in rounds.

Digests of documents and of audit rows are equal each time. Through Beam's portable runner: tests/beam/test_portable.py.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusforge import schemas, shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.content import combine
from corpusforge.dedupe import locate, memory, methods
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit
from tests.dedupe.in_process import read_table

WORDS = ("river", "forest", "hill", "teacher", "engine", "garden", "window", "market", "station", "bridge", "harbour")
METHODS = ["lines", "exact-spans", "near-spans", "documents"]
CHAINS = [("lines", "exact-spans"), ("documents", "near-spans", "lines")]


def sentence(dice: random.Random) -> str:
    return f"The {' '.join(dice.choices(WORDS, k=9))} {dice.randrange(1000)}."


def corpus() -> list[dict[str, Any]]:
    """Pages with shared passages, shared lines, edited copies, one URL twice, equal times, and nothing in them."""
    dice = random.Random(11)
    passages = [" ".join(sentence(dice) for _ in range(4)) for _ in range(4)]
    footers = ["Share this page. Print it. Send it on.", "All rights reserved.", ""]
    page = "\n".join(" ".join(sentence(dice) for _ in range(6)) for _ in range(4))
    rows = []
    for number in range(60):
        parts = [" ".join(sentence(dice) for _ in range(dice.randrange(5))) for _ in range(3)]
        if number % 3 == 0:
            parts.insert(1, passages[number % 4])
        if number % 4 == 1:
            words = passages[number % 3].split()
            words[dice.randrange(len(words))] = "edited"
            parts.append(" ".join(words))
        if number % 7 == 2:
            parts = [page.replace("hill", "mount", number % 5), dice.choice(footers)]
        if number % 5 == 0:
            parts += dice.sample(footers, 2)
        url = f"http://example.org/{number - number % 2}" if number % 11 else None
        time = 1_500_000_000 + 86_400 * (number % 4) if number % 6 else None
        text = "\n".join(parts) if number % 13 else ""
        rows.append({"id": f"{number:032x}", "url": url, "source": "made", "position": number, "timestamp": time,
                     "language": "en", "text": text})  # fmt: skip
    return rows


ROWS = corpus()


def units_of(folder: Path, rows: list[dict[str, Any]], dice: random.Random, count: int) -> list[ShardUnit]:
    """The rows in random order in ``count`` shards, some perhaps empty."""
    groups: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for row in dice.sample(rows, len(rows)):
        groups[dice.randrange(count)].append(row)
    folder.mkdir(parents=True)
    units = []
    for number, group in enumerate(groups):
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(group, schema=schemas.DOCUMENTS), path)
        units.append(ShardUnit(number, str(path), len(group), path.stat().st_size))
    return units


def deduped(folder: Path, settings: Dedupe, seed: int, count: int, workers: int) -> Any:
    units = units_of(folder / "in", ROWS, random.Random(seed), count)
    done = methods.run(BeamEngine(workers), settings, units, str(folder / "out"), Silent())
    assert not (folder / "out" / methods.SCRATCH).exists()
    entries = shards.load_entries(str(folder / "out"))
    tables = {name for entry in entries for name in entry.tables}
    contents = {t: combine(e.tables[t].content for e in entries if t in e.tables) for t in tables}
    return contents, done.tallies, done.statistics


def check(settings: Dedupe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = deduped(tmp_path / "straight", settings, 0, 1, 1)
    assert straight[1], "nothing was cut"
    lost = sum(counts["bytes"] for counts in straight[1].values())
    assert straight[2]["text_bytes_in"] == straight[2]["text_bytes_out"] + lost
    assert deduped(tmp_path / "two", settings, 1, 4, 2) == straight
    for planned in ("exact_rounds", "mark_rounds", "pair_rounds"):
        monkeypatch.setattr(memory, planned, lambda *_: 3)
    assert deduped(tmp_path / "five", settings, 2, 9, 5) == straight


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_no_method_depends_on_order(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(Dedupe(method=(method,), sentences="builtin"), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["newest", "longest"])
@pytest.mark.parametrize("method", METHODS)
def test_no_choice_of_kept_copies_depends_on_order(
    keep: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(Dedupe(method=(method,), sentences="builtin", keep=keep), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("methods", CHAINS, ids=",".join)
def test_no_chain_depends_on_order(methods: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(Dedupe(method=methods, sentences="builtin"), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact-spans", "near-spans"])
def test_on_an_object_store_each_unit_is_read_once_to_locate_copies(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Dedupe(method=(method,))
    straight, _, _ = deduped(tmp_path / "straight", settings, 0, 1, 1)
    units, out = units_of(tmp_path / "in", ROWS, random.Random(5), 6), f"memory://any-order/{method}"
    opened: list[str] = []
    real = locate._open
    monkeypatch.setattr(locate, "_open", lambda path: (opened.append(path), real(path))[1])
    methods.run(BeamEngine(1), settings, units, out, Silent())
    entries = shards.load_entries(out)
    for table in ("documents", "repeats"):
        assert combine(entry.tables[table].content for entry in entries) == straight[table]
    assert 3 < len(opened) == len(set(opened)) <= 6


@pytest.mark.parametrize("keep", ["newest", "longest"])
def test_the_newest_or_longest_copy_stays(keep: str, tmp_path: Path) -> None:
    """The kept copy of every span cut is in a document that is not older, or not shorter."""
    deduped(tmp_path, Dedupe(keep=keep, min_sentences=0), 0, 3, 1)
    rank = {row["id"]: (row["timestamp"] or 0) if keep == "newest" else len(row["text"].encode()) for row in ROWS}
    rows = read_table(tmp_path / "out", "repeats").to_pylist()
    pairs = [(row["kept_document"], row["document"]) for row in rows if row["reason"] == "span:repeated"]
    assert all(rank[kept] >= rank[cut] for kept, cut in pairs)
    assert any(rank[kept] > rank[cut] for kept, cut in pairs)


def test_places_of_a_chain_refer_to_the_input_text(tmp_path: Path) -> None:
    """Those of both methods, of cut and of kept text; the text of a cut that spans an earlier one is what was left."""
    deduped(tmp_path, Dedupe(method=("lines", "exact-spans"), sentences="builtin", min_sentences=1), 3, 3, 1)
    texts = {row["id"]: row["text"].encode() for row in ROWS}
    rows = read_table(tmp_path / "out", "repeats").to_pylist()
    moved = 0
    for row in (row for row in rows if row["kept_document"]):
        cut = texts[row["document"]][row["start"] : row["stop"]].decode()
        kept = texts[row["kept_document"]][row["kept_start"] :].decode()
        assert kept.split()[:3] == row["text"].split()[:3]
        assert cut.split()[:3] == row["text"].split()[:3] and cut.split()[-1] == row["text"].split()[-1]
        moved += row["method"] == "exact-spans" and any(
            other["method"] == "lines" and other["document"] == row["document"] and other["start"] < row["start"]
            for other in rows
        )
    assert moved, "no span was cut after a line that was cut"
