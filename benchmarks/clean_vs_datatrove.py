"""The pack c4-datatrove against datatrove's C4QualityFilter, on the same text, in one process and one thread.

    python benchmarks/clean_vs_datatrove.py --data ../shared/data [--megabytes 4] [--rounds 3]

needs ``benchmarks/requirements-datatrove.txt`` beside CorpusForge. With sentences left out of account both must keep
the very same lines of the very same pages, or it stops. With sentences they may part, as spaCy's rules cut elsewhere
than Punkt: such pages are counted. Both run in turn; medians are printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import statistics
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusforge.clean.c4 import C4Step
from corpusforge.clean.cleaner import Cleaner
from corpusforge.clean.packs import load_rules

sys.path.insert(0, str(Path(__file__).parent))
from clean_vs_tfds import batches_of, oddities, prose, take, texts_of, web_pages

NO_SENTENCES = -1  # datatrove's way to switch the rule off


def theirs(pages: list[str], **settings: Any) -> list[tuple[str | None, str]]:
    """What C4QualityFilter leaves of each page, None where it drops it, and its reason."""
    from datatrove.data import Document
    from datatrove.pipeline.filters.c4_filters import C4QualityFilter

    kind = C4QualityFilter(**settings)
    found: list[tuple[str | None, str]] = []
    for text in pages:
        document = Document(text=text, id="")
        answer = kind.filter(document)
        found.append((document.text, "kept") if answer is True else (None, answer[1]))
    return found


def ours(pages: list[str], *, min_sentences: int | None = None) -> list[str | None]:
    """What the pack leaves of each page."""
    rules = load_rules("c4-datatrove")
    if min_sentences is not None:
        rules = dataclasses.replace(rules, min_sentences=min_sentences)
    cleaner = Cleaner((C4Step(rules),))
    batches = batches_of(pages)
    return texts_of(batches, [cleaner.clean(batch) for batch in batches])


def compare(pages: list[str]) -> tuple[Counter[str], Counter[str]]:
    """How pages differ, by who keeps them: with sentences left out of account, and with them."""
    without = _differences(theirs(pages, min_num_sentences=NO_SENTENCES), ours(pages, min_sentences=0))
    return without, _differences(theirs(pages), ours(pages))


def _differences(their: list[tuple[str | None, str]], our: list[str | None]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (text, reason), mine in zip(their, our, strict=True):
        if text != mine:
            found["other text" if text and mine else "kept by us only: " + reason if mine else "kept by them only"] += 1
    return found


def measure(name: str, pages: list[str], rounds: int) -> None:
    """Check one corpus and print its speeds."""
    without, found = compare(pages)
    if without:
        sys.exit(f"{name}: pages differ with sentences left out of account: {dict(without)}")
    size = sum(len(page.encode()) for page in pages) / 1e6
    cleaner, batches = Cleaner((C4Step(load_rules("c4-datatrove")),)), batches_of(pages)
    jobs = {"theirs": lambda: theirs(pages), "ours": lambda: [cleaner.clean(batch) for batch in batches]}
    times: dict[str, list[float]] = {key: [] for key in jobs}
    for _ in range(rounds):
        for key, job in jobs.items():
            start = time.perf_counter()
            job()
            times[key].append(time.perf_counter() - start)
    their, mine = (statistics.median(times[key]) for key in ("theirs", "ours"))
    kept = sum(text is not None for text in ours(pages))
    print(
        f"{name:9} {size:7.1f} MB {len(pages):6} pages, {kept:6} kept   datatrove {size / their:6.3f} MB/s   "
        f"ours {size / mine:7.2f} MB/s   ratio {their / mine:6.1f}\n"
        f"{'':9} lines equal; by sentences: {dict(found) or 'no page differs'}",
        flush=True,
    )


def main() -> None:
    """Measure three corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--megabytes", type=float, default=4, help="text of each corpus")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    os.environ.setdefault("NLTK_DATA", str(given.data / "nltk_data"))
    pa.set_cpu_count(1)
    machine = platform.processor() or platform.machine()
    names = ("datatrove", "spacy", "nltk", "pyarrow", "numpy")
    print(f"{machine}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(", ".join(f"{name} {version(name)}" for name in names))
    for make in (web_pages, prose, oddities):
        measure(make.__name__, take(make(given.data), int(given.megabytes * 1e6)), given.rounds)


if __name__ == "__main__":
    main()
