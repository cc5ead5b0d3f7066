"""The packs c4-datatrove and mc4 against datatrove's own filters, page by page, on real text.

Runs where datatrove is installed (``benchmarks/requirements-datatrove.txt`` beside CorpusForge). The kept lines
are always the same; sentences are counted by spaCy there and by Punkt here, with the effect in docs/cleaning.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("datatrove", reason="needs benchmarks/requirements-datatrove.txt")

from benchmarks.clean_vs_datatrove import compare
from benchmarks.clean_vs_tfds import batches_of, oddities, prose, take
from benchmarks.clean_vs_tfds import web_pages as web
from corpusforge.clean.badwords import BadwordsStep
from corpusforge.clean.c4 import C4Step
from corpusforge.clean.packs import load_rules

BYTES = {web: 4_000_000, prose: 3_000_000, oddities: 4_000_000}


@pytest.fixture(scope="module", params=BYTES, ids=lambda make: make.__name__)
def pages(request: pytest.FixtureRequest, shared_data: Path) -> list[str]:
    """Real pages and a few edges."""
    edges = [
        "",
        "\n",
        "One two three.\n" * 5,
        "Two words [1] [2].\n" * 5,
        "He said 'no more'\n" * 5,
        "x" * 1001 + " a b.",
    ]
    return [*edges, *take(request.param(shared_data), BYTES[request.param])]


@pytest.mark.slow
def test_the_same_lines_are_kept_and_few_pages_differ_by_their_sentences(
    pages: list[str], shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nltk

    nltk.data.path.insert(0, str(shared_data / "nltk_data"))
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    without, differences = compare(pages)
    assert dict(without) == {}
    assert set(differences) <= {"kept by us only: too_few_sentences", "kept by them only"}
    assert differences.total() <= len(pages) / 100


@pytest.mark.slow
def test_paragraphs_equal_those_of_c4_paragraph_filter(pages: list[str]) -> None:
    from datatrove.pipeline.filters.c4_filters import C4ParagraphFilter

    kind, step = C4ParagraphFilter(), C4Step(load_rules("mc4"))
    found = [code == 0 for batch in batches_of(pages) for code in step.apply(batch).codes.tolist()]
    short = [n for n, text in enumerate(pages) if len(text) <= 190_000]  # theirs has no limit
    assert [found[n] for n in short] == [kind.paragraph_filter(pages[n]) for n in short]


@pytest.mark.slow
def test_bad_words_equal_those_of_c4_bad_words_filter(
    pages: list[str], shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datatrove.data import Document
    from datatrove.pipeline.filters import c4_filters

    lists = shared_data / "badwords/LDNOOBW"
    monkeypatch.setattr(
        c4_filters, "cached_asset_path_or_download", lambda url, **_: str(lists / url.rsplit("/", 1)[1])
    )
    kind = c4_filters.C4BadWordsFilter()
    step = BadwordsStep(str(lists), "", load_rules("c4-datatrove"))
    for language in ("en", "zh"):
        expected = [kind.filter(Document(text=t, id="", metadata={"language": language})) is True for t in pages]
        found: list[bool] = []
        for batch in batches_of(pages):
            named = batch.set_column(5, "language", batch["language"].fill_null(language))
            found += (step.apply(named).codes == 0).tolist()
        assert found == expected
