"""Sentences longer than an instance: what becomes of them before anything is built.

Comes in: a TOKENS batch. Goes out: the same documents, and how much went. The decision: it is done to the token ids of
a sentence, before documents become donors or instances, so every format and both segments see the same text.

``keep``, the default, loses nothing: doc-sentences and full-sentences cut such a sentence and go on with its rest, and
pairs shorten the longer segment. ``truncate`` keeps the beginning of the sentence, ``drop`` leaves it out.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I64, offsets_of, ranges
from corpusforge.instances.source import list_column

POLICIES = ("keep", "truncate", "drop")


@dataclasses.dataclass(frozen=True)
class SentenceLimit:
    """``longest``: tokens of a sentence that fits into an instance; ``policy``: what becomes of longer ones."""

    longest: int
    policy: str = "keep"

    def __call__(self, tokens: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
        """`limit_sentences` with these settings."""
        return limit_sentences(tokens, self.longest, self.policy)


def limit_sentences(tokens: pa.RecordBatch, longest: int, policy: str) -> tuple[pa.RecordBatch, dict[str, int]]:
    """TOKENS whose sentences have at most ``longest`` tokens, unless ``policy`` is "keep"; counts of what was too long.

    A document may be left without sentences. Statistics: sentences_too_long, tokens_too_long (those that went).
    """
    lengths, sentence_offsets = list_column(tokens.column("sentences"))
    sizes = lengths.astype(np.int64)
    is_long = sizes > longest
    counted = {"sentences_too_long": int(is_long.sum()), "tokens_too_long": 0}
    if policy == "keep" or not is_long.any():
        return tokens, counted
    kept = np.where(is_long, longest if policy == "truncate" else 0, sizes)
    counted["tokens_too_long"] = int((sizes - kept).sum())
    chosen = pa.array(ranges(offsets_of(sizes)[:-1], kept))
    sentences = np.concatenate(([0], np.cumsum(kept > 0)))[sentence_offsets]
    bounds = offsets_of(kept)[sentence_offsets]
    columns = {
        "ids": _lists(tokens.column("ids"), chosen, bounds),
        "sentences": pa.ListArray.from_arrays(pa.array(sentences, pa.int32()), pa.array(kept[kept > 0], pa.int32())),
    }
    if "word_starts" in tokens.schema.names:
        columns["word_starts"] = _lists(tokens.column("word_starts"), chosen, bounds)
    arrays = [columns.get(name, tokens.column(name)) for name in tokens.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=tokens.schema), counted


def _lists(column: pa.ListArray, chosen: pa.Array, bounds: I64) -> pa.ListArray:
    """The chosen values of a list column, in rows that end at ``bounds``."""
    values = column.flatten().take(chosen)
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values)
