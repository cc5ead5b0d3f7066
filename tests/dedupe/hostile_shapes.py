"""A program of its own: writes a corpus of a hostile shape, deduplicates it, and prints its own peak memory as JSON.

python hostile_shapes.py SHAPE METHOD MEGABYTES SHARE FOLDER, where SHARE scales all counts
"""

from __future__ import annotations

import json
import multiprocessing
import random
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpusforge import schemas, shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.dedupe import methods
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit

ROWS = 10_000
WORDS = ("river", "forest", "hill", "teacher", "engine", "garden", "window", "market", "station", "bridge", "harbour")


def sentence(dice: random.Random) -> str:
    return f"The {' '.join(dice.choices(WORDS, k=12))} {dice.randrange(10**9)}."


def texts(shape: str, share: float) -> Iterator[list[str]]:
    """Texts, as many at a time as are written at once; ``share`` of the counts in the name of the shape."""
    dice = random.Random(5)
    if shape == "one-large-document":
        lines = "\n".join(" ".join(sentence(dice) for _ in range(5)) for _ in range(int(105_000 * share)))
        size, again = int(50_000_000 * share), int((1 << 20) * share)
        yield [f"{lines[: size - again - 1]}\n{lines[:again]}"]
    elif shape == "a-million-lines":
        for first in range(0, int(1_000_000 * share), ROWS):
            yield [f"Line number {n // 2}, and no more." for n in range(first, first + ROWS)]
    elif shape == "a-hundred-thousand-copies":
        page = "\n".join(" ".join(sentence(dice) for _ in range(6)) for _ in range(3))
        for _ in range(int(100_000 * share) // ROWS):
            yield [page] * ROWS
    elif shape == "two-million-short-sentences":
        letters = np.random.default_rng(5).integers(ord("a"), ord("z") + 1, (int(2_222_222 * share), 9), np.uint8)
        letters[:, 0] -= ord("a") - ord("A")
        letters[:, 7:] = list(b". ")
        yield [letters.tobytes().decode()]
    elif shape == "one-sentence-a-million-times":
        yield ["Over and over again. " * int(1_000_000 * share)]
    else:
        yield ["", " ", "\n\n", "One.", "One sentence only.", "...", "* * *", "One sentence only.", ""] * 100
        yield [""] * ROWS
        yield []


def peak_bytes() -> int:
    """The most memory this program has held; getrusage(2) begins at the size of the program that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def write(shape: str, share: float, folder: str) -> list[ShardUnit]:
    """One shard of documents."""
    writer, position = shards.ShardWriter(folder, "documents/part-00000-00000.parquet", schemas.DOCUMENTS, "parquet"), 0
    for batch in texts(shape, share):
        positions = np.arange(position, position + len(batch))
        values = {
            "id": pa.array([f"{n:032x}" for n in positions.tolist()], pa.string()),
            "source": pa.array(["s"] * len(batch), pa.string()),
            "position": pa.array(positions),
            "text": pa.array(batch, pa.string()),
        }
        columns = [values.get(f.name, pa.nulls(len(batch), f.type)) for f in schemas.DOCUMENTS]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=schemas.DOCUMENTS))
        position += len(batch)
    shard = writer.finish()
    return [ShardUnit(0, shards.join(folder, shard.name), shard.rows, shard.bytes)]


if __name__ == "__main__":
    shape, method, megabytes, share, folder = sys.argv[1:]
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # what writing takes is not counted
        units = pool.apply(write, (shape, float(share), f"{folder}/in"))
    settings = Dedupe(method=(method,), sentences="builtin", memory_megabytes=int(megabytes), min_sentences=1)
    done = methods.run(BeamEngine(1), settings, units, f"{folder}/out", Silent())
    peak = peak_bytes()
    print(json.dumps({"peak": peak, "statistics": done.statistics, "tallies": done.tallies}))
