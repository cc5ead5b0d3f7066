"""The packs c4-tfds-3.1 and mc4 against tensorflow-datasets itself, page by page, on real text: no page differs.

Runs where it is installed (``benchmarks/requirements-tfds.txt`` beside CorpusForge).
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("tensorflow_datasets", reason="needs benchmarks/requirements-tfds.txt")

from benchmarks.clean_vs_tfds import batches_of, ignore, oddities, our_cleaner, prose, take, texts_of, tfds_cleaner
from benchmarks.clean_vs_tfds import web_pages as web
from corpusforge.clean.badwords import BadwordsStep
from corpusforge.clean.c4 import C4Step
from corpusforge.clean.packs import load_rules

BYTES = {web: 5_000_000, prose: 5_000_000, oddities: 4_000_000}


@pytest.fixture(scope="module", params=BYTES, ids=lambda make: make.__name__)
def pages(request: pytest.FixtureRequest, shared_data: Path) -> list[str]:
    """Real pages and a few edges."""
    edges = [
        "",
        "\n",
        "One two three four five.\n" * 3,
        "x" * 190_000,
        "x" * 190_001,
        "[1]\u2028 a b c d e.[edit]\n" * 3,
    ]
    return [*edges, *take(request.param(shared_data), BYTES[request.param])]


@pytest.mark.slow
def test_pages_are_cleaned_to_the_same_bytes(
    pages: list[str], shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nltk

    nltk.data.path.insert(0, str(shared_data / "nltk_data"))
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    batches = batches_of(pages)
    expected, texts = tfds_cleaner()(pages), texts_of(batches, our_cleaner(False)(batches))
    assert [n for n, (a, b) in enumerate(zip(expected, texts, strict=True)) if a != b] == []


@pytest.mark.slow
def test_paragraphs_equal_those_of_mc4(pages: list[str]) -> None:
    from tensorflow_datasets.text import c4_utils

    c4_utils.get_counter_inc_fn = lambda namespace: ignore
    features = [c4_utils.PageFeatures(text=text) for text in pages]
    expected = [c4_utils.is_valid_length(page) and c4_utils.paragraph_filter(page) for page in features]
    step = C4Step(load_rules("mc4"))
    kept = [code == 0 for batch in batches_of(pages) for code in step.apply(batch).codes.tolist()]
    assert kept == expected
    assert len(set(kept)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("pack", ["c4-tfds-3.1", "mc4"])
def test_bad_words_and_kept_pages_equal_theirs(pack: str, pages: list[str], shared_data: Path) -> None:
    from tensorflow_datasets.text import c4_utils

    c4_utils.get_counter_inc_fn = lambda namespace: ignore
    c4_utils.tf = types.SimpleNamespace(compat=types.SimpleNamespace(as_text=lambda text: text))
    lists, rules = shared_data / "badwords/LDNOOBW", load_rules(pack)
    languages = ["en", "ja", "zh", "de"]
    words = {name: (lists / name).read_text("utf-8").split("\n") for name in languages}
    removed = {"ja": {"sm", "グロ", "女の子"}, "zh": {"性"}}
    entries = {name: [e.strip() for e in lines if e.strip()] for name, lines in words.items()}
    entries = {name: [e for e in listed if e not in removed.get(name, ())] for name, listed in entries.items()}
    stays = c4_utils.get_badwords_filter_fn(entries, filter_fraction=rules.badword_fraction)
    urls = [f"http://www.example.org/{n}/?utm_source=x" for n in range(len(pages))]
    step = BadwordsStep(str(lists), "", rules)
    first = 0
    for batch in batches_of(pages):
        numbers = range(first, first + batch.num_rows)
        first += batch.num_rows
        batch = batch.set_column(1, "url", pa.array([urls[n] for n in numbers]))
        for language in languages:
            named = batch.set_column(5, "language", pa.array([language] * batch.num_rows))
            kept = step.apply(named).codes == 0
            expected = [stays(_page(urls[n], pages[n], language)) for n in numbers]
            assert kept.tolist() == expected


def _page(url: str, text: str, language: str) -> Any:
    from tensorflow_datasets.text import c4_utils

    return c4_utils.PageFeatures(normalized_url=c4_utils.normalize_url(url), text=text, language=language)
