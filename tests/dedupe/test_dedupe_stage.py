"""The stage from shards to shards against the brute-force oracle, however the corpus is cut."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.content import ContentDigest
from tests.dedupe.in_process import dedupe_units, write_units
from tests.draws import draws
from tests.oracles import spans as oracle

SENTENCES = ["Aa b.", "aa, B!", "Cc d?", "Ee é.", "ee É!", "...", "F f.", "G 1.", "G 2.", "你好。", "!!"]
GAPS = [" ", "\n", "  ", " \n ", "\n\n"]


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
    found: list[list[tuple[str, str]]] = [[] for _ in range(groups)]
    for row in rows:
        found[dice.randrange(groups)].append(row)
    return found


def run(
    groups: list[list[tuple[str, str]]], **options: Any
) -> tuple[pa.Table, pa.Table, dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        units = write_units(Path(folder) / "in", groups)
        return dedupe_units(units, Path(folder) / "out", **options)


def rows_of(repeats: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as the oracle gives them."""
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
def test_every_sentence_cut_stands_somewhere_unless_its_page_was_dropped(corpus: dict[str, str]) -> None:
    documents, repeats, _, _ = run([list(corpus.items())], min_sentences=0)
    dropped = [row[4] for row in rows_of(repeats) if row[1].startswith("page:")]
    left = {words for text in documents["text"].to_pylist() + dropped for words in sentence_words(text)}
    for row in rows_of(repeats):
        if row[1] == "span:repeated":
            assert set(sentence_words(row[4])) <= left
