"""The page cleaner against that of tensorflow-datasets 4.9.10, on the same text, in one process and one thread.

    python benchmarks/clean_vs_tfds.py --data ../shared/data [--megabytes 30] [--rounds 5]

needs ``benchmarks/requirements-tfds.txt``. The two must agree byte for byte on every page, or it stops. Both run in
turn; medians are printed. Both count sentences with the same NLTK and the same Punkt model. What is compared is lines
and pages (length, line rules, sentence minimum): neither side looks at language or bad words. Ours also makes tallies;
``--rejects`` adds the rows of everything dropped.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import os
import platform
import statistics
import sys
import tarfile
import time
import types
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusforge.clean.cleaner import cleaner_of
from corpusforge.schemas import DOCUMENTS
from corpusforge.sections import Clean

BATCH_BYTES = 4 << 20  # what documents.read hands over


def web_pages(data: Path) -> Iterator[str]:
    """Text of web pages: OSCAR, Dolma, and WARC pages through resiliparse."""
    for name, column in (("oscar-io-data.jsonl", "content"), ("dolma-cc_en_head-0091.jsonl", "text")):
        for line in (data / "web_text" / name).open(encoding="utf-8"):
            yield json.loads(line)[column]
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import detect_encoding

    for path in sorted([*(data / "warc_wrapped").glob("*.warc.gz"), *(data / "warc").glob("*.warc.gz")]):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                if record.http_headers and "html" in (record.http_content_type or ""):
                    body = record.reader.read()
                    html = body.decode(detect_encoding(body), "replace")
                    yield extract_plain_text(html, main_content=False)


def json_texts(path: Path) -> Iterator[str]:
    """The field ``text`` of every line of a compressed JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


def prose(data: Path) -> Iterator[str]:
    """Wikipedia articles, reviews, novels (whole, and in pieces short enough for the page limit)."""
    for name in ("enwiki-multidump-dev.jsonl.gz", "enwiki2018-dev.jsonl.gz"):
        yield from json_texts(data / "text_en" / name)
    with zipfile.ZipFile(data / "text_en" / "nltk-movie_reviews.zip") as reviews:
        for name in sorted(n for n in reviews.namelist() if n.endswith(".txt")):
            yield reviews.read(name).decode("utf-8", "replace")
    for novel in json_texts(data / "text_en" / "novels-dev.jsonl.gz"):
        yield novel
        yield from (novel[k : k + 20_000] for k in range(0, len(novel), 20_000))


def oddities(data: Path) -> Iterator[str]:
    """Other languages, wiki mark-up, garbage in forty encodings, and files as they lie there."""
    yield from json_texts(data / "text_zh" / "zhwiki-dev.jsonl.gz")
    markup = bz2.decompress((data / "text_en" / "enwiki-shortened.xml.bz2").read_bytes()).decode()
    yield from (markup[k : k + 30_000] for k in range(0, len(markup), 30_000))
    with tarfile.open(data / "nasty" / "chardet-tests.tar.gz") as archive:
        for member in archive:
            if file := archive.extractfile(member):
                content = file.read()
                yield from (content.decode(code, "replace") for code in ("utf-8", "latin-1", "utf-16"))
    for path in sorted((data / "nasty").glob("*.txt")):
        yield path.read_text("utf-8", "replace")


def take(pages: Iterator[str], budget: int) -> list[str]:
    """Pages until so many bytes of text are there, without characters that UTF-8 cannot hold."""
    taken: list[str] = []
    for page in pages:
        if budget <= 0:
            break
        clean = page.encode("utf-8", "replace").decode()
        taken.append(clean)
        budget -= len(clean.encode())
    return taken


def batches_of(pages: list[str]) -> list[pa.RecordBatch]:
    """The pages as DOCUMENTS batches of about 4 MB."""
    groups: list[list[str]] = [[]]
    size = 0
    for page in pages:
        if size >= BATCH_BYTES:
            groups, size = [*groups, []], 0
        groups[-1].append(page)
        size += len(page.encode())
    made = []
    for texts in groups:
        count = len(texts)
        values: dict[str, Any] = {
            "id": ["0" * 32] * count,
            "source": ["x"] * count,
            "position": range(count),
            "text": texts,
        }
        columns = [pa.array(values.get(f.name, [None] * count), f.type) for f in DOCUMENTS]
        made.append(pa.record_batch(columns, schema=DOCUMENTS))
    return made


