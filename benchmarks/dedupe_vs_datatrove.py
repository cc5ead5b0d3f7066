"""exact-spans against datatrove's sentence deduplication: shards on disk in, shards on disk out, one core each.

    python -m venv PEER && PEER/bin/pip install -r benchmarks/requirements-datatrove.txt
    python benchmarks/dedupe_vs_datatrove.py --peer-python PEER/bin/python TEXT.jsonl.gz...

Both read the same Parquet shards (id, text) and write Parquet. The corpus is the given text with planted duplicates:
every 20th document is copied whole, every 7th gets a passage of an earlier one. Each side runs in a process of its own,
pinned to one core. Ours is measured twice: the stage's own steps in a plain loop, and the command ``corpusforge dedupe
--workers 1`` through Beam. Imports are counted only for the command, which is measured from its start to its end. Every
round runs all sides, one after the other; figures are medians.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHARDS = 4
PARTITIONS = 4
CHUNK = 100_000


@dataclasses.dataclass(frozen=True)
class Run:
    """One side's figures. ``seconds``: by step; ``kept``: documents; ``kept_bytes``: of text."""

    seconds: dict[str, float]
    kept: int
    kept_bytes: int
    versions: dict[str, str]

    @property
    def total(self) -> float:
        """Seconds from shards to shards."""
        return sum(self.seconds.values())


def read_texts(paths: list[str], limit: int) -> Iterator[str]:
    """Texts of JSONL files, plain or .gz, the same bytes of each, up to ``limit`` in all; long ones in chunks."""
    streams = [_read_file(path) for path in paths]
    read = [0] * len(streams)
    while streams and sum(read) < limit:
        smallest = read.index(min(read))
        text = next(streams[smallest], None)
        if text is None:
            del streams[smallest], read[smallest]
            continue
        read[smallest] += len(text.encode())
        yield text


def _read_file(path: str) -> Iterator[str]:
    with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
        for line in file:
            text = json.loads(line)["text"]
            yield from (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))


def plant(texts: Iterator[str]) -> Iterator[str]:
    """The texts with whole copies and copied passages among them."""
    passage = ""
    for number, text in enumerate(texts):
        yield text + "\n" + passage if number % 7 == 0 else text
        if number % 20 == 0:
            yield text
        if number % 11 == 0:
            passage = text[:2000]


def write_corpus(folder: Path, texts: Iterator[str]) -> int:
    """Write DOCUMENTS shards; returns the bytes of text."""
    import pyarrow as pa

    from corpusforge import content, shards
    from corpusforge.schemas import DOCUMENTS

    groups: list[list[dict[str, Any]]] = [[] for _ in range(SHARDS)]
    total = 0
    for number, text in enumerate(texts):
        total += len(text.encode())
        record = {"id": f"{number:032x}", "source": "benchmark", "position": number, "text": text}
        groups[number % SHARDS].append(record)
    written = []
    for number, group in enumerate(groups):
        name = f"documents/part-{number:05d}-00000.parquet"
        writer = shards.ShardWriter(str(folder), name, DOCUMENTS, "parquet")
        writer.write(pa.RecordBatch.from_pylist(group, schema=DOCUMENTS))
        written.append(writer.finish())
    digests = {"documents": content.combine(shard.content for shard in written)}
    rows, size = ({"documents": sum(getattr(s, n) for s in written)} for n in ("rows", "bytes"))
    shards.Manifest("clean", "0" * 32, digests, rows, size, {"documents": written}, {}, {}, {}, {}, {}).save(
        str(folder)
    )
    return total


