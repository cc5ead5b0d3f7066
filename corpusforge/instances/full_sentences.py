"""full-sentences: as many whole sentences as fit, across documents (RoBERTa, section 4.2; fairseq: complete).

Comes in: a Source. Goes out: the Source with a separator between its documents, and a Plan of one-segment instances
over it. The decision: once the separators stand in the text, filling across documents is filling one long document
(`doc_sentences.fill`), except that no instance begins or ends with a separator.

Which documents meet in an instance depends on the order of the corpus: instances never reach across a batch of TOKENS
(some two million tokens of one shard), so the last of each is short, and shards cut otherwise give other instances.
"""

from __future__ import annotations

import dataclasses
from typing import cast

import numpy as np

from corpusforge.arrays import I64
from corpusforge.instances.doc_sentences import fill, pieces_of
from corpusforge.instances.masking import Ids
from corpusforge.instances.plan import Plan, single
from corpusforge.instances.source import Source


def join_documents(source: Source, separator: int) -> Source:
    """The same documents with ``separator`` in front of each but the first; it is in no sentence, and an empty document
    has none."""
    shift = _rank(source)
    begins = source.token_offsets[:-1][np.diff(shift, prepend=0) > 0]
    ids = cast(Ids, np.insert(source.ids, begins, separator))
    moved = shift[source.documents]
    word_starts = None if source.word_starts is None else np.insert(source.word_starts, begins, True)
    return Source(ids, source.starts + moved, source.ends + moved, source.offsets, source.keys, word_starts)


def plan_full_sentences(joined: Source, length: int) -> Plan:
    """Blocks of at most ``length - 2`` tokens, separators included."""
    starts, ends, document = pieces_of(joined, length - 2)
    first, stops = fill(starts, ends, length - 2, np.full(len(ends), len(ends)))
    home, last = document[first], document[stops - 1]
    plan = single(home, starts[first], ends[stops - 1] - starts[first])
    shift = _rank(joined)
    return dataclasses.replace(plan, last_document=last, separators=shift[last] - shift[home])


def _rank(source: Source) -> I64:
    """For each document how many with sentences stand before it, ``[documents]``."""
    filled = np.diff(source.offsets) > 0
    return np.asarray(np.maximum(np.cumsum(filled) - 1, 0))
