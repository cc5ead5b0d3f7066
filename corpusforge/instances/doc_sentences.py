"""doc-sentences: whole sentences of one document, as many as fit (RoBERTa, section 4.2; fairseq: complete_doc).

Comes in: a Source. Goes out: a Plan of one-segment instances which together are the documents, nothing lost, nothing
twice. The one decision: a sentence longer than an instance is cut into pieces of ``length - 2`` tokens, and its last
piece is filled up with the sentences behind it; fairseq lets such a block overflow, others drop the sentence.
"""

from __future__ import annotations

import numpy as np

from corpusforge.arrays import I64, offsets_of
from corpusforge.instances.plan import Plan, single
from corpusforge.instances.source import Source


def plan_doc_sentences(source: Source, length: int) -> Plan:
    """Blocks of at most ``length - 2`` tokens. Documents without tokens give none."""
    room = length - 2
    starts, ends, document = pieces_of(source, room)
    first, stops = fill(starts, ends, room, np.searchsorted(document, document, "right"))
    return single(document[first], starts[first], ends[stops - 1] - starts[first])


def fill(starts: I64, ends: I64, room: int, limit: I64) -> tuple[I64, I64]:
    """Fill blocks of ``room`` tokens with pieces: the first piece of each block, and the one behind its last.

    ``limit``: for each piece, the first one that a block with it must not hold.

    >>> starts, ends = np.array([0, 4, 9]), np.array([4, 8, 12])
    >>> [a.tolist() for a in fill(starts, ends, 8, np.array([3, 3, 3]))]
    [[0, 2], [2, 3]]
    """
    # Behind each piece, were it the first of a block, the first piece that is no longer in it.
    first = follow(np.minimum(np.searchsorted(ends, starts + room, "right"), limit))
    return first, np.append(first[1:], len(ends))[: len(first)]


def follow(behind: I64) -> I64:
    """The walk 0, behind[0], behind[behind[0]], ... until it leaves the array.

    A Python loop with a reason: where a block begins depends on where the one before it ended. One list look-up a
    block (about 50 ns) against some hundred tokens each; everything else is done for all blocks at once.

    >>> follow(np.array([2, 9, 3, 5, 9])).tolist()
    [0, 2, 3]
    """
    table = behind.tolist()
    size, visited, at = len(table), [], 0
    while at < size:
        visited.append(at)
        at = table[at]
    return np.array(visited, np.int64)


def pieces_of(source: Source, room: int) -> tuple[I64, I64, I64]:
    """Where sentences start and end when none may exceed ``room`` tokens, and the document of each piece."""
    lengths = source.ends - source.starts
    if not len(lengths) or lengths.max() <= room:
        return source.starts, source.ends, source.documents
    count = -(-lengths // room)
    offsets = offsets_of(count)
    ordinal = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
    starts = np.repeat(source.starts, count) + ordinal * room
    return starts, np.minimum(starts + room, np.repeat(source.ends, count)), np.repeat(source.documents, count)
