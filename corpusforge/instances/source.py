"""TOKENS as flat arrays, which every format reads, and the limit of their sentences.

All ids of a batch are one array, with the end of each sentence in it and the sentences of each document; an instance is
then two ranges of that array. Long sentences are truncated or dropped in the token ids, before documents become
negatives or instances, so every format and both segments see the same text.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools, offsets_of, ranges
from corpusforge.instances.masking import Ids


class Source(NamedTuple):
    """Documents as flat arrays.

    ``ids``: ``[tokens]``; ``starts`` and ``ends``: ``[sentences]``, positions in ``ids`` of each sentence's first token
    and after its last;
    ``offsets``: ``[documents + 1]``, document i owns sentences ``offsets[i]`` to ``offsets[i + 1]``; ``keys``:
    ``[documents]``, `seeds.document_keys`; ``word_starts``: ``[tokens]``, None where they are not in the batch.
    """

    ids: Ids
    starts: I64
    ends: I64
    offsets: I64
    keys: U64
    word_starts: Bools | None = None

    @property
    def documents(self) -> I64:
        """``[sentences]``: the document of each."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))

    @property
    def token_offsets(self) -> I64:
        """``[documents + 1]``: document i owns ``ids[token_offsets[i]:token_offsets[i + 1]]``."""
        return np.concatenate((np.zeros(1, np.int64), self.ends))[self.offsets]


def list_column(column: Any) -> tuple[npt.NDArray[Any], I64]:
    """Values and ``n + 1`` offsets of a list column without nulls, offsets counted from 0; values are not copied."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    values = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])).to_numpy(zero_copy_only=False)
    return values, offsets - offsets[0]


def read_source(tokens: pa.RecordBatch) -> Source:
    """The documents of a TOKENS batch."""
    ids, _ = list_column(tokens.column("ids"))
    lengths, offsets = list_column(tokens.column("sentences"))
    keys = seeds.document_keys(tokens.column("document").to_pylist())
    ends = np.cumsum(lengths, dtype=np.int64)
    word_starts = list_column(tokens.column("word_starts"))[0] if "word_starts" in tokens.schema.names else None
    return Source(ids, ends - lengths, ends, offsets, keys, word_starts)


@dataclasses.dataclass(frozen=True)
class SentenceLimit:
    """``longest``: tokens of a sentence that fits into an instance; ``policy``: how longer ones are treated.

    ``keep``, the default, loses nothing: formats of one segment continue such a sentence in the next instance, and
    pairs shorten the longer segment. ``truncate`` keeps the beginning of the sentence, ``drop`` leaves it out.
    """

    longest: int
    policy: str = "keep"

    def __call__(self, tokens: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
        """TOKENS under this limit, and the statistics sentences_too_long and tokens_too_long (tokens removed).

        A document may be left without sentences.
        """
        lengths, sentence_offsets = list_column(tokens.column("sentences"))
        sizes = lengths.astype(np.int64)
        is_long = sizes > self.longest
        statistics = {"sentences_too_long": int(is_long.sum()), "tokens_too_long": 0}
        if self.policy == "keep" or not is_long.any():
            return tokens, statistics
        kept = np.where(is_long, self.longest if self.policy == "truncate" else 0, sizes)
        statistics["tokens_too_long"] = int((sizes - kept).sum())
        chosen = pa.array(ranges(offsets_of(sizes)[:-1], kept))
        sentences = np.concatenate(([0], np.cumsum(kept > 0)))[sentence_offsets]
        bounds = offsets_of(kept)[sentence_offsets]
        limited = pa.ListArray.from_arrays(pa.array(sentences, pa.int32()), pa.array(kept[kept > 0], pa.int32()))
        columns = {"ids": _lists(tokens.column("ids"), chosen, bounds), "sentences": limited}
        if "word_starts" in tokens.schema.names:
            columns["word_starts"] = _lists(tokens.column("word_starts"), chosen, bounds)
        arrays = [columns.get(name, tokens.column(name)) for name in tokens.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=tokens.schema), statistics


def _lists(column: pa.ListArray, chosen: pa.Array, bounds: I64) -> pa.ListArray:
    """The chosen values of a list column, in rows that end at ``bounds``."""
    values = column.flatten().take(chosen)
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values)
