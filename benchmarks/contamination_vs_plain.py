"""The contamination step against plain Python with a set of n-grams, on the same text and evaluation files.

    python benchmarks/contamination_vs_plain.py --data ../shared/data [--megabytes 16] [--ngram 13] [--rounds 3]

Needs nothing beyond CorpusForge. The plain side does what papers describe: words by one regular expression on the text
in lower case, n-grams as tuples, looked up in a set. Both must drop the same pages, or it stops. Every tenth page gets
a sentence of an evaluation file; all of them must be found. Medians of alternating rounds in one process and one
thread, by its CPU time; reading the evaluation files is timed apart.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clean_vs_tfds import batches_of, prose, take, web_pages

from corpusforge.clean.contamination import SHORTEST, ContaminationStep, build_table, evaluation_texts
from corpusforge.clean.ngrams import ALONE

# Letters, marks and numbers; ideographs and kana alone. Marks are no \w: taken in as what is neither space nor sign.
_ALONE = "".join(f"{chr(codes[0])}-{chr(codes[-1])}" for codes in ALONE)
_WORD = re.compile(f"[{_ALONE}]|[^\\W_{_ALONE}]+")


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.lower())


def plain_table(paths: tuple[str, ...], length: int) -> set[tuple[str, ...]]:
    """Every n-gram of every evaluation text."""
    known: set[tuple[str, ...]] = set()
    for _, column in evaluation_texts(paths):
        for text in column.to_pylist():
            found = words(text)
            size = min(length, len(found))
            if size >= SHORTEST:
                known.update(tuple(found[i : i + size]) for i in range(len(found) - size + 1))
    return known


def plain_holds(text: str, known: set[tuple[str, ...]], sizes: list[int]) -> bool:
    """Whether a text holds an n-gram."""
    found = words(text)
    return any(tuple(found[i : i + size]) in known for size in sizes for i in range(len(found) - size + 1))


def plant(pages: list[str], paths: tuple[str, ...], length: int) -> tuple[list[str], list[int]]:
    """Put an evaluation sentence of ``length`` words or more into every tenth page."""
    texts = (text for _, column in evaluation_texts(paths) for text in column.to_pylist())
    long = itertools.islice((text for text in texts if len(words(text)) >= length), 0, None, 97)
    planted = list(range(0, len(pages), 10))
    pages = list(pages)
    for number, text in zip(planted, itertools.cycle(list(long)), strict=False):
        half = len(pages[number]) // 2
        pages[number] = f"{pages[number][:half]}\n{text}\n{pages[number][half:]}"
    return pages, planted


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, and its result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def main() -> None:
    """Print what was found and how fast."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=16)
    parser.add_argument("--ngram", type=int, default=13)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    half = int(given.megabytes * 5e5)
    paths = (str(given.data / "eval"),)
    pages, planted = plant([*take(web_pages(given.data), half), *take(prose(given.data), half)], paths, given.ngram)
    batches = batches_of(pages)
    size = sum(len(page.encode()) for page in pages) / 1e6
    step = ContaminationStep(paths, given.ngram)
    building, table = seconds(lambda: build_table(paths, given.ngram))
    plain_building, known = seconds(lambda: plain_table(paths, given.ngram))
    sizes = sorted({len(ngram) for ngram in known})
    quick, slow = [], []
    for _ in range(given.rounds):
        taken, verdicts = seconds(lambda: [step.apply(batch) for batch in batches])
        quick.append(taken)
        taken, plain = seconds(lambda: [plain_holds(page, known, sizes) for page in pages])
        slow.append(taken)
    ours = [bool(code) for verdict in verdicts for code in verdict.codes]
    if ours != plain:
        sys.exit(f"the two differ on pages {[n for n in range(len(pages)) if ours[n] != plain[n]][:10]}")
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(", ".join(f"{name} {version(name)}" for name in ("corpusforge", "numpy", "pyarrow")))
    counts = f"{table.texts:,} texts of {len(table.names)} evaluation files, {table.too_short:,} below {SHORTEST} words"
    print(f"{len(pages):,} pages, {size:.1f} MB; {counts}; {sum(map(len, table.hashes.values())):,} n-grams")
    print(
        f"planted {len(planted):,}, found {sum(ours[n] for n in planted):,}; others dropped {sum(ours) - len(planted)}"
    )
    print("| | reading the evaluation files | pages |\n|---|---|---|")
    for name, start, rounds in (("CorpusForge", building, quick), ("plain Python", plain_building, slow)):
        print(f"| {name} | {start:.1f} s | {size / statistics.median(rounds):.1f} MB/s |")


if __name__ == "__main__":
    main()
