"""TOKENS batches made of sentence lengths, for all tests of this room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import schemas
from corpusforge.instances.builder import Builder
from corpusforge.instances.masking import Specials
from corpusforge.instances.negatives import Negatives, candidates_of, negatives_table, take_negatives
from corpusforge.instances.source import read_source

SIZE = 30_528
SPECIALS = Specials(SIZE, pad=0, unk=100, cls=101, sep=102, mask=103, unused=(1, 2, 3, *range(30_400, SIZE)))


def tokens_of(lengths: Sequence[Sequence[int]], names: Sequence[str] | None = None, seed: int = 0) -> pa.RecordBatch:
    """Documents with sentences of these lengths; ids are random words."""
    flat = [n for document in lengths for n in document]
    ids = np.random.default_rng(seed).integers(1000, 30_000, sum(flat)).astype(np.uint16)
    sentence_offsets = np.concatenate(([0], np.cumsum([len(d) for d in lengths]))).astype(np.int32)
    token_offsets = np.concatenate(([0], np.cumsum([sum(d) for d in lengths]))).astype(np.int32)
    columns = [
        pa.array(list(names or [f"document-{i}" for i in range(len(lengths))]), pa.string()),
        pa.ListArray.from_arrays(pa.array(token_offsets), pa.array(ids)),
        pa.ListArray.from_arrays(pa.array(sentence_offsets), pa.array(np.array(flat, np.int32))),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schemas.tokens_schema(SIZE))


def random_corpus(documents: int = 800, longest: int = 60, seed: int = 7) -> pa.RecordBatch:
    """Documents of 1 to 40 sentences of 1 to ``longest`` tokens; one in twenty has no sentence."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 41, documents) * (rng.random(documents) > 0.05)
    return tokens_of([rng.integers(1, longest + 1, n).tolist() for n in counts], seed=seed)


def all_negatives(tokens: pa.RecordBatch, seed: int = 0) -> Negatives:
    """All documents as negatives."""
    source = read_source(tokens)
    limit = candidates_of(source, seed, 1 << 40).limit(1 << 40)
    return Negatives(negatives_table([take_negatives(source, seed, limit)], SIZE))


def instances_of(builder: Builder, tokens: pa.RecordBatch, copy: int = 0) -> pa.RecordBatch:
    """The instances of one copy in one INSTANCES batch."""
    batches = [built.instances for built in builder.copies(tokens, copy + 1)]
    table = pa.Table.from_batches(batches, builder.schema)
    table = table.filter(pc.equal(table["copy"], copy)).combine_chunks()
    return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], builder.schema))


def flat(column: pa.ListArray) -> tuple[np.ndarray, np.ndarray]:
    """Values and offsets of a list column, the slow way."""
    rows = column.to_pylist()
    return np.array([v for row in rows for v in row]), np.cumsum([0] + [len(row) for row in rows])


def unmasked(batch: pa.RecordBatch) -> list[list[int]]:
    """The input ids of each row without its stored masks."""
    rows = []
    for row in batch.to_pylist():
        ids = list(row["input_ids"])
        for position, label in zip(row.get("masked_positions", []), row.get("masked_labels", []), strict=True):
            ids[position] = label
        rows.append(ids)
    return rows
