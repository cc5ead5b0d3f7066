"""The input of the golden runs: a few MB of real text, taken from ``../shared/data`` the same way every time."""

from __future__ import annotations

import gzip
import itertools
import shutil
from pathlib import Path


def write_corpus(shared: Path, folder: Path) -> Path:
    """Write about 4 MB: Wikipedia in two dumps (near-duplicates), web text, parts of novels, Chinese, an archive.

    Source names and positions are relative to ``folder``, so document ids do not depend on where it lies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _take(shared / "text_en/enwiki2018-dev.jsonl.gz", folder / "wiki.jsonl", 900)
    _take(shared / "text_en/enwiki-multidump-dev.jsonl.gz", folder / "dumps.jsonl", 60)
    _take(shared / "text_zh/zhwiki-dev.jsonl.gz", folder / "chinese.jsonl", 120)
    shutil.copyfile(shared / "web_text/dolma-cc_en_head-0091.jsonl", folder / "dolma.jsonl")
    shutil.copyfile(shared / "warc/pywb-iana.warc.gz", folder / "iana.warc.gz")
    lines = (folder / "wiki.jsonl").read_text("utf-8").splitlines(keepends=True)
    (folder / "wiki-again.jsonl").write_text("".join(lines[::9]), "utf-8")  # planted: pages twice
    return folder


def _take(source: Path, target: Path, lines: int) -> None:
    with gzip.open(source, "rt", encoding="utf-8") as file, target.open("w", encoding="utf-8") as out:
        out.writelines(itertools.islice(file, lines))
