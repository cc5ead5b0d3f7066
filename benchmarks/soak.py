"""A soak test: clean, exact-spans and documents over gigabytes, recording memory and throughput.

    python benchmarks/soak_corpus.py /data/soak --data ../shared/data --gigabytes 5
    python benchmarks/soak.py /data/soak --scratch /data/soak-run [--workers 2] [--budget 4096] [--plot soak.svg]

Runs ``corpusforge clean`` and ``corpusforge dedupe --method exact-spans,documents`` as a user would, each a process of
its own. Every second it writes a row of SCRATCH/soak.csv: seconds, stage, memory of all processes of the command (PSS:
pages that processes share count once; RSS: they count in each), bytes read from files, bytes on disk below the output.
Prints a table by stage and the tallies, to compare with the planted duplicates. ``--plot`` draws it (matplotlib, see
``benchmarks/requirements-soak.txt``).
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow
from soak_corpus import planted_path

FIELDS = ("seconds", "stage", "pss_mb", "rss_mb", "read_mb", "written_mb")


def tree_memory(root: psutil.Process) -> tuple[float, float]:
    """PSS and RSS in MB of a process and its children."""
    pss = rss = 0
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            memory = process.memory_full_info()
            pss, rss = pss + memory.pss, rss + memory.rss
    return pss / 1e6, rss / 1e6


class Reads:
    """Bytes that a tree of processes has read, including children that have ended."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}

    def megabytes(self, root: psutil.Process) -> float:
        """Megabytes read so far."""
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                self.seen[process.pid] = process.io_counters().read_chars
        return sum(self.seen.values()) / 1e6


def folder_bytes(folder: Path) -> int:
    """Size of everything below a folder."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def watch(stage: str, words: list[str], output: Path, began: float, rows: Any) -> float:
    """Run one command and record its memory, reads and output; return its seconds."""
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "corpusforge", *words], stdout=subprocess.DEVNULL)
    root, reads = psutil.Process(process.pid), Reads()
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            pss, rss = tree_memory(root)
            now = time.monotonic() - began
            row = (now, stage, pss, rss, reads.megabytes(root), folder_bytes(output) / 1e6)
            rows.writerow([f"{value:.1f}" if isinstance(value, float) else value for value in row])
        time.sleep(1)
    if process.returncode:
        raise SystemExit(f"{stage} ended with {process.returncode}")
    return time.monotonic() - start


def stages(source: Path, scratch: Path, workers: str, budget: str) -> dict[str, tuple[list[str], Path]]:
    """The commands and where they write."""
    cleaned, deduped = scratch / "clean", scratch / "dedupe"
    more = ["--workers", workers, "--quiet", "--overwrite"]
    clean = ["clean", str(source), "--output", str(cleaned), "--detector", "fast", "--badwords", "off", *more]
    dedupe = ["dedupe", str(cleaned), "--output", str(deduped), "--method", "exact-spans,documents"]
    return {
        "clean": (clean, cleaned),
        "dedupe": ([*dedupe, "--memory-budget", budget, *more], deduped),
    }


def summary(table: Path, seconds: dict[str, float], folders: dict[str, Path]) -> None:
    """Print a line per stage, and the tallies."""
    with table.open() as file:
        rows = list(csv.DictReader(file))
    print(f"{'stage':8} {'seconds':>8} {'text MB/s':>10} {'peak PSS':>10} {'peak RSS':>10}")
    for stage, duration in seconds.items():
        samples = [row for row in rows if row["stage"] == stage]
        statistics = json.loads((folders[stage] / "manifest.json").read_text())["statistics"]
        rate = statistics["text_bytes_in"] / 1e6 / duration
        peaks = (max(float(row[name]) for row in samples) for name in ("pss_mb", "rss_mb"))
        print(f"{stage:8} {duration:8.0f} {rate:10.1f} " + " ".join(f"{peak:7.0f} MB" for peak in peaks))
    for stage, folder in folders.items():
        print(f"{stage}: {json.dumps(json.loads((folder / 'manifest.json').read_text())['tallies'])}")


def plot(table: Path, target: Path) -> None:
    """Memory and throughput over time."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with table.open() as file:
        rows = list(csv.DictReader(file))
    figure, (memory, work) = pyplot.subplots(2, 1, sharex=True, figsize=(8, 5))
    for stage in dict.fromkeys(row["stage"] for row in rows):
        samples = [row for row in rows if row["stage"] == stage]
        seconds = [float(row["seconds"]) for row in samples]
        memory.plot(seconds, [float(row["pss_mb"]) for row in samples], label=stage)
        read = [float(row["read_mb"]) for row in samples]
        window = 10
        rates = [(read[k] - read[max(0, k - window)]) / window for k in range(len(read))]
        work.plot(seconds, rates, label=stage)
    memory.set_ylabel("memory, MB (PSS)")
    memory.set_ylim(bottom=0)
    memory.legend()
    work.set_ylabel("read from files, MB/s")
    work.set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(target)


def main() -> None:
    """Run, watch, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--budget", default="4096", help="MB")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    given.scratch.mkdir(parents=True, exist_ok=True)
    planted = json.loads(planted_path(given.source).read_text())
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {pyarrow.__version__=}")
    print(f"input: {planted}; {given.workers} workers, budget {given.budget} MB")
    commands = stages(given.source, given.scratch, given.workers, given.budget)
    table, began, seconds = given.scratch / "soak.csv", time.monotonic(), {}
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(FIELDS)
        for stage, (words, output) in commands.items():
            seconds[stage] = watch(stage, words, output, began, rows)
    summary(table, seconds, {stage: folder for stage, (_, folder) in commands.items()})
    if given.plot:
        plot(table, given.plot)


if __name__ == "__main__":
    main()
