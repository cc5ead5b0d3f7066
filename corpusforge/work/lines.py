"""The method `lines`, unit by unit: hash a document shard's lines, then cut those that repeat.

Comes in: document shards (a unit is one shard). Goes out: as for exact spans (`work.dedupe`), with lines in their
place. The one decision: sentences of what is left are counted in the first characters of a text before its whole.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import Bools
from corpusforge.clean.sentences import SentenceCounter
from corpusforge.dedupe.cut import Cut, Cuts
from corpusforge.dedupe.lines import cut_lines, hash_lines
from corpusforge.work.dedupe import CutWork, HashWork

GLANCE = 1000
"""Characters that hold enough sentences of nearly every page (own measurement)."""


@dataclasses.dataclass(frozen=True)
class HashLinesWork(HashWork):
    """Writes the line hashes of a document shard."""

    def hash(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """SPANS of a batch."""
        return hash_lines(documents, survivor=self.survivor)


@dataclasses.dataclass(frozen=True)
class CutLinesWork(CutWork):
    """Writes what stays of a document shard. ``counter``: counts the sentences that are left."""

    counter: SentenceCounter = dataclasses.field(default_factory=lambda: SentenceCounter("builtin"))

    def cut(self, documents: pa.RecordBatch, rows: pa.RecordBatch, cuts: Cuts, keep_pieces: bool) -> Cut:
        """What stays of a batch. ``rows``: its SPANS."""
        enough = functools.partial(enough_sentences, self.counter, self.min_sentences) if self.min_sentences else None
        return cut_lines(documents, rows, cuts, enough=enough, min_words=self.min_words, keep_pieces=keep_pieces)


def enough_sentences(counter: SentenceCounter, needed: int, texts: pa.StringArray) -> Bools:
    """Whether each text has ``needed`` sentences.

    >>> enough_sentences(SentenceCounter("builtin"), 2, pa.array(["One. Two.", "One and two."])).tolist()
    [True, False]
    """
    found = np.zeros(len(texts), np.bool_)
    begins = pc.utf8_slice_codeunits(texts, 0, GLANCE)
    # One sentence more in the beginning: where it is cut off, the last decision might be another one.
    found[:] = counter.enough(begins, np.arange(len(texts) + 1), needed + 1)
    unsure = np.flatnonzero(~found)
    found[unsure] = counter.enough(texts.take(pa.array(unsure)), np.arange(len(unsure) + 1), needed)
    return found
