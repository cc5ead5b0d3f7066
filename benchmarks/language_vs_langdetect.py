"""The detectors against the package langdetect 1.0.9 with seed 0, on the same pages, in one process and one thread.

    python benchmarks/language_vs_langdetect.py --data ../shared/data [--pages 1500] [--rounds 3]

The package takes one page after another, a new detector for each, profiles loaded before. Ours take columns of about
4 MB, as the clean stage hands them over. The probabilities of all 55 languages must be equal to the bit (to 1e-9 from
Python 3.12 on, whose ``sum`` rounds otherwise), or it stops. All run in turn; medians of CPU seconds are printed (other
programs may run beside), then how often each detector decides otherwise than the package (C4's rule: best answer the
language, probability 0.99 or more; no answer drops), by corpus, and by the language that the package names.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import langdetect
import numpy as np
import pyarrow as pa
from clean_vs_tfds import prose, web_pages
from langdetect.lang_detect_exception import LangDetectException

from corpusforge.clean.langdetect_profiles import profiles
from corpusforge.clean.language import DETECTORS, guess_languages, langdetect_probabilities

PAGE = 3_000  # characters: about a page of C4
BATCH_BYTES = 4 << 20  # what documents.read hands over
MIN_PROBABILITY = 0.99


def pieces(texts: Iterator[str], size: int = PAGE) -> Iterator[str]:
    """Texts in pieces of page size."""
    for text in texts:
        yield from (text[k : k + size] for k in range(0, len(text), size))


def books(data: Path) -> Iterator[str]:
    """Genesis in English, Finnish, French, German, Portuguese, Swedish and lolcat."""
    with zipfile.ZipFile(data / "text_en" / "nltk-genesis.zip") as archive:
        for name in sorted(n for n in archive.namelist() if n.endswith(".txt")):
            yield archive.read(name).decode("utf-8", "replace")


def chinese(data: Path) -> Iterator[str]:
    """Chinese Wikipedia."""
    with gzip.open(data / "text_zh" / "zhwiki-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from (json.loads(line)["text"] for line in file)


def encodings(data: Path) -> Iterator[str]:
    """Pages in about thirty languages and forty encodings, decoded as three of them: right and wrong."""
    with tarfile.open(data / "nasty" / "chardet-tests.tar.gz") as archive:
        for member in archive:
            if file := archive.extractfile(member):
                content = file.read()
                yield from (content.decode(code, "replace") for code in ("utf-8", "cp1251", "euc-jp"))


def sentences(data: Path) -> Iterator[str]:
    """Pairs of sentences in English and Chinese, and naughty strings."""
    for name in ("en", "zh"):
        for line in (data / "eval" / f"babylm-mnli_{name}.valid.jsonl").open(encoding="utf-8"):
            found = json.loads(line)
            yield f"{found['premise']} {found['hypothesis']}"
    yield from json.loads((data / "nasty" / "blns.json").read_text("utf-8"))


CORPORA: dict[str, Callable[[Path], Iterator[str]]] = {
    "web pages, whole": web_pages,
    "web pages, cut": lambda data: pieces(web_pages(data)),
    "English prose, cut": lambda data: pieces(prose(data)),
    "Genesis, cut": lambda data: pieces(books(data)),
    "Chinese, cut": lambda data: pieces(chinese(data)),
    "encodings, cut": lambda data: pieces(encodings(data)),
    "sentences": sentences,
}


def spread(texts: Iterator[str], count: int) -> list[str]:
    """So many of all texts, evenly spread, without characters that UTF-8 cannot hold; no empty ones."""
    every = [text for text in texts if text.strip()]
    chosen = every if len(every) <= count else [every[k * len(every) // count] for k in range(count)]
    return [text.encode("utf-8", "replace").decode() for text in chosen]


def package() -> Any:
    """The package's factory, profiles in the order of their names (it takes that of the directory)."""
    files = sorted(p for p in Path(langdetect.PROFILES_DIRECTORY).iterdir() if p.is_file() and p.name[0] != ".")
    factory = langdetect.DetectorFactory()
    factory.load_json_profile([path.read_text("utf-8") for path in files])
    factory.set_seed(0)
    return factory


def theirs(factory: Any, pages: list[str]) -> list[list[float]]:
    """Probabilities of the package; zeros where it raises."""
    found = []
    for page in pages:
        detector = factory.create()
        detector.append(page)
        try:
            detector.get_probabilities()
            found.append(detector.langprob)
        except LangDetectException:
            found.append([0.0] * len(factory.langlist))
    return found


def columns(pages: list[str]) -> list[pa.StringArray]:
    """The pages in batches of about 4 MB."""
    sizes = np.cumsum([len(page.encode()) for page in pages]) // BATCH_BYTES
    return [pa.array(part.tolist(), pa.string()) for part in np.split(np.array(pages, object), _cuts(sizes))]


