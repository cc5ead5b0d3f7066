"""Reading raw input against the plain loop over the same library, one core each, per format.

    python benchmarks/read_documents.py [--warc FILE.warc.gz] [--jsonl FILE.jsonl.gz] [--megabytes 200] [--rounds 5]
                                        [--trafilatura]

Without files it reads ``../shared/data``. The JSONL text is repeated to the size asked for and written to a temporary
folder as plain, .gz and .zst JSONL, Parquet and blank-line text. The peers are what a careful script does with the same
libraries: FastWARC and resiliparse; `json.loads` over lines; `ParquetFile.iter_batches`; `read().split`. They yield
texts and nothing else; ours yields finished DOCUMENTS with ids, and rejects. Rates are of uncompressed input (WARC:
content of all records), in CPU time of the process, medians over rounds in which both sides run one after the other.
"""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

from corpusforge.documents.plan import plan_units
from corpusforge.documents.read import read_unit
from corpusforge.documents.records import ReadOptions

DATA = Path(__file__).resolve().parents[1] / "../shared/data"


def warc_loop(path: Path, html: str) -> int:
    """Documents of a WARC by FastWARC and resiliparse alone."""
    count = 0
    for record in ArchiveIterator(path.open("rb"), record_types=WarcRecordType.response, parse_http=True):
        if record.http_headers.status_code != 200:
            continue
        body = record.reader.read()
        encoding = record.http_charset or detect_encoding(body, from_html_meta=True) or "utf-8"
        page = bytes_to_str(body, encoding)
        count += bool(extracted(page, html).strip())
    return count


def extracted(page: str, html: str) -> str:
    """The text of a page, by the library itself."""
    if html != "trafilatura":
        return extract_plain_text(page, preserve_formatting=True, main_content=html == "main")  # type: ignore[no-any-return]
    import trafilatura  # an extra, asked for by a flag

    return trafilatura.extract(page, favor_precision=True, include_comments=False) or ""


def json_loop(path: Path) -> int:
    """Texts of a JSONL file by `json.loads`, line by line."""
    openers = {".gz": gzip.open, ".zst": zstandard.open, ".jsonl": open}
    with openers[path.suffix](path, "rb") as file:  # type: ignore[operator]
        lines = io.BufferedReader(file)
        return sum(isinstance(json.loads(line)["text"], str) for line in lines)


def parquet_loop(path: Path) -> int:
    """Texts of a Parquet file by pyarrow, as Python strings."""
    batches = pq.ParquetFile(path).iter_batches(512, columns=["text"])
    return sum(len(batch.column(0).to_pylist()) for batch in batches)


def text_loop(path: Path) -> int:
    """Paragraphs of a text file, all of it in memory."""
    return sum(bool(part.strip()) for part in path.read_text("utf-8").split("\n\n"))


def ours(path: Path, **options: str) -> int:
    """Documents by `read_unit`."""
    units = plan_units([str(path)])
    return sum(batch.documents.num_rows for u in units for batch in read_unit(u, ReadOptions(**options)))  # type: ignore[arg-type]


def timed(work: Callable[[], int]) -> tuple[float, int]:
    """CPU seconds and the count."""
    start = time.process_time()
    count = work()
    return time.process_time() - start, count


def written(lines: list[bytes], folder: Path) -> dict[str, Path]:
    """The same documents in every format."""
    data = b"".join(lines)
    texts = [json.loads(line)["text"] for line in lines]
    paths = {name: folder / name for name in ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet", "a.txt")}
    paths["a.jsonl"].write_bytes(data)
    paths["a.jsonl.gz"].write_bytes(gzip.compress(data, 6))
    paths["a.jsonl.zst"].write_bytes(zstandard.compress(data))
    pq.write_table(pa.table({"text": texts}), paths["a.parquet"], compression="zstd", row_group_size=10_000)
    paths["a.txt"].write_text("\n\n".join(t.replace("\n\n", "\n").strip() for t in texts), "utf-8")
    return paths


def contests(
    warc: Path, paths: dict[str, Path], ways: tuple[str, ...]
) -> Iterator[tuple[str, float, Callable[[], int], Callable[[], int]]]:
    """Name, megabytes of content, ours, theirs."""
    size = sum(len(r.reader.read()) for r in ArchiveIterator(warc.open("rb"), parse_http=False)) / 1e6
    for html in ways:
        yield f"WARC, {html}", size, lambda h=html: ours(warc, html=h), lambda h=html: warc_loop(warc, h)  # type: ignore[misc]
    size = paths["a.jsonl"].stat().st_size / 1e6
    for name in ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst"):
        path = paths[name]
        yield name[2:], size, lambda p=path: ours(p), lambda p=path: json_loop(p)  # type: ignore[misc]
    size = paths["a.txt"].stat().st_size / 1e6
    yield "parquet", size, lambda: ours(paths["a.parquet"]), lambda: parquet_loop(paths["a.parquet"])
    blank = {"text_split": "blank-line"}
    yield "text, blank-line", size, lambda: ours(paths["a.txt"], **blank), lambda: text_loop(paths["a.txt"])


def main() -> None:
    """Run every contest and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warc", type=Path, default=DATA / "warc_wrapped/trafilatura-eval-dev.warc.gz")
    parser.add_argument("--jsonl", type=Path, default=DATA / "text_en/enwiki2018-dev.jsonl.gz")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trafilatura", action="store_true", help="this way to take text out of HTML as well")
    options = parser.parse_args()
    ways = ("main", "all", "trafilatura") if options.trafilatura else ("main", "all")
    for path in (options.warc, options.jsonl):
        if not path.is_file():
            sys.exit(f"{path}: no such file; name one with --warc and --jsonl")
    packages = ["pyarrow", "fastwarc", "resiliparse", "zstandard", *ways[2:]]
    print(
        f"{platform.machine()}, Python {platform.python_version()}, " + ", ".join(f"{p} {version(p)}" for p in packages)
    )
    print(f"{options.warc.name}; {options.jsonl.name} repeated to {options.megabytes} MB; {options.rounds} rounds")
    print(f"{'format':20}{'MB':>8}{'documents':>12}{'ours MB/s':>12}{'loop MB/s':>12}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder, gzip.open(options.jsonl) as file:
        once, lines, size = file.readlines(), [], 0
        for line in itertools.cycle(once):
            lines.append(line)
            size += len(line)
            if size >= options.megabytes << 20:
                break
        for name, megabytes, mine, theirs in contests(options.warc, written(lines, Path(folder)), ways):
            mine(), theirs()  # imports and caches
            rounds = [(timed(mine), timed(theirs)) for _ in range(options.rounds)]
            rates = [megabytes / statistics.median(side[i][0] for side in rounds) for i in (0, 1)]
            row = f"{name:20}{megabytes:8.0f}{rounds[0][0][1]:12,}{rates[0]:12.0f}{rates[1]:12.0f}"
            print(f"{row}{rates[0] / rates[1]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
