"""Formats of one segment: as many whole sentences as fit, of one document or across documents (RoBERTa, section 4.2).

`doc-sentences` (fairseq: complete_doc): the instances of a document hold each of its tokens exactly once. A sentence
longer than an instance is split into parts of ``length - 2`` tokens, and its last part is filled up with the sentences
after it; fairseq lets such a block overflow, others drop the sentence.

`full-sentences` (fairseq: complete): separators are put into the text, and then filling across documents is filling one
long document, except that no instance begins or ends with a separator. Which documents share an instance depends on
the order of the corpus: instances never reach across a batch of TOKENS (some two million tokens of one shard), so the
last of each is short, and other shards give other instances.
"""

from __future__ import annotations

import dataclasses
from typing import cast

import numpy as np

from corpusforge.arrays import I64, offsets_of
from corpusforge.instances.check import check_cover, check_joined
from corpusforge.instances.formats import Format, Plan, PlanSettings, single
from corpusforge.instances.masking import Ids
from corpusforge.instances.negatives import Negatives
from corpusforge.instances.source import Source


def plan_doc_sentences(source: Source, negatives: Negatives, settings: PlanSettings, copy: int) -> Plan:
    """Blocks of at most ``length - 2`` tokens. Documents without tokens give none."""
    room = settings.length - 2
    starts, ends, document = parts_of(source, room)
    first, stops = fill(starts, ends, room, np.searchsorted(document, document, "right"))
    return single(document[first], starts[first], ends[stops - 1] - starts[first])


def fill(starts: I64, ends: I64, room: int, limit: I64) -> tuple[I64, I64]:
    """Fill blocks of ``room`` tokens with parts: the first part of each block, and the one after its last.

    ``limit``: for each part, the first one that a block with it must not hold.

    >>> starts, ends = np.array([0, 4, 9]), np.array([4, 8, 12])
    >>> [a.tolist() for a in fill(starts, ends, 8, np.array([3, 3, 3]))]
    [[0, 2], [2, 3]]
    """
    # For each part: if a block began with it, the first part that would no longer be in the block.
    first = follow(np.minimum(np.searchsorted(ends, starts + room, "right"), limit))
    return first, np.append(first[1:], len(ends))[: len(first)]


def follow(successors: I64) -> I64:
    """The walk 0, successors[0], successors[successors[0]], ... until it leaves the array.

    A Python loop with a reason: where a block begins depends on where the one before it ended. One list look-up a
    block (about 50 ns) against some hundred tokens each; everything else is done for all blocks at once.

    >>> follow(np.array([2, 9, 3, 5, 9])).tolist()
    [0, 2, 3]
    """
    table = successors.tolist()
    size, visited, at = len(table), [], 0
    while at < size:
        visited.append(at)
        at = table[at]
    return np.array(visited, np.int64)


def parts_of(source: Source, room: int) -> tuple[I64, I64, I64]:
    """Where sentences start and end when none may exceed ``room`` tokens, and the document of each part."""
    lengths = source.ends - source.starts
    if not len(lengths) or lengths.max() <= room:
        return source.starts, source.ends, source.documents
    count = -(-lengths // room)
    offsets = offsets_of(count)
    ordinal = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
    starts = np.repeat(source.starts, count) + ordinal * room
    return starts, np.minimum(starts + room, np.repeat(source.ends, count)), np.repeat(source.documents, count)


def join_documents(source: Source, separator: int) -> Source:
    """The same documents with ``separator`` before each but the first; it is in no sentence, and an empty document
    has none."""
    shift = _rank(source)
    begins = source.token_offsets[:-1][np.diff(shift, prepend=0) > 0]
    ids = cast(Ids, np.insert(source.ids, begins, separator))
    moved = shift[source.documents]
    word_starts = None if source.word_starts is None else np.insert(source.word_starts, begins, True)
    return Source(ids, source.starts + moved, source.ends + moved, source.offsets, source.keys, word_starts)


def plan_full_sentences(joined: Source, negatives: Negatives, settings: PlanSettings, copy: int) -> Plan:
    """Blocks of at most ``length - 2`` tokens, separators included."""
    starts, ends, document = parts_of(joined, settings.length - 2)
    first, stops = fill(starts, ends, settings.length - 2, np.full(len(ends), len(ends)))
    home, last = document[first], document[stops - 1]
    plan = single(home, starts[first], ends[stops - 1] - starts[first])
    shift = _rank(joined)
    return dataclasses.replace(plan, last_document=last, separators=shift[last] - shift[home])


def _rank(source: Source) -> I64:
    """For each document, how many documents with sentences come before it, ``[documents]``."""
    filled = np.diff(source.offsets) > 0
    return np.asarray(np.maximum(np.cumsum(filled) - 1, 0))


FORMATS = {
    "doc-sentences": Format(
        plan_doc_sentences, check=lambda source, plan, negatives, settings: check_cover(source, plan)
    ),
    "full-sentences": Format(
        plan_full_sentences,
        check=lambda source, plan, negatives, settings: check_joined(source, plan, settings.separator),
        join=lambda source, settings: join_documents(source, settings.separator),
    ),
}
