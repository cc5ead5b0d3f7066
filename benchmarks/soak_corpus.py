"""Build a large corpus of varied pages with known duplicates: real sentences, recombined, with planted copies.

    python benchmarks/soak_corpus.py OUT --data ../shared/data [--gigabytes 5]

Writes OUT/part-NNNN.jsonl of 128 MB each (``text``, ``url``, ``timestamp``) and OUT.planted.json, the counts of what
was planted. A page is 5 to 120 sentences drawn at random from English prose and encyclopedia text (some
pages from Chinese text), in lines of a few sentences, between menu lines as in crawled pages. Planted are:

    copy        the text of an earlier page, unchanged                                 2 % of pages
    near-copy   an earlier page with one word in 60 changed                            3 %
    passage     3 to 8 sentences of an earlier page set into this one                 10 %

"Earlier" means one of the last 20,000 pages, also of other files. Single sentences recur often (the pool has less than
a million); three in a row hardly ever recur by chance. All pages follow from the seed and the size.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from corpusforge.sentences.splitter import sentence_spans

ENGLISH = ("enwiki2018-dev.jsonl.gz", "novels-dev.jsonl.gz")
CHINESE = ("zhwiki-dev.jsonl.gz",)
ENDS = '.?!"。？！”'
FILE_BYTES = 128 << 20
REACH = 20_000
"""Number of earlier pages that a copy may come from."""

COPIES, NEAR_COPIES, PASSAGES, CHINESE_SHARE = 0.02, 0.03, 0.10, 0.02
CHANGED = 60
"""One word in this many is replaced in a near-copy: about 0.85 of the five-word shingles stay the same."""

MENU = ("Home | About | Contact", "Read more", "Share this page", "Copyright 2019", "We use cookies on this site.")


def sentences_of(folder: Path, names: tuple[str, ...]) -> list[str]:
    """Sentences of 20 to 600 bytes from the named files; parts of lines that a book wraps are left out."""
    sentences: list[str] = []
    for name in names:
        with gzip.open(folder / name, "rt", encoding="utf-8") as file:
            texts = [json.loads(line)["text"] for line in file]
        for first in range(0, len(texts), 256):
            spans = sentence_spans(pa.array(texts[first : first + 256], pa.string()))
            data = spans.data.tobytes()
            parts = (data[a:b] for a, b in zip(spans.starts.tolist(), spans.stops.tolist(), strict=True))
            texts_of = (" ".join(part.decode().split()) for part in parts if 20 <= len(part) <= 600)
            sentences += [text for text in texts_of if not text[0].islower() and text[-1] in ENDS]
    return sentences


class Pages:
    """A sequence of pages, and the counts of what was planted in them."""

    def __init__(self, english: list[str], chinese: list[str], seed: int) -> None:
        self.english, self.chinese = english, chinese
        self.random = random.Random(seed)
        self.earlier: collections.deque[list[str]] = collections.deque(maxlen=REACH)
        self.planted: collections.Counter[str] = collections.Counter()

    def page(self) -> str:
        """The next page."""
        draw = self.random.random()
        if draw < COPIES and self.earlier:
            self.planted["copies"] += 1
            sentences = self._earlier()
        elif draw < COPIES + NEAR_COPIES and self.earlier:
            self.planted["near_copies"] += 1
            sentences = [self._changed(sentence) for sentence in self._earlier()]
        else:
            sentences = self._fresh(draw)
        self.earlier.append(sentences)
        self.planted["pages"] += 1
        return self._laid_out(sentences)

    def _fresh(self, draw: float) -> list[str]:
        pool = self.chinese if self.random.random() < CHINESE_SHARE else self.english
        length = min(120, 5 + int(self.random.expovariate(1 / 20)))
        sentences = self.random.choices(pool, k=length)
        if draw > 1 - PASSAGES and self.earlier:
            source = self._earlier()
            first = self.random.randrange(max(1, len(source) - 3))
            passage = source[first : first + self.random.randint(3, 8)]
            position = self.random.randrange(length)
            self.planted["passages"] += 1
            self.planted["passage_sentences"] += len(passage)
            sentences[position:position] = passage
        return sentences

    def _earlier(self) -> list[str]:
        return self.earlier[self.random.randrange(len(self.earlier))]

    def _changed(self, sentence: str) -> str:
        words = sentence.split(" ")
        for position in range(len(words)):
            if self.random.random() < 1 / CHANGED:
                words[position] = f"word{self.random.randrange(10**6)}"
        return " ".join(words)

    def _laid_out(self, sentences: list[str]) -> str:
        """Paragraphs of five sentences, each a line, between two menu lines.

        The lines follow from the sentences alone, so that a copy of the sentences is a copy of the paragraphs.
        """
        lines = [" ".join(sentences[k : k + 5]) for k in range(0, len(sentences), 5)]
        return "\n".join([self.random.choice(MENU), *lines, self.random.choice(MENU)])


def planted_path(out: Path) -> Path:
    """The path of the counts: outside the corpus, as all files in a folder of pages are read."""
    return out.with_name(f"{out.name}.planted.json")


def write(pages: Pages, out: Path, size: int) -> None:
    """Write ``size`` bytes of JSON in files."""
    out.mkdir(parents=True)
    written = number = 0
    while written < size:
        with (out / f"part-{number:04d}.jsonl").open("w", encoding="utf-8") as file:
            for line in _rows(pages, number, min(FILE_BYTES, size - written)):
                file.write(line)
                written += len(line.encode())
        number += 1
        print(f"\r{written / 1e9:.2f} GB", end="", file=sys.stderr)
    print(file=sys.stderr)
    planted_path(out).write_text(json.dumps({"bytes": written, **pages.planted}, indent=1) + "\n")


def _rows(pages: Pages, number: int, size: int) -> Iterator[str]:
    written = row = 0
    while written < size:
        url = f"http://site{(number * 7919 + row) % 5003}.example/{number}/{row}"
        row_of_page = {"url": url, "timestamp": f"2024-{row % 12 + 1:02d}-15T00:00:00Z", "text": pages.page()}
        line = json.dumps(row_of_page, ensure_ascii=False) + "\n"
        written, row = written + len(line.encode()), row + 1
        yield line


def main() -> None:
    """Build the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    english = sentences_of(given.data / "text_en", ENGLISH)
    chinese = sentences_of(given.data / "text_zh", CHINESE)
    print(f"{len(english):,} English sentences, {len(chinese):,} Chinese", file=sys.stderr)
    write(Pages(english, chinese, given.seed), given.out, int(given.gigabytes * 1e9))


if __name__ == "__main__":
    main()