def run_ours(source: Path, output: Path) -> Run:
    """CorpusForge's own steps in a plain loop."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    from corpusforge.dedupe.exact_spans import (
        CutWork,
        HashWork,
        duplicates_folder,
        span_blocks,
        write_duplicates,
    )
    from corpusforge.dedupe.spans import find_duplicates
    from corpusforge.units import ShardUnit

    folder = str(output / "hashes")
    paths = sorted((source / "documents").glob("*.parquet"))
    units = [ShardUnit(n, str(p), pq.ParquetFile(p).metadata.num_rows, p.stat().st_size) for n, p in enumerate(paths)]
    clock = [time.perf_counter()]
    for unit in units:
        HashWork(folder)(unit, lambda _: None)
    clock.append(time.perf_counter())
    by_partition: dict[int, list[bytes]] = {}
    for unit in units:
        for partition, block in span_blocks(folder, PARTITIONS, 0, 1, False, unit.number):
            by_partition.setdefault(partition, []).append(block)
    by_unit: dict[int, list[bytes]] = {}
    for blocks in by_partition.values():
        for number, packed in find_duplicates(blocks):
            by_unit.setdefault(number, []).append(packed)
    for number, blocks in by_unit.items():
        write_duplicates(duplicates_folder(folder, 1), 0, number, blocks)
    clock.append(time.perf_counter())
    results = [CutWork(str(output), folder)(unit, lambda _: None) for unit in units]
    clock.append(time.perf_counter())
    names = ("hash", "find", "cut")
    return Run(
        {n: b - a for n, a, b in zip(names, clock[:-1], clock[1:], strict=True)},
        sum(r.statistics["documents_out"] for r in results),
        sum(r.statistics["text_bytes_out"] for r in results),
        _versions("numpy", "pyarrow"),
    )


def run_command(source: Path, output: Path) -> Run:
    """The command line, through Beam, from process start to process end."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "corpusforge", "dedupe", str(source), "--output", str(output / "stage")]
    subprocess.run([*command, "--workers", "1"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    counts = json.loads((output / "stage/manifest.json").read_text())["statistics"]
    return Run({"all": seconds}, counts["documents_out"], counts["text_bytes_out"], _versions("apache-beam"))


def run_datatrove(source: Path, output: Path) -> Run:
    """datatrove's three steps, as its own example runs them (examples/sentence_deduplication.py)."""
    import pyarrow.parquet as pq
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found]
    from datatrove.pipeline.dedup import (  # type: ignore[import-not-found]
        SentenceDedupFilter,
        SentenceDedupSignature,
        SentenceFindDedups,
    )
    from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig  # type: ignore[import-not-found]
    from datatrove.pipeline.readers import ParquetReader  # type: ignore[import-not-found]
    from datatrove.pipeline.writers import ParquetWriter  # type: ignore[import-not-found]
    from datatrove.utils.word_tokenizers import load_word_tokenizer  # type: ignore[import-not-found]

    load_word_tokenizer("en").sent_tokenize("One. Two.")  # spaCy's import and set-up are not counted
    config = SentDedupConfig(n_sentences=3, only_dedup_in_index=False, min_doc_words=0, min_num_sentences=3)

    def reader() -> Any:
        return ParquetReader(str(source / "documents"), text_key="text", id_key="id")

    sigs, dups, kept = (str(output / name) for name in ("sigs", "dups", "kept"))
    steps = {
        "hash": ([reader(), SentenceDedupSignature(output_folder=sigs, config=config, language="en")], SHARDS),
        "find": ([SentenceFindDedups(data_folder=sigs, output_folder=dups, config=config)], 1),
        "cut": (
            [reader(), SentenceDedupFilter(data_folder=dups, config=config, language="en"), ParquetWriter(kept)],
            SHARDS,
        ),
    }
    seconds = {}
    for name, (pipeline, tasks) in steps.items():
        start = time.perf_counter()
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=1, logging_dir=str(output / f"logs-{name}")).run()
        seconds[name] = time.perf_counter() - start
    columns = [pq.read_table(path, columns=["text"])["text"] for path in Path(kept).rglob("*.parquet")]
    size = sum(len(text.encode()) for column in columns for text in column.to_pylist())
    return Run(seconds, sum(len(c) for c in columns), size, _versions("datatrove", "spacy", "numpy", "pyarrow"))


def _versions(*names: str) -> dict[str, str]:
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}


def run_side(python: str, side: str, source: Path, folder: Path) -> Run:
    """Run one side in a process of its own and read its figures."""
    output = folder / side
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [python, __file__, "--side", side, str(source), str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{side} failed:\n{done.stderr[-4000:]}")
    return Run(**json.loads((output / "figures.json").read_text()))


def be_side(side: str, source: Path, output: Path) -> None:
    """Run in the process of one side."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    run = {"ours": run_ours, "command": run_command, "datatrove": run_datatrove}[side](source, output)
    (output / "figures.json").write_text(json.dumps(dataclasses.asdict(run)))


def show(side: str, runs: list[Run], size: int) -> float:
    """Print one side's medians; returns its MB/s."""
    total = statistics.median(run.total for run in runs)
    steps = ", ".join(f"{n} {statistics.median(r.seconds[n] for r in runs):.2f}" for n in runs[0].seconds)
    versions = " ".join(f"{n} {v}" for n, v in runs[0].versions.items())
    print(f"{side:10} {size / total / 1e6:8.2f} MB/s  {total:8.2f} s ({steps})  {runs[0].kept} documents,", end=" ")
    print(f"{runs[0].kept_bytes / 1e6:.2f} MB kept  [{versions}]")
    return size / total


def main() -> None:
    """Parse arguments, build the corpus, run both sides in turn, print medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="JSONL files with a text column, plain or .gz")
    parser.add_argument("--peer-python", help="Python of the environment that has datatrove; without it, only ours")
    parser.add_argument("--megabytes", type=float, default=40, help="text to use (default 40)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (default 3)")
    parser.add_argument("--side", choices=("ours", "command", "datatrove"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        be_side(given.side, Path(given.text[0]), Path(given.text[1]))
        return
    with tempfile.TemporaryDirectory(prefix="dedupe-benchmark-") as name:
        folder = Path(name)
        (folder / "in").mkdir()
        size = write_corpus(folder / "in", plant(read_texts(given.text, int(given.megabytes * 1e6))))
        print(f"{size / 1e6:.1f} MB of text in {SHARDS} shards; {platform.processor() or platform.machine()},", end=" ")
        print(f"{os.cpu_count()} cores, one used; load {os.getloadavg()[0]:.1f}; median of {given.rounds}")
        sides = {
            "ours": sys.executable,
            "command": sys.executable,
            **({"datatrove": given.peer_python} if given.peer_python else {}),
        }
        runs: dict[str, list[Run]] = {side: [] for side in sides}
        for _ in range(given.rounds):
            for side, python in sides.items():
                runs[side].append(run_side(python, side, folder / "in", folder))
        speeds = {side: show(side, of_side, size) for side, of_side in runs.items()}
        if given.peer_python:
            for side in ("ours", "command"):
                print(f"{side} / datatrove: {speeds[side] / speeds['datatrove']:.1f}")


if __name__ == "__main__":
    main()
