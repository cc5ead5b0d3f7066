"""All English prose below a folder, as JSONL that `corpusforge clean` reads: the corpus of docs/results.md.

    python benchmarks/results_corpus.py /data/english --data ../shared/data/text_en

Reads JSONL (fields ``text`` or ``content``), text files, and the text and XML files inside zip archives. One change is
made to text: if a file is hard-wrapped (books of Project Gutenberg), the lines of a paragraph are joined, since the
rules of C4 treat a line as a paragraph. Other languages, word lists and read-me files are left out by name. ``--only
NAME --every 16`` takes every 16th document of one file. Prints documents and words.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

NOT_ENGLISH_PROSE = re.compile(r"readme|finnish|french|german|portuguese|swedish|lolcat", re.IGNORECASE)
WIDTH = 90
"""Characters; text in which hardly a line is longer was wrapped at a fixed width, not by its author."""
FEWEST = 100
"""Lines; shorter documents may have short lines for other reasons."""
_TAGS = re.compile(r"<[^>]+>")


def is_hard_wrapped(lines: list[str]) -> bool:
    """Whether 99 of 100 nonempty lines are no longer than `WIDTH`, and half of them at least half as long."""
    lengths = sorted(len(line) for line in lines if line.strip())
    if len(lengths) < FEWEST:
        return False
    return lengths[len(lengths) * 99 // 100] <= WIDTH and lengths[len(lengths) // 2] >= WIDTH // 2


def prose(text: str) -> str:
    """The text with one paragraph per line."""
    lines = text.splitlines()
    if not is_hard_wrapped(lines):
        return "\n".join(lines)
    paragraphs, so_far = [], list[str]()
    # In some books each paragraph begins with an indented line; in others entire poems or chapters are indented.
    is_by_indent = sum(line[:1].isspace() for line in lines) < len(lines) // 2
    for line in [*lines, ""]:
        if so_far and (not line.strip() or (is_by_indent and line[0].isspace())):
            paragraphs.append(" ".join(so_far))
            so_far = []
        if line.strip():
            so_far.append(line.strip())
    return "\n".join(paragraphs)


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of each document of one file."""
    if path.name.endswith(".jsonl.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield f"{path.name}#{row['id']}", row.get("text") or row.get("content") or ""
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith((".txt", ".xml")) and not NOT_ENGLISH_PROSE.search(name):
                    text = archive.read(name).decode("utf-8", "replace")
                    yield f"{path.name}#{name}", _TAGS.sub(" ", text) if name.endswith(".xml") else text
    elif path.suffix == ".txt":
        yield path.name, path.read_text(encoding="utf-8", errors="replace")


def main() -> None:
    """Write FOLDER/english.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of .jsonl.gz, .txt and .zip files")
    parser.add_argument("--only", default="*", help="a glob of file names")
    parser.add_argument("--every", type=int, default=1, help="take every n-th document")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    total = 0
    with (options.folder / "english.jsonl").open("w", encoding="utf-8") as out:
        for path in sorted(options.data.glob(options.only)):
            documents = words = joined = 0
            for name, text in islice(texts(path), 0, None, options.every):
                joined += is_hard_wrapped(text.splitlines())
                text = prose(text)
                documents, words = documents + 1, words + len(text.split())
                out.write(json.dumps({"url": name, "text": text}, ensure_ascii=False) + "\n")
            total += words
            print(f"{path.name:36} {documents:7,} documents {words:12,} words, {joined:,} with lines joined")
    print(f"{'all':36} {'':7} {'':10} {total:12,} words")


if __name__ == "__main__":
    main()
