"""What the engine costs on one machine: the clean stage through it against plain loops over the same work.

    python benchmarks/beam_overhead.py --input ../shared/data/text_en/enwiki2018-dev.jsonl.gz --copies 8 --repeats 3

Four variants, each in a fresh process and timed from its start, imports included: a plain loop over the units; a plain
`multiprocessing.Pool` of two; the engine with one worker; the engine with two. The local engine maps units without
Beam. Medians of seconds on the clock and of processor seconds, which a busy machine changes less (the workers of the
engine with two are not its children, so theirs are not known); the outputs must be equal. Aims: the engine with two
workers at least 1.6 times as fast as with one, and neither more than 15 % slower than the plain variant of the same
width.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpusforge import content, shards

VARIANTS = ("loop", "pool-2", "engine-1", "engine-2")


def work_and_units(pages: str, output: str, unit_bytes: int) -> tuple[Any, list[Any]]:
    """The clean stage, with options that need no download."""
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


def run(variant: str, pages: str, output: str, unit_bytes: int) -> None:
    """Run one variant in this process."""
    work, units = work_and_units(pages, output, unit_bytes)
    kind, _, workers = variant.partition("-")
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

        sizes = [unit_size(unit) for unit in units]
        BeamEngine(int(workers)).map(work, units, sizes, label="clean", folder=output, progress=Silent())


def processor_seconds() -> float:
    """Processor seconds of all ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(variant: str, pages: str, unit_bytes: int) -> tuple[float, float, str, int]:
    """Seconds and processor seconds of a fresh process, content digest of what it kept, bytes of text it read."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, __file__, "--variant", variant, "--input", pages, "--output", output]
        began, processor_before = time.perf_counter(), processor_seconds()
        subprocess.run([*command, "--unit-bytes", str(unit_bytes)], check=True)
        seconds, processor = time.perf_counter() - began, processor_seconds() - processor_before
        tables, _, counted = shards.gather(shards.load_entries(output))
    return seconds, processor, content.combine(shard.content for shard in tables["documents"]), counted["text_bytes_in"]


def compare(pages: str, unit_bytes: int, repeats: int) -> None:
    """Run all variants in turn, ``repeats`` times; print a table."""
    seconds_of: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    processor_of: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    digests, size = set(), 0
    for _ in range(repeats):
        for variant in VARIANTS:
            seconds, processor, digest, size = measure(variant, pages, unit_bytes)
            seconds_of[variant].append(seconds)
            processor_of[variant].append(processor)
            digests.add(digest)
    if len(digests) != 1:
        sys.exit("the variants do not keep the same documents")
    print(f"{size / 1e6:.0f} MB of text, median of {repeats}")
    clock = {variant: statistics.median(values) for variant, values in seconds_of.items()}
    processor_median = {variant: statistics.median(values) for variant, values in processor_of.items()}
    for variant in VARIANTS:
        known = f"{processor_median[variant]:7.2f} processor seconds" if variant != "engine-2" else ""
        print(f"{variant:10} {clock[variant]:7.2f} s {size / 1e6 / clock[variant]:7.1f} MB/s {known}")
    print(f"engine-2 is {clock['engine-1'] / clock['engine-2']:.2f} times as fast as engine-1 (aim: 1.6)")
    print(f"engine-1 takes {clock['engine-1'] / clock['loop'] - 1:+.0%} of loop (aim: at most +15 %),")
    print(f"  by processor seconds {processor_median['engine-1'] / processor_median['loop'] - 1:+.0%}")
    print(f"engine-2 takes {clock['engine-2'] / clock['pool-2'] - 1:+.0%} of pool-2 (aim: at most +15 %)")


def main() -> None:
    """Copy the input and compare the variants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="a folder or file of raw pages")
    parser.add_argument("--copies", type=int, default=1, help="copies of the input, for longer runs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--unit-bytes", type=int, default=8 << 20)
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.variant:
        run(given.variant, given.input, given.output, given.unit_bytes)
        return
    with tempfile.TemporaryDirectory() as folder:
        for copy in range(given.copies):
            source, target = Path(given.input), Path(folder) / str(copy)
            target.mkdir()  # real copies: a file under two names is read only once
            if source.is_file():
                shutil.copy(source, target)
            else:
                shutil.copytree(source, target, dirs_exist_ok=True)
        compare(folder, given.unit_bytes, given.repeats)


if __name__ == "__main__":
    main()
