"""English C4 as a whole, from raw pages to deduplicated text, against tensorflow-datasets, on real text.

Runs where it is installed (``benchmarks/requirements-tfds.txt`` beside CorpusForge). Theirs: the functions of
``text/c4.py`` in its order (newest page of a URL, page cleaner, repeated lines, English, bad words); ours: the three
commands of docs/cleaning.md, "C4 as a whole". The same pages are kept, with the same text.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("tensorflow_datasets", reason="needs tensorflow-datasets (benchmarks/requirements-tfds.txt)")

from benchmarks.clean_vs_tfds import ignore, json_texts, oddities, take, web_pages
from corpusforge import recipe
from corpusforge.documents.plan import plan_units
from corpusforge.documents.read import read_unit
from corpusforge.documents.records import ReadOptions
from corpusforge.progress import Silent
from corpusforge.sections import Recipe
from corpusforge.stages import clean, dedupe
from corpusforge.stages.stage import Execution

Page = tuple[str, str, str]
"""URL, timestamp, text."""


def raw_pages(data: Path) -> Iterator[Page]:
    """Web pages, articles of several dumps, other languages; every fifth page occurs again with less text."""
    dumps, articles = (json_texts(data / f"text_en/enwiki{name}-dev.jsonl.gz") for name in ("-multidump", "2018"))
    texts = [*take(web_pages(data), 3_000_000), *take(articles, 2_500_000), *take(oddities(data), 300_000), *dumps]
    for number, text in enumerate(texts):
        text = text[:150_000]  # theirs drops longer pages before it selects the newest, ours after
        yield f"https://www.example.org/{number}/", f"2019-04-{number % 28 + 1:02}T00:00:00Z", text
        if number % 5 == 0:
            yield f"http://example.org/{number}?utm_source=x", "2019-05-01T00:00:00Z", text[: len(text) // 2]
        if number % 7 == 0:
            yield f"http://example.org/{number}", "2018-05-01T00:00:00Z", "Old text. " + text


def as_read(path: Path) -> list[Page]:
    """The pages as the reader gives them."""
    found: list[Page] = []
    for unit in plan_units([str(path)]):
        for batch in read_unit(unit, ReadOptions()):
            rows = batch.documents.to_pylist()
            found += [(row["url"], row["timestamp"].isoformat(), row["text"]) for row in rows]
    return found


def theirs(found: list[Page], data: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    import apache_beam as beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from nltk.tokenize.punkt import PunktTokenizer
    from tensorflow_datasets.text import c4_utils

    monkeypatch.setattr(c4_utils, "tf", types.SimpleNamespace(compat=types.SimpleNamespace(as_text=lambda text: text)))
    monkeypatch.setattr(c4_utils, "_SENTENCE_TOKENIZER", PunktTokenizer("english"))
    monkeypatch.setattr(c4_utils, "get_counter_inc_fn", lambda namespace: ignore)
    words = [line for line in (data / "badwords/LDNOOBW/en").read_text("utf-8").split("\n") if line]
    decent = c4_utils.get_badwords_filter_fn({"en": words}, filter_fraction=1.0)
    by_url: dict[str, list[Any]] = {}
    for url, timestamp, text in found:
        name = c4_utils.normalize_url(url)
        page = c4_utils.PageFeatures(url=url, normalized_url=name, text=text, timestamp=timestamp)
        if c4_utils.is_valid_length(page):
            by_url.setdefault(name, []).append(page)
    newest = [c4_utils.select_newest_page(pages) for pages in by_url.values()]
    clean_page = c4_utils.get_clean_page_fn()
    cleaned = [page for features in newest for page in clean_page(features)]

    def finish(page: Any) -> None:
        for english in c4_utils.detect_english(page):
            if decent(english):
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([page.url, page.text]) + "\n")

    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = c4_utils.remove_duplicate_text(pipeline | beam.Create(cleaned)) | beam.Map(finish)
    return dict(json.loads(line) for line in path.read_text("utf-8").splitlines())


def ours(path: Path, data: Path, folder: Path) -> dict[str, str]:
    def settings(paths: list[str], **more: Any) -> Recipe:
        values = {"input.paths": paths, **{key.replace("__", "."): value for key, value in more.items()}}
        return recipe.override(Recipe(), values)

    how = Execution(1, "local", (), False, Silent())
    first, second, third = (str(folder / name) for name in ("rules", "lines", "c4"))
    only_rules = {"urls__duplicates": "newest", "clean__language": "", "clean__badwords": "off"}
    clean.clean(settings([str(path)], **only_rules), first, how)
    dedupe.dedupe(settings([], dedupe__method=["lines"]), first, second, how)
    lists = str(data / "badwords/LDNOOBW")
    clean.clean(settings([f"{second}/documents"], clean__rules=[], clean__badwords=lists), third, how)
    tables = [pq.read_table(part) for part in sorted((folder / "c4/documents").iterdir())]
    return {row["url"]: row["text"] for row in pa.concat_tables(tables).to_pylist()}


@pytest.mark.slow
def test_the_same_corpus(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    monkeypatch.setattr(nltk.data, "path", [str(shared_data / "nltk_data")])
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    path = tmp_path / "pages.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for url, timestamp, text in raw_pages(shared_data):
            file.write(json.dumps({"url": url, "timestamp": timestamp, "text": text}) + "\n")
    expected = theirs(as_read(path), shared_data, tmp_path / "theirs", monkeypatch)
    found = ours(path, shared_data, tmp_path)
    differ = [url for url in expected.keys() | found.keys() if expected.get(url) != found.get(url)]
    assert not differ, f"{len(differ)} of {len(expected)}, such as {differ[:5]}"
    assert len(expected) > 1000
