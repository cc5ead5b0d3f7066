"""The packs ``gopher-datatrove`` and ``fineweb`` against datatrove's own filters, page by page, on real text.

Runs where datatrove is installed (``benchmarks/requirements-datatrove.txt`` beside CorpusForge). With the same words
there is no difference; datatrove's own words are spaCy's tokens, and docs/cleaning.md shows what that changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("datatrove", reason="needs datatrove (benchmarks/requirements-datatrove.txt)")

from benchmarks.clean_vs_tfds import oddities, prose, take, web_pages
from benchmarks.quality_vs_datatrove import compare, white_space_words

BYTES = {"web": 4_000_000, "prose": 6_000_000, "oddities": 4_000_000}


def pages_of(kind: str, data: Path) -> Iterator[str]:
    source = {"web": web_pages, "prose": prose, "oddities": oddities}[kind]
    edges = ["x", "\n\n", " \n", "…\n" * 60, "the of and\n" * 30, "- the of\n" * 40, "\x85\x85", "中文。" * 80]
    return itertools.chain(edges, source(data))


@pytest.mark.slow
@pytest.mark.parametrize("kind", BYTES)
def test_the_same_words_give_the_same_decisions(kind: str, shared_data: Path) -> None:
    pages = take(pages_of(kind, shared_data), BYTES[kind])
    with white_space_words():
        differences = compare(pages)
    assert {name: dict(pairs) for name, pairs in differences.items()} == {
        "quality": {},
        "repetition": {},
        "fineweb": {},
    }


@pytest.mark.slow
def test_words_of_spacy_change_only_the_documented_rules(shared_data: Path) -> None:
    """Punctuation that counts as words: fewer words with a letter, longer pages, other n-grams. No other rule."""
    pages = take(prose(shared_data), 2_000_000)
    differences = compare(pages)
    by_words = {"words", "word-length", "alphabetic-words", "stop-words", "hash-marks", "ellipses", "list", "gram"}
    for pairs in differences.values():
        for theirs, ours in pairs:
            assert any(part in theirs + ours for part in by_words), (theirs, ours)
    assert 0 < sum(sum(pairs.values()) for pairs in differences.values()) < len(pages) / 5
