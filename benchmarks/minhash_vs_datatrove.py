"""near-spans and documents against datatrove's MinHash: shards on disk in, shards on disk out, one core each.

    python -m venv PEER && PEER/bin/pip install -r benchmarks/requirements-datatrove.txt
    python benchmarks/minhash_vs_datatrove.py --peer-python PEER/bin/python TEXT.jsonl.gz...

All read the same Parquet shards (id, text) and write Parquet. The corpus is the given text; every 20th document is
repeated whole, every 15th with a word in a hundred changed. Ours is the command ``corpusforge dedupe --workers 1
--method ...``, from process start to process end, through Beam. datatrove runs the four steps of its own example
(examples/minhash_deduplication.py: signatures of 14 buckets of 8 hashes, word 5-grams); its imports and spaCy's set-up
are not counted. Each side runs in a process of its own pinned to one core; every round runs all sides, one after the
other; figures are medians.

``cpu``: processor seconds of the same steps, which other work on the machine affects little. ``planted``: the share
of planted copies that were dropped (or, for spans, cut to a half or less).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dedupe_vs_datatrove import SHARDS, _versions, read_texts, write_corpus

SIDES = ("documents", "near-spans", "datatrove")


@dataclasses.dataclass(frozen=True)
class Run:
    """One side's figures. ``seconds``: by step; ``kept``: documents; ``planted``: share of the copies found."""

    seconds: dict[str, float]
    cpu: float
    kept: int
    planted: float
    versions: dict[str, str]


def plant(texts: Iterator[str], planted: list[int]) -> Iterator[str]:
    """The texts with copies and edited copies among them; appends the pairs' numbers to ``planted``."""
    draw, number = random.Random(1), 0
    for count, text in enumerate(texts):
        yield text
        number += 1
        words = text.split(" ")
        edits = 0 if count % 20 == 0 else len(words) // 100 if count % 15 == 0 else None
        if edits is not None and len(words) > 50:
            for _ in range(edits):
                words[draw.randrange(len(words))] = "changed"
            yield " ".join(words)
            planted.append(number - 1)
            number += 1


def spent() -> float:
    """Processor seconds of this process and of those it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run_ours(method: str, source: Path, output: Path) -> tuple[dict[str, float], float, Path]:
    """The command line, through Beam, from process start to process end."""
    start, before = time.perf_counter(), spent()
    command = [sys.executable, "-m", "corpusforge", "dedupe", str(source), "--output", str(output / "stage")]
    subprocess.run([*command, "--workers", "1", "--method", method], check=True, stdout=subprocess.DEVNULL)
    return {"all": time.perf_counter() - start}, spent() - before, output / "stage/documents"


def run_datatrove(source: Path, output: Path) -> tuple[dict[str, float], float, Path]:
    """datatrove's four steps."""
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found]
    from datatrove.pipeline.dedup import (  # type: ignore[import-not-found]
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig  # type: ignore[import-not-found]
    from datatrove.pipeline.readers import ParquetReader  # type: ignore[import-not-found]
    from datatrove.pipeline.writers import ParquetWriter  # type: ignore[import-not-found]
    from datatrove.utils.word_tokenizers import load_word_tokenizer  # type: ignore[import-not-found]

    load_word_tokenizer("en").word_tokenize("One. Two.")  # spaCy's import and set-up are not counted
    config = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8)

    def reader() -> Any:
        return ParquetReader(str(source / "documents"), text_key="text", id_key="id")

    sigs, buckets, dropped, kept = (str(output / name) for name in ("sigs", "buckets", "dropped", "kept"))
    steps = {
        "sign": ([reader(), MinhashDedupSignature(output_folder=sigs, config=config, language="en")], SHARDS),
        "buckets": ([MinhashDedupBuckets(input_folder=sigs, output_folder=buckets, config=config)], config.num_buckets),
        "cluster": ([MinhashDedupCluster(input_folder=buckets, output_folder=dropped, config=config)], 1),
        "filter": ([reader(), MinhashDedupFilter(input_folder=dropped), ParquetWriter(kept)], SHARDS),
    }
    seconds, before = {}, spent()
    for name, (pipeline, tasks) in steps.items():
        start = time.perf_counter()
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=1, logging_dir=str(output / f"logs-{name}")).run()
        seconds[name] = time.perf_counter() - start
    return seconds, spent() - before, Path(kept)


