"""Small document shards with duplicates, written as a finished stage would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpusforge.schemas import DOCUMENTS
from corpusforge.shards import ShardWriter
from corpusforge.units import ShardUnit

_NOUNS = [
    "river",
    "forest",
    "mountain",
    "village",
    "teacher",
    "engine",
    "library",
    "garden",
    "window",
    "kitchen",
    "market",
    "station",
    "harbour",
    "bridge",
]
_VERBS = [
    "crosses",
    "follows",
    "remembers",
    "paints",
    "repairs",
    "describes",
    "visits",
    "measures",
    "collects",
    "guards",
]


def sentences(seed: int, count: int) -> list[str]:
    """Sentences drawn from a small set, so that some recur."""
    rng = np.random.default_rng(seed)
    nouns, verbs = rng.choice(_NOUNS, (count, 2)), rng.choice(_VERBS, count)
    numbers = rng.integers(0, 1000, count)
    return [
        f"The {a} {v} the old {b} near house number {n}."
        for (a, b), v, n in zip(nouns.tolist(), verbs.tolist(), numbers.tolist(), strict=True)
    ]


def documents(count: int, seed: int = 0) -> pa.RecordBatch:
    """Documents of 1 to 12 sentences; every third holds a passage that many share."""
    shared = [sentences(1000 + k, 4) for k in range(3)]
    texts = []
    for number in range(count):
        own = sentences(seed + number, 1 + number % 12)
        if number % 3 == 0:
            own[1:1] = shared[number % 9 // 3]
        texts.append("\n".join(own))
    columns = {
        "id": [f"{seed:016x}{n:016x}" for n in range(count)],
        "url": [f"http://example.org/{n}" for n in range(count)],
        "source": ["made"] * count,
        "position": list(range(count)),
        "timestamp": [None] * count,
        "language": ["en"] * count,
        "text": texts,
    }
    return pa.RecordBatch.from_pydict(columns, schema=DOCUMENTS)


def write_units(folder: Path, rows: pa.RecordBatch, cuts: Sequence[int]) -> list[ShardUnit]:
    """Document shards of the given numbers of rows, the last with the rest."""
    units, first = [], 0
    for number, size in enumerate([*cuts, rows.num_rows - sum(cuts)]):
        writer = ShardWriter(str(folder), f"documents/part-{number:05d}-00000.parquet", DOCUMENTS, "parquet")
        writer.write(rows.slice(first, size))
        shard = writer.finish()
        units.append(ShardUnit(number, f"{folder}/{shard.name}", shard.rows, shard.bytes))
        first += size
    return units
