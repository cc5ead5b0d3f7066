"""The text that a vocabulary's figures are taken from: a few megabytes from all over the corpus.

In: the shards of a finished stage. Out: texts with their languages. The decision: of some shards, evenly spaced, the
first batch is read, and of that the documents whose ids have the smallest hashes are taken. So the sample is the same
in every run and no document is favoured for its place in a batch, but no corpus is read whole for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import seeds, shards
from corpusforge.units import ShardUnit

SAMPLE_BYTES = 4 << 20
"""Text of a sample, about: 700 thousand words of English."""

SAMPLE_SHARDS = 64
"""Shards that are opened for it at most."""


def draw(units: Sequence[ShardUnit]) -> tuple[pa.StringArray, pa.StringArray]:
    """Texts and languages of a sample of the documents in these shards."""
    places = np.linspace(0, len(units) - 1, min(len(units), SAMPLE_SHARDS)).round().astype(int).tolist()
    drawn = [_of_shard(units[at].path, SAMPLE_BYTES // len(places)) for at in places]
    empty = pa.record_batch({"text": pa.array([], pa.string()), "language": pa.array([], pa.string())})
    table = pa.Table.from_batches([empty, *drawn]).combine_chunks()
    return table["text"].combine_chunks(), table["language"].combine_chunks()


def _of_shard(path: str, most: int) -> pa.RecordBatch:
    """Documents of the first batch in the order of their hashes until there are ``most`` bytes, one at least."""
    batch = next(iter(shards.read_shard(path)), None)
    if batch is None:
        return pa.record_batch({"text": pa.array([], pa.string()), "language": pa.array([], pa.string())})
    order = np.argsort(seeds.words(0, "vocabulary-sample", seeds.document_keys(batch["id"].to_pylist())))
    lengths = pc.binary_length(batch["text"]).to_numpy()[order].astype(np.int64)
    chosen = order[np.append(0, np.cumsum(lengths))[:-1] < most]
    return pa.record_batch({name: batch[name].take(pa.array(chosen)) for name in ("text", "language")})