def tfds_cleaner() -> Callable[[list[str]], list[str | None]]:
    """Their `is_valid_length` and `clean_page` with a no-op counter, and NLTK's Punkt where they download a pickle."""
    from nltk.tokenize.punkt import PunktTokenizer
    from tensorflow_datasets.text import c4_utils

    as_text = types.SimpleNamespace(as_text=lambda text: text)
    c4_utils.tf = types.SimpleNamespace(compat=as_text)
    c4_utils.get_counter_inc_fn = lambda namespace: ignore
    c4_utils._SENTENCE_TOKENIZER = PunktTokenizer("english")
    clean_page = c4_utils.get_clean_page_fn()

    def run(pages: list[str]) -> list[str | None]:
        found: list[str | None] = []
        for number, text in enumerate(pages):
            page = c4_utils.PageFeatures(url=str(number), text=text)
            results = list(clean_page(page, counter_inc_fn=ignore)) if c4_utils.is_valid_length(page) else []
            found.append(results[0].text if results else None)
        return found

    return run


def ignore(*_: object) -> None:
    """A counter that does not count: Beam's is not part of the comparison."""


def our_cleaner(rejects: bool) -> Callable[[list[pa.RecordBatch]], list[str | None]]:
    """Lines and pages of the pack, without language and bad words."""
    cleaner = cleaner_of(Clean(language="", badwords="off"))
    cleaner.check()

    def run(batches: list[pa.RecordBatch]) -> list[Any]:
        cleaned = [cleaner.clean(batch) for batch in batches]
        if rejects:
            _ = [c.rejects for c in cleaned]
        return cleaned

    return run


def texts_of(batches: list[pa.RecordBatch], cleaned: list[Any]) -> list[str | None]:
    """The text of every page, None where it was dropped."""
    found: list[str | None] = []
    for batch, result in zip(batches, cleaned, strict=True):
        kept = dict(zip(result.documents["position"].to_pylist(), result.documents["text"].to_pylist(), strict=True))
        found += [kept.get(n) for n in range(batch.num_rows)]
    return found


def measure(name: str, pages: list[str], rounds: int, rejects: bool) -> float:
    """Check one corpus and print its speeds; returns the ratio."""
    batches = batches_of(pages)
    size = sum(len(p.encode()) for p in pages) / 1e6
    theirs, ours = tfds_cleaner(), our_cleaner(rejects)
    expected, found = theirs(pages), texts_of(batches, ours(batches))
    wrong = [n for n, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
    if wrong:
        n = wrong[0]
        sys.exit(f"{name}: {len(wrong)} pages differ; page {n}: {expected[n]!r:.300} against {found[n]!r:.300}")
    kept = sum(t is not None for t in expected)
    times: dict[str, list[float]] = {"tfds": [], "ours": []}
    for _ in range(rounds):
        for key, job in (("tfds", lambda: theirs(pages)), ("ours", lambda: ours(batches))):
            start = time.perf_counter()
            job()
            times[key].append(time.perf_counter() - start)
    tfds, mine = (statistics.median(times[key]) for key in ("tfds", "ours"))
    print(
        f"{name:9} {size:7.1f} MB {len(pages):6} pages, {kept:6} kept, all equal   "
        f"tfds {size / tfds:6.2f} MB/s   ours {size / mine:7.2f} MB/s   ratio {tfds / mine:5.1f}",
        flush=True,
    )
    return tfds / mine


def main() -> None:
    """Measure the three corpora and all of them together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--megabytes", type=float, default=10, help="text of each corpus")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rejects", action="store_true", help="also build the rows of what was dropped")
    given = parser.parse_args()
    os.environ.setdefault("NLTK_DATA", str(given.data / "nltk_data"))
    pa.set_cpu_count(1)
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ",
        end="",
    )
    from importlib.metadata import version

    print(", ".join(f"{p} {version(p)}" for p in ("tensorflow-datasets", "nltk", "pyarrow", "numpy")))
    corpora = [
        (make.__name__, take(make(given.data), int(given.megabytes * 1e6))) for make in (web_pages, prose, oddities)
    ]
    for name, pages in corpora:
        measure(name, pages, given.rounds, given.rejects)
    measure("all", [page for _, pages in corpora for page in pages], given.rounds, given.rejects)


if __name__ == "__main__":
    main()
