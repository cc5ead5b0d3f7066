"""Peak memory against the size of the input: clean and build-instances on one input and on ten times as much.

    python benchmarks/peak_memory.py ../shared/data/text_en/enwiki2018-dev.jsonl.gz [--megabytes 48] [--workers 1]

Prints the machine, the versions, and for each stage the peak of the summed RSS of all its processes, as the stages
write it to timing.json. The input is the named JSONL file, its documents repeated until the size is reached.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow

QUICK = ["--detector", "fast", "--sentences", "builtin", "--badwords", "off", "--quiet"]


def write_input(source: Path, folder: Path, size: int) -> Path:
    """JSONL files of 16 MB each, ``size`` bytes in all; repeated documents get a number, so that none is a copy."""
    folder.mkdir(parents=True)
    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rt", encoding="utf-8") as file:  # type: ignore[operator]
        texts = [json.loads(line)["text"] for line in file]
    written, number, file = 0, 0, None
    while written < size:
        if written >= number * (16 << 20):
            file = (folder / f"part-{number:04d}.jsonl").open("w")
            number += 1
        line = json.dumps({"text": f"This is document {written}.\n{texts[written % len(texts)]}"}) + "\n"
        assert file is not None
        file.write(line)
        written += len(line)
    return folder


def command(*words: str) -> None:
    """Run the command line."""
    subprocess.run([sys.executable, "-m", "corpusforge", *words], check=True, stdout=subprocess.DEVNULL)


def peak(folder: Path) -> float:
    """Peak MiB of a stage."""
    return float(json.loads((folder / "timing.json").read_text())["peak_rss"]) / 2**20


def measure(source: Path, scratch: Path, size: int, workers: str, vocab: Path | None) -> tuple[dict[str, float], Path]:
    """Peaks of both stages on ``size`` bytes of input; a vocabulary is learned where none is given."""
    raw = write_input(source, scratch / "in", size)
    more = ["--workers", workers, "--quiet"]
    cleaned, built = scratch / "clean", scratch / "instances"
    command("clean", str(raw), "--output", str(cleaned), *QUICK, "--workers", workers)
    if vocab is None:
        vocab = scratch / "vocab"
        command("train-vocab", str(cleaned), "--output", str(vocab), "--size", "8192", *more)
    for name, options in {"doc-sentences": [], "segment-pair": ["--masking", "static"]}.items():
        where = ["build-instances", str(cleaned), "--vocab", str(vocab), "--output", f"{built}-{name}"]
        command(*where, "--format", name, "--set", "instances.donor_megabytes=16", *options, *more)
    peaks = {"clean": peak(cleaned)}
    peaks |= {f"build-instances {n}": peak(Path(f"{built}-{n}")) for n in ("doc-sentences", "segment-pair")}
    return peaks, vocab


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--megabytes", type=int, default=48, help="size of the smaller input")
    parser.add_argument("--workers", default="1")
    given = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, pyarrow {pyarrow.__version__}")
    print(f"input: {given.source.name}, {given.megabytes} and {10 * given.megabytes} MB, {given.workers} worker(s)")
    with tempfile.TemporaryDirectory() as folder:
        one, vocab = measure(given.source, Path(folder) / "one", given.megabytes << 20, given.workers, None)
        ten, _ = measure(given.source, Path(folder) / "ten", given.megabytes * 10 << 20, given.workers, vocab)
    for name, before in one.items():
        print(f"{name:32} {before:8.0f} MiB {ten[name]:8.0f} MiB  {ten[name] / before - 1:+.1%}")


if __name__ == "__main__":
    main()