def found_copies(source: Path, kept: Path) -> tuple[int, float]:
    """The number of documents left, and the share of planted pairs of which one is dropped or cut to a half."""
    import pyarrow.parquet as pq

    sizes: dict[str, dict[int, int]] = {"before": {}, "after": {}}
    for name, folder in (("before", source / "documents"), ("after", kept)):
        for path in folder.rglob("*.parquet"):
            table = pq.read_table(path, columns=["id", "text"])
            for document, text in zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True):
                sizes[name][int(document, 16)] = len(text)
    planted = json.loads((source / "planted.json").read_text())
    dropped = [
        any(2 * sizes["after"].get(number, 0) <= sizes["before"][number] for number in (first, first + 1))
        for first in planted
    ]
    return len(sizes["after"]), sum(dropped) / max(1, len(dropped))


def be_side(side: str, source: Path, output: Path) -> None:
    """Run in the process of one side."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if side == "datatrove":
        (seconds, cpu, kept), versions = (
            run_datatrove(source, output),
            _versions("datatrove", "spacy", "numpy", "pyarrow"),
        )
    else:
        (seconds, cpu, kept), versions = run_ours(side, source, output), _versions("apache-beam", "numpy", "pyarrow")
    run = Run(seconds, cpu, *found_copies(source, kept), versions)
    (output / "figures.json").write_text(json.dumps(dataclasses.asdict(run)))


def run_side(python: str, side: str, source: Path) -> Run:
    """Run one side in a process of its own and read its figures."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent.parent)}
    with tempfile.TemporaryDirectory(prefix="minhash-side-") as output:
        done = subprocess.run(
            [python, __file__, "--side", side, str(source), output], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{side} failed:\n{done.stderr[-4000:]}")
        return Run(**json.loads((Path(output) / "figures.json").read_text()))


def show(side: str, runs: list[Run], size: int) -> tuple[float, float]:
    """Print one side's medians; returns its bytes by second and by processor second."""
    total, cpu = (statistics.median(x) for x in zip(*((sum(r.seconds.values()), r.cpu) for r in runs), strict=True))
    steps = ", ".join(f"{n} {statistics.median(r.seconds[n] for r in runs):.1f}" for n in runs[0].seconds)
    versions = " ".join(f"{n} {v}" for n, v in runs[0].versions.items())
    print(f"{side:10} {size / total / 1e6:8.2f} MB/s  {total:8.2f} s, cpu {cpu:.2f} s ({steps})", end="  ")
    print(f"{runs[0].kept} documents,", end=" ")
    print(f"planted {runs[0].planted:.3f}  [{versions}]")
    return size / total, size / cpu


def main() -> None:
    """Parse arguments, build the corpus, run all sides in turn, print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="JSONL files with a text column, plain or .gz")
    parser.add_argument("--peer-python", help="Python of the environment that has datatrove; without it, only ours")
    parser.add_argument("--megabytes", type=float, default=60, help="text to use (default 60)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (default 3)")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        be_side(given.side, Path(given.text[0]), Path(given.text[1]))
        return
    with tempfile.TemporaryDirectory(prefix="minhash-benchmark-") as name:
        source, planted = Path(name), list[int]()
        size = write_corpus(source, plant(read_texts(given.text, int(given.megabytes * 1e6)), planted))
        (source / "planted.json").write_text(json.dumps(planted))
        print(f"{size / 1e6:.1f} MB of text in {SHARDS} shards, {len(planted)} planted copies;", end=" ")
        print(f"{platform.machine()}, {os.cpu_count()} cores, one used; load {os.getloadavg()[0]:.1f};", end=" ")
        print(f"median of {given.rounds}")
        sides = SIDES if given.peer_python else SIDES[:2]
        runs: dict[str, list[Run]] = {side: [] for side in sides}
        for _ in range(given.rounds):
            for side in sides:
                python = given.peer_python if side == "datatrove" else sys.executable
                runs[side].append(run_side(python, side, source))
        speeds = {side: show(side, of_side, size) for side, of_side in runs.items()}
        if given.peer_python:
            for side in SIDES[:2]:
                ratios = [ours / peer for ours, peer in zip(speeds[side], speeds["datatrove"], strict=True)]
                print(f"{side} / datatrove: {ratios[0]:.1f}, by processor seconds {ratios[1]:.1f}")


if __name__ == "__main__":
    main()
