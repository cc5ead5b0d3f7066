"""Duplicate lines and their audit rows against the brute-force oracle."""

from __future__ import annotations

import hashlib
import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import schemas
from corpusforge.dedupe.lines import GLANCE, CutLinesWork, HashLinesWork, enough_sentences, line_hashes, url_order
from corpusforge.sentences.counter import SentenceCounter
from corpusforge.units import ShardUnit
from tests.dedupe.in_process import run_works
from tests.draws import draws
from tests.oracles.repeated_lines import Page, dedupe
from tests.oracles.spans import sentences_of

LINES = [
    "Aa b.",
    " aa B. ",
    "Cc d? Ee. F f.",
    "ΟΔΟΣ.",
    "οδος.",
    "οδοσ.",
    "İx.",
    "",
    " ",
    "\t",
    "\xa0Aa b.\u2003",
    "a\rb",
    "…",
]
PAGES = st.lists(
    st.builds(Page, st.uuids().map(str), st.one_of(st.none(), st.sampled_from(["", "http://a", "http://b/é"])),
              st.lists(st.sampled_from(LINES), max_size=8).map("\n".join)),
    max_size=6, unique_by=lambda page: page.id,
)  # fmt: skip


def units_of(folder: Path, pages: list[Page], shards: int, dice: random.Random) -> list[ShardUnit]:
    groups: list[list[Page]] = [[] for _ in range(shards)]
    for page in dice.sample(pages, len(pages)):
        groups[dice.randrange(shards)].append(page)
    units = []
    for number, group in enumerate(groups):
        rows = [{"id": p.id, "url": p.url, "source": "s", "position": 0, "text": p.text} for p in group]
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schemas.DOCUMENTS), path)
        units.append(ShardUnit(number, str(path), len(rows), path.stat().st_size))
    return units


def deduped(pages: list[Page], seed: int, needed: int) -> tuple[dict[str, str], list[dict[str, Any]], Any, Any]:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        units, out = units_of(Path(folder), pages, dice.randint(1, 3), dice), Path(folder) / "out"
        hashing = HashLinesWork(str(out / "hashes"), 1)
        counter = SentenceCounter("builtin")
        cutting = CutLinesWork(str(out), hashing.folder, span_sentences=1, min_sentences=needed, counter=counter)
        documents, repeats, *counts = run_works(
            units, out, hashing, cutting, dice.randint(1, 4), dice.randint(1, 3), ordered=True
        )
    return {row["id"]: row["text"] for row in documents.to_pylist()}, repeats.to_pylist(), *counts


@given(PAGES, st.sampled_from([0, 1, 3]), st.integers())
@draws(40)
def test_equals_the_oracle(pages: list[Page], needed: int, seed: int) -> None:
    texts_left, repeats, tallies, statistics = deduped(pages, seed, needed)
    assert texts_left == dedupe(pages, min_sentences=needed, count_sentences=lambda text: len(sentences_of(text)))
    lost = sum(counts["bytes"] for counts in tallies.values())
    assert statistics.get("text_bytes_in", 0) == statistics.get("text_bytes_out", 0) + lost
    texts = {page.id: page.text.encode() for page in pages}
    for row in repeats:
        if row["reason"] == "line:repeated":
            cut = texts[row["document"]][row["start"] : row["stop"]].decode()
            kept = texts[row["kept_document"]][row["kept_start"] :].decode()
            assert cut == row["text"] and cut.strip()
            for line, copy in zip(cut.split("\n"), kept.split("\n"), strict=False):
                assert line.strip().lower() == copy.strip().lower()


@given(st.lists(st.text(max_size=6), max_size=6))
@example(["Σ", "ΑΣ", "ας", "ασ", "\x1cA\x1f", "ẞ", "ß", "\u2028a", "\u180ea", "\ufeffa", "\u200ba"])
def test_lines_are_equal_as_in_python(lines: list[str]) -> None:
    hashes = line_hashes(pa.array(lines, pa.string())).tolist()
    forms = [line.strip().lower() for line in lines]
    for i, one in enumerate(forms):
        assert [hashes[i] == other for other in hashes] == [one == other for other in forms]


def test_pages_are_ordered_by_the_hex_digits_of_their_url() -> None:

    rows = [
        {"id": str(i), "url": f"u{i}" if i % 3 else None, "source": "", "position": 0, "text": ""} for i in range(99)
    ]
    order = url_order(pa.RecordBatch.from_pylist(rows, schema=schemas.DOCUMENTS))
    digests = [hashlib.md5((row["url"] or row["id"]).encode()).hexdigest() for row in rows]
    assert sorted(range(99), key=order.tolist().__getitem__) == sorted(range(99), key=digests.__getitem__)


@pytest.mark.parametrize("cut", range(GLANCE - 14, GLANCE + 3, 2))
def test_a_glance_counts_as_the_whole_text_does(cut: int) -> None:
    """Texts whose third sentence ends around the place where the glance does."""
    head = "One here. " + "x" * (cut - 20) + " end."
    texts = pa.array([head + tail for tail in ("", " Dr. X", " A b.", " etc. and", " p. 3 b", " B. C d", " c d e f")])
    counter = SentenceCounter("builtin")
    for needed in (1, 2, 3):
        expected = [len(sentences_of(text)) >= needed for text in texts.to_pylist()]
        assert enough_sentences(counter, needed, texts).tolist() == expected


def test_pages_that_lost_nothing_are_judged_too() -> None:
    """As in C4: the sentences of every page are counted again, over its lines."""
    long = "It went. It came. It left."
    texts_left, repeats, *_ = deduped([Page("a", None, "One line\nand another"), Page("b", None, long)], 1, 3)
    assert texts_left == {"b": long}
    assert [(row["document"], row["reason"], row["text"]) for row in repeats] == [
        ("a", "page:few-sentences", "One line\nand another")
    ]