def _cuts(groups: Any) -> Any:
    return np.flatnonzero(np.diff(groups)) + 1


def compare(name: str, expected: Any, found: Any) -> None:
    """Stop where probabilities differ."""
    wrong = (expected != found).any(axis=1)
    if not wrong.any() or (sys.version_info >= (3, 12) and np.allclose(expected, found, rtol=1e-9, atol=1e-12)):
        return
    sys.exit(f"{name}: {int(wrong.sum())} pages differ, by {abs(expected - found).max()}")


def measure(name: str, pages: list[str], rounds: int, wanted: str) -> tuple[Any, dict[str, Any]]:
    """Check and time one corpus; the package's probabilities, and what every detector keeps."""
    factory, batches = package(), columns(pages)
    expected = np.array(theirs(factory, pages))
    compare(name, expected, np.concatenate([langdetect_probabilities(batch) for batch in batches]))
    times: dict[str, list[float]] = {key: [] for key in ("package", *DETECTORS)}
    kept: dict[str, Any] = {}
    for _ in range(rounds):
        start = time.process_time()
        theirs(factory, pages)
        times["package"].append(time.process_time() - start)
        for detector in DETECTORS:
            start = time.process_time()
            guesses = [guess_languages(batch, detector, wanted) for batch in batches]
            times[detector].append(time.process_time() - start)
            kept[detector] = np.concatenate([guess.are(wanted, MIN_PROBABILITY) for guess in guesses])
    size = sum(len(page.encode()) for page in pages) / 1e6
    seconds = {key: statistics.median(values) for key, values in times.items()}
    speeds = "".join(f"{size / s:9.2f}" for s in seconds.values())
    ratios = "".join(f"{seconds['package'] / seconds[d]:8.1f}" for d in DETECTORS)
    print(f"{name:20}{len(pages):7}{size:7.2f}   {speeds}   {ratios}", flush=True)
    return expected, kept


def keeps(chances: Any, wanted: str) -> Any:
    """C4's decision from the package's probabilities."""
    names = np.array([language.split("-")[0] for language in profiles().languages])
    return (names[chances.argmax(axis=1)] == wanted) & (chances.max(axis=1) >= MIN_PROBABILITY)


def differences(rows: list[tuple[str, Any, dict[str, Any]]], wanted: str) -> None:
    """How often each detector decides otherwise, by the names in ``rows``."""
    print(
        f"\n{f'kept as {wanted}, by':20}{'pages':>7}{'kept':>7}   otherwise: " + "".join(f"{d:>18}" for d in DETECTORS)
    )
    for name, chances, kept in rows:
        right = keeps(chances, wanted)
        wrong = "".join(f"{n:9} ={n / len(right):7.2%}" for n in (int((kept[d] != right).sum()) for d in DETECTORS))
        print(f"{name:20}{len(right):7}{int(right.sum()):7}              {wrong}")


def by_language(chances: Any, kept: dict[str, Any]) -> list[tuple[str, Any, dict[str, Any]]]:
    """The same pages by the language that the package names."""
    names = np.array([*profiles().languages, "no answer"])
    named = names[np.where(chances.max(axis=1) > 0.1, chances.argmax(axis=1), -1)]
    groups = [name for name, count in Counter(named.tolist()).most_common() if count >= 50]
    named = np.where(np.isin(named, groups), named, "others")
    parts = [(name, named == name) for name in (*groups, "others")]
    return [(name, chances[part], {d: k[part] for d, k in kept.items()}) for name, part in parts]


def main() -> None:
    """Measure all corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--pages", type=int, default=1500, help="pages of each corpus")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--language", default="en", help="the language that is kept")
    given = parser.parse_args()
    pa.set_cpu_count(1)
    libraries = ", ".join(f"{p} {version(p)}" for p in ("langdetect", "resiliparse", "numpy", "pyarrow"))
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}")
    start = time.process_time()
    profiles()
    middle = time.process_time()
    package()
    print(f"profiles, once a process: ours {middle - start:.2f} s, package {time.process_time() - middle:.2f} s\n")
    heads = "".join(f"{name:>9}" for name in ("package", "langdet.", "fast", "cascade"))
    print(f"{'MB/s of text':20}{'pages':>7}{'MB':>7}   {heads}   times as fast")
    rows = []
    for name, make in CORPORA.items():
        pages = spread(make(given.data), given.pages)
        rows.append((name, *measure(name, pages, given.rounds, given.language)))
    whole = np.concatenate([row[1] for row in rows]), {d: np.concatenate([r[2][d] for r in rows]) for d in DETECTORS}
    differences([*rows, ("all", *whole)], given.language)
    differences(by_language(*whole), given.language)


if __name__ == "__main__":
    main()
