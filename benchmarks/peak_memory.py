"""Peak memory against the size of the input: clean, dedupe and build-instances on one input and on ten times as much.

    python benchmarks/peak_memory.py [--data ../shared/data] [--megabytes 48] [--workers 1] [--budget 512]

Prints the machine, the versions, and for each stage the peak of the summed RSS of all its processes, as the stages
write it to timing.json. The input is that of ``soak_corpus.py``: pages of recombined sentences with planted duplicates,
different ones in the two inputs.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow
from soak_corpus import CHINESE, ENGLISH, Pages, sentences_of, write

NEGATIVES = ["--set", "instances.negatives_megabytes=16"]
FORMATS = {
    "doc-sentences": [],
    "segment-pair": ["--masking", "static", *NEGATIVES],
    "sentence-pair": ["--masking", "static", "--mask-unit", "whole-word", *NEGATIVES],
}
"""Formats of build-instances, with further flags."""

METHODS = ("lines", "exact-spans", "near-spans", "documents")
QUICK = ["--detector", "fast", "--sentences", "builtin", "--badwords", "off", "--quiet"]


def command(*words: str) -> None:
    """Run the command line."""
    subprocess.run([sys.executable, "-m", "corpusforge", *words], check=True, stdout=subprocess.DEVNULL)


def peak(folder: Path) -> float:
    """Peak MiB of a stage."""
    return float(json.loads((folder / "timing.json").read_text())["peak_rss"]) / 2**20


def measure(
    pages: Pages, scratch: Path, size: int, workers: str, budget: str, vocab: Path | None
) -> tuple[dict[str, float], Path]:
    """Peaks of the stages on ``size`` bytes of input; a vocabulary is learned if none is given."""
    raw = scratch / "in"
    write(pages, raw, size)
    more = ["--workers", workers, "--quiet"]
    cleaned, built = scratch / "clean", scratch / "instances"
    command("clean", str(raw), "--output", str(cleaned), *QUICK, "--workers", workers)
    if vocab is None:
        vocab = scratch / "vocab"
        command("train-vocab", str(cleaned), "--output", str(vocab), "--size", "8192", *more)
    for name, options in FORMATS.items():
        build = ["build-instances", str(cleaned), "--vocab", str(vocab), "--output", f"{built}-{name}"]
        command(*build, "--format", name, *options, *more)
    for method in METHODS:
        dedupe = ["dedupe", str(cleaned), "--output", f"{scratch}/{method}", "--method", method]
        sentences = ["--sentences", "builtin"] if method == "lines" else []
        command(*dedupe, *sentences, "--memory-budget", budget, *more)
    peaks = {"clean": peak(cleaned)}
    peaks |= {f"dedupe {method}": peak(scratch / method) for method in METHODS}
    peaks |= {f"build-instances {n}": peak(Path(f"{built}-{n}")) for n in FORMATS}
    return peaks, vocab


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--megabytes", type=int, default=48, help="size of the smaller input")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--budget", default="512", help="MB that dedupe may take, for either input")
    given = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, pyarrow {pyarrow.__version__}")
    print(f"input: {given.megabytes} and {10 * given.megabytes} MB, {given.workers} worker(s)")
    print(f"dedupe within {given.budget} MB")
    english, chinese = sentences_of(given.data / "text_en", ENGLISH), sentences_of(given.data / "text_zh", CHINESE)
    with tempfile.TemporaryDirectory() as folder:
        one, vocab = measure(
            Pages(english, chinese, 0), Path(folder) / "one", given.megabytes << 20, given.workers, given.budget, None
        )
        ten, _ = measure(
            Pages(english, chinese, 1),
            Path(folder) / "ten",
            given.megabytes * 10 << 20,
            given.workers,
            given.budget,
            vocab,
        )
    for name, before in one.items():
        print(f"{name:32} {before:8.0f} MiB {ten[name]:8.0f} MiB  {ten[name] / before - 1:+.1%}")


if __name__ == "__main__":
    main()
