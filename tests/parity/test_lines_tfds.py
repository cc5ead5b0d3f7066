"""The method ``lines`` against tensorflow-datasets' own ``remove_duplicate_text``, page by page, on real text.

Runs where tensorflow-datasets is installed (``benchmarks/requirements-tfds.txt`` beside CorpusForge). Theirs runs
unchanged in a Beam pipeline, with stand-ins only for what needs tensorflow or a download: ``as_text`` and Punkt.
"""

from __future__ import annotations

import gzip
import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("tensorflow_datasets", reason="needs tensorflow-datasets (benchmarks/requirements-tfds.txt)")

from corpusforge import schemas
from corpusforge.beam.engine import BeamEngine
from corpusforge.dedupe.methods import run
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit

MEGABYTES = 12
EDGES = [
    *("", "\n", " \n\t\n", "Same line here.", " same LINE here. "),
    *("Same line here.\nSame line here.\nOne. Two. Three.", "İstanbul. A. B"),
    "ΟΔΟΣ. One. Two.\nοδος. one. two.\nοδοσ. one. two.\nMore. And more.",
    "a\rb. c. d. e\n\x0ba. b c\u2028d.\n\xa0x. y. z.",
    "No end\nof any\nsentence here\nAt all",
    "Three lines. Mr. Smith went\nto St. James. On p. 3 we\nsee this.",
]


def pages(data: Path) -> Iterator[tuple[str, str]]:
    """(URL, text): the same articles in several dumps, many articles, and twice as many lines of novels."""
    for number, text in enumerate(EDGES):
        yield f"edge:{number}", text
        yield f"http://edge.example/é?{number}", f"{text}\nIt stands. In both. Of them {number}."
    left = MEGABYTES << 20
    for name, most in (("enwiki-multidump-dev", 4 << 20), ("novels-dev", 3 << 20), ("enwiki2018-dev", 1 << 40)):
        with gzip.open(data / f"text_en/{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for number, line in enumerate(file):
                text = json.loads(line)["text"][: 1 << 18]
                yield f"https://{name}.example/{number}", text
                left, most = left - len(text.encode()), most - len(text.encode())
                if left <= 0 or most <= 0:
                    break


def theirs(found: list[tuple[str, str]], path: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    import apache_beam as beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from nltk.tokenize.punkt import PunktTokenizer
    from tensorflow_datasets.text import c4_utils

    monkeypatch.setattr(c4_utils, "tf", types.SimpleNamespace(compat=types.SimpleNamespace(as_text=lambda text: text)))
    monkeypatch.setattr(c4_utils, "_SENTENCE_TOKENIZER", PunktTokenizer("english"))
    monkeypatch.setattr(c4_utils, "get_counter_inc_fn", lambda namespace: lambda *_: None)

    def write(page: Any) -> None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps([page.url, page.text]) + "\n")

    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        made = pipeline | beam.Create([c4_utils.PageFeatures(url=url, text=text) for url, text in found])
        _ = c4_utils.remove_duplicate_text(made) | beam.Map(write)
    return dict(json.loads(line) for line in Path(path).read_text("utf-8").splitlines())


def ours(found: list[tuple[str, str]], folder: Path) -> dict[str, str]:
    units = []
    for number in range(3):
        rows = [
            {"id": f"{index:032x}", "url": url, "source": "s", "position": index, "text": text}
            for index, (url, text) in enumerate(found)
            if index % 3 == number
        ]
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schemas.DOCUMENTS), path)
        units.append(ShardUnit(number, str(path), len(rows), path.stat().st_size))
    run(BeamEngine(1), Dedupe(method=("lines",)), units, str(folder / "out"), Silent())
    rows = [row for path in (folder / "out/documents").iterdir() for row in pq.read_table(path).to_pylist()]
    return {row["url"]: row["text"] for row in rows}


@pytest.mark.slow
def test_the_same_pages_keep_the_same_lines(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = list(pages(shared_data))
    expected, actual = theirs(crawl, str(tmp_path / "theirs"), monkeypatch), ours(crawl, tmp_path)
    differ = [url for url in expected.keys() | actual.keys() if expected.get(url) != actual.get(url)]
    assert not differ, f"{len(differ)} of {len(crawl)}, such as {differ[:5]}"
    assert len(expected) < len(crawl)
    assert sum(map(len, expected.values())) < sum(len(text) for _, text in crawl)
