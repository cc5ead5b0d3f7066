"""The built-in sentence splitter against NLTK's Punkt: which boundaries they share, and how fast each is.

    python benchmarks/sentences_vs_punkt.py --data ../shared/data [--megabytes 4] [--rounds 3] [--show KIND]

Needs NLTK (``pip install 'corpusforge[test]'``) and Punkt's English parameters (``NLTK_DATA``). Both read the same
lines: paragraphs of seven kinds of real English text. A boundary is a place inside a line after which another sentence
begins (ends of lines end sentences for both); closing quotes and reference marks belong to neither side of it.
Precision: the share of our boundaries that Punkt has; recall: the share of Punkt's that we have; recall*: the same
without Punkt's boundaries before a lower-case letter ('"Why?" | she asked.'), except in lines all in lower case, and
after the number of a list item ('1. | Open it.'). Punkt is a yardstick here, not the truth: ``--show KIND`` prints
where the two disagree. Medians of alternating rounds, by CPU time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import statistics
import sys
import time
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusforge.sentences.splitter import sentence_spans

Boundary = tuple[int, int]
"""Number of the line, and the character after which the boundary lies."""

_AFTER_MARKS = re.compile(r"""(?:["'”’»)\]}]|\[[0-9A-Za-z ]{1,6}\]|\s)+$""")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")


def encyclopedia(data: Path) -> Iterator[str]:
    """Paragraphs of Wikipedia."""
    with gzip.open(data / "text_en/enwiki2018-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            yield from json.loads(line)["text"].splitlines()


def _novels(data: Path) -> Iterator[str]:
    with gzip.open(data / "text_en/novels-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            # 60,000 characters after the title pages of each novel, hard-wrapped lines joined.
            body = json.loads(line)["text"].replace("\r\n", "\n")[20_000:80_000]
            yield from (" ".join(paragraph.split()) for paragraph in body.split("\n\n"))


def narration(data: Path) -> Iterator[str]:
    """Paragraphs of novels in which nobody speaks."""
    return (paragraph for paragraph in _novels(data) if not set('"“”') & set(paragraph))


def dialogue(data: Path) -> Iterator[str]:
    """Paragraphs of novels in which somebody speaks."""
    return (paragraph for paragraph in _novels(data) if set('"“”') & set(paragraph))


def speeches(data: Path) -> Iterator[str]:
    """Inaugural addresses."""
    with zipfile.ZipFile(data / "text_en/nltk-inaugural.zip") as packed:
        for name in sorted(n for n in packed.namelist() if n.endswith(".txt")):
            yield from packed.read(name).decode("utf-8", "replace").splitlines()


def news(data: Path) -> Iterator[str]:
    """AG News, its broken escapes mended."""
    for line in (data / "eval/agnews-dev.tsv").read_text("utf-8").splitlines():
        yield line.rsplit("\t", 1)[0].replace(" #39;", "'").replace("\\", " ")


def reviews(data: Path) -> Iterator[str]:
    """Film reviews, tokenized and in lower case throughout, each as one line."""
    with zipfile.ZipFile(data / "text_en/nltk-movie_reviews.zip") as packed:
        for name in sorted(n for n in packed.namelist() if n.endswith(".txt")):
            yield packed.read(name).decode("utf-8", "replace").replace("\n", " ")


def web(data: Path) -> Iterator[str]:
    """Main content of web pages whose text is English."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import detect_encoding
    from resiliparse.parse.lang import detect_fast

    for name in ("trafilatura-eval-dev", "readability-source"):
        with (data / f"warc_wrapped/{name}.warc.gz").open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                body = record.reader.read()
                text = extract_plain_text(body.decode(detect_encoding(body), "replace"), main_content=True)
                if detect_fast(text, langs=["en", "de", "fr", "es", "it", "nl"])[0] == "en":
                    yield from text.splitlines()


KINDS = {
    "encyclopedia": encyclopedia,
    "novels, narration": narration,
    "novels, dialogue": dialogue,
    "speeches": speeches,
    "news": news,
    "web pages": web,
    "lower-case reviews": reviews,
}


def take(lines: Iterator[str], budget: int) -> list[str]:
    """Non-empty lines in alphabetic scripts, stripped, up to ``budget`` bytes."""
    taken: list[str] = []
    for line in lines:
        if budget <= 0:
            break
        clean = " ".join(line.encode("utf-8", "replace").decode().split())
        if clean and not _IDEOGRAPHS.search(clean):
            taken.append(clean)
            budget -= len(clean.encode())
    return taken


def normal(line: str, place: int) -> int:
    """The boundary moved before closing quotes, brackets and reference marks, which Punkt leaves to the next sentence.

    A boundary that nothing but such marks follows moves to the end of the line, where it does not count.

    >>> normal("It rained.[12] Then it snowed.", 14), normal("It rained.[12]", 10)
    (10, 14)
    """
    marks = _AFTER_MARKS.search(line, 0, place)
    place = marks.start() if marks and marks.start() else place
    rest = _AFTER_MARKS.match(line, place)
    return len(line) if rest else place


def ours(lines: list[str]) -> set[Boundary]:
    """Boundaries of the built-in splitter."""
    spans = sentence_spans(pa.array(lines, pa.string()))
    boundaries: set[Boundary] = set()
    for number, line in enumerate(lines):
        low, high, base = spans.offsets[number], spans.offsets[number + 1], int(spans.bases[number])
        data = line.encode()
        ends = [len(data[: stop - base].decode()) for stop in spans.stops[low : high - 1].tolist()]
        boundaries |= {(number, normal(line, end)) for end in ends}
    return {(number, place) for number, place in boundaries if place < len(lines[number])}


def punkts(lines: list[str], punkt: Any) -> set[Boundary]:
    """Boundaries of Punkt."""
    boundaries = {
        (number, normal(line, stop))
        for number, line in enumerate(lines)
        for _, stop in list(punkt.span_tokenize(line))[:-1]
    }
    return {(number, place) for number, place in boundaries if place < len(lines[number])}


def dubious(line: str, place: int) -> bool:
    """Whether a boundary stands before a lower-case letter (quotes, dashes aside) or after the number of an item."""
    rest = line[place:].lstrip("\"'”’»)]}“‘«([{-–— ")
    return (rest[:1].islower() and not line.islower()) or re.fullmatch(r"[0-9]{1,3}\.", line[:place]) is not None


def seconds(work: Any) -> float:
    """CPU seconds of one call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def in_context(line: str, place: int, width: int = 40) -> str:
    """The characters around a boundary, which is shown as ``|``."""
    return f"{line[max(0, place - width) : place]}|{line[place : place + width]}"


def show(lines: list[str], mine: set[Boundary], theirs: set[Boundary], limit: int = 100) -> None:
    """Print an evenly spaced choice of the disagreements."""
    for title, places in (("only ours", sorted(mine - theirs)), ("only Punkt's", sorted(theirs - mine))):
        print(f"--- {title}: {len(places)}")
        for line, place in places[:: max(1, len(places) // limit)]:
            print("   ", in_context(lines[line], place))


def main() -> None:
    """Print one row for each kind of text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=4, help="text of each kind, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--show", choices=KINDS, help="print disagreements of this kind")
    given = parser.parse_args()
    from nltk.tokenize.punkt import PunktTokenizer

    punkt = PunktTokenizer("english")
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(", ".join(f"{name} {version(name)}" for name in ("corpusforge", "nltk", "numpy", "pyarrow")))
    print("| text | MB | Punkt's boundaries | precision | recall | recall* | built-in, MB/s | Punkt, MB/s |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, read in KINDS.items():
        if given.show not in (None, kind):
            continue
        lines = take(read(given.data), int(given.megabytes * 1e6))
        column = pa.array(lines, pa.string())
        size = sum(len(line.encode()) for line in lines) / 1e6
        quick, slow = [], []
        for _ in range(given.rounds):
            quick.append(seconds(lambda c=column: sentence_spans(c)))
            slow.append(seconds(lambda t=lines: [list(punkt.span_tokenize(line)) for line in t]))
        mine, theirs = ours(lines), punkts(lines, punkt)
        shared = len(mine & theirs)
        sound = {(line, place) for line, place in theirs if not dubious(lines[line], place)}
        speeds = f"{size / statistics.median(quick):.0f} | {size / statistics.median(slow):.1f}"
        rates = (shared / len(mine), shared / len(theirs), len(mine & sound) / len(sound))
        print(f"| {kind} | {size:.1f} | {len(theirs):,} |", *(f"{rate:.4f} |" for rate in rates), f"{speeds} |")
        if given.show:
            show(lines, mine, sound)


if __name__ == "__main__":
    sys.exit(main())
