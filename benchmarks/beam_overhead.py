"""What Beam costs locally: the clean stage through it against plain loops over the same work.

    python benchmarks/beam_overhead.py --input ../shared/data/text_en/enwiki2018-dev.jsonl.gz --copies 8 --repeats 3

Four ways, each in a fresh process and timed from its start, imports included: a plain loop over the units; a plain
`multiprocessing.Pool` of two; the engine with one worker; the engine with two. Medians; the outputs must be equal.
Aims: the engine with two workers at least 1.6 times the engine with one, and neither more than 15 % slower than the
plain way of the same width.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpusforge import content, shards

WAYS = ("loop", "pool-2", "engine-1", "engine-2")


def work_and_units(pages: str, output: str, unit_bytes: int) -> tuple[Any, list[Any]]:
    """The clean stage with what needs nothing fetched."""
    from corpusforge.clean.cleaner import cleaner_of
    from corpusforge.clean.work import CleanWork
    from corpusforge.documents.plan import plan_units
    from corpusforge.documents.records import ReadOptions
    from corpusforge.sections import Clean

    cleaner = cleaner_of(Clean(detector="fast", sentences="builtin", badwords="off"))
    units = plan_units([pages], unit_bytes=unit_bytes)
    return CleanWork(output, ReadOptions(), cleaner, 64 << 20, True), units


def silent(_: int) -> None:
    """No progress."""


def run(way: str, pages: str, output: str, unit_bytes: int) -> None:
    """One way, in this process."""
    work, units = work_and_units(pages, output, unit_bytes)
    kind, _, workers = way.partition("-")
    if kind == "loop":
        for unit in units:
            work(unit, silent)
    elif kind == "pool":
        with multiprocessing.get_context("fork").Pool(int(workers)) as pool:
            pool.starmap(work, [(unit, silent) for unit in units], chunksize=1)
    else:
        from corpusforge.beam.engine import BeamEngine
        from corpusforge.documents.plan import unit_size
        from corpusforge.progress import Silent

        run(BeamEngine(int(workers)), work, units, [unit_size(u) for u in units], output, Silent())


def measure(way: str, pages: str, unit_bytes: int) -> tuple[float, str, int]:
    """Seconds of a fresh process, content digest of what it kept, bytes of text it read."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, __file__, "--way", way, "--input", pages, "--output", output]
        began = time.perf_counter()
        subprocess.run([*command, "--unit-bytes", str(unit_bytes)], check=True)
        seconds = time.perf_counter() - began
        tables, _, counted = shards.gather(shards.load_entries(output))
    return seconds, content.combine(shard.content for shard in tables["documents"]), counted["text_bytes_in"]


def compare(pages: str, unit_bytes: int, repeats: int) -> None:
    """All ways in turn, ``repeats`` times over; prints a table."""
    seen: dict[str, list[float]] = {way: [] for way in WAYS}
    digests, size = set(), 0
    for _ in range(repeats):
        for way in WAYS:
            seconds, digest, size = measure(way, pages, unit_bytes)
            seen[way].append(seconds)
            digests.add(digest)
    if len(digests) != 1:
        sys.exit("the ways do not give the same documents")
    median = {way: statistics.median(times) for way, times in seen.items()}
    print(f"{size / 1e6:.0f} MB of text, median of {repeats}")
    for way in WAYS:
        print(f"{way:10} {median[way]:7.2f} s {size / 1e6 / median[way]:7.1f} MB/s")
    print(f"engine-2 is {median['engine-1'] / median['engine-2']:.2f} times engine-1 (aim: 1.6)")
    print(f"engine-1 takes {median['engine-1'] / median['loop'] - 1:+.0%} of loop (aim: at most +15 %)")
    print(f"engine-2 takes {median['engine-2'] / median['pool-2'] - 1:+.0%} of pool-2 (aim: at most +15 %)")


def main() -> None:
    """Read the flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="a folder or file of raw pages")
    parser.add_argument("--copies", type=int, default=1, help="how often the input is taken, for longer runs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--unit-bytes", type=int, default=8 << 20)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        run(given.way, given.input, given.output, given.unit_bytes)
        return
    with tempfile.TemporaryDirectory() as folder:
        for copy in range(given.copies):
            named = Path(given.input)
            for path in [named] if named.is_file() else sorted(p for p in named.rglob("*") if p.is_file()):
                link = Path(folder) / str(copy) / (path.name if named.is_file() else path.relative_to(named))
                link.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, link)  # a real copy: one file under two names is read once
        compare(folder, given.unit_bytes, given.repeats)


if __name__ == "__main__":
    main()
