"""TOKENS as flat arrays: what every format reads.

Comes in: a TOKENS batch. Goes out: all ids in one array, where each sentence ends in it, and which sentences belong
to which document. An instance is then two ranges of that array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools
from corpusforge.instances.masking import Ids


class Source(NamedTuple):
    """Documents as flat arrays.

    ``ids``: ``[tokens]``; ``starts`` and ``ends``: ``[sentences]``, positions in ``ids`` of each sentence's first token
    and behind its last;
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
