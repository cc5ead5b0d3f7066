"""sop: two consecutive segments, which stand in their order or were swapped (ALBERT, section 3.1).

Comes in: a Source. Goes out: a Plan; label 0: B follows A, 1: A follows B (google-research/albert,
create_pretraining_data.py). The chunks and cuts are those of segment-pair, but the model has to tell the order of what
belongs together instead of its topic, so nothing is put back and no other document is needed.

ALBERT's code gives a chunk of one sentence a segment of another document and label 1. Here it is extended by the next
sentence, or halved where there is none, so that all labels are fair coins. A document of a single token is no pair:
it is left out and counted.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from corpusforge import seeds
from corpusforge.instances.doc_sentences import follow
from corpusforge.instances.plan import Plan, paired
from corpusforge.instances.segment_pair import PairSettings, chunks_of, truncate
from corpusforge.instances.source import Source


def plan_sop(source: Source, settings: PairSettings, *, seed: int, copy: int) -> Plan:
    """Pairs of one copy of the corpus. Every document of two tokens or more gives at least one."""
    chunks = chunks_of(source, dataclasses.replace(settings, sampling="consecutive"), seed, copy)
    first = follow(chunks.behind)
    first = first[chunks.b_stop[first] > chunks.a_stop[first]]
    keys = chunks.keys[first]
    swapped = seeds.words(seed, "sop-swap", keys) >= np.uint64(1 << 63)
    front = source.starts[first], chunks.a_stop[first] - source.starts[first]
    back = chunks.a_stop[first], chunks.b_stop[first] - chunks.a_stop[first]
    a_start, b_start = np.where(swapped, back[0], front[0]), np.where(swapped, front[0], back[0])
    a_length, b_length = np.where(swapped, back[1], front[1]), np.where(swapped, front[1], back[1])
    cut = truncate(a_start, a_length, b_start, b_length, settings.length - 3, keys, seed)
    document, none = chunks.document[first], np.zeros(len(first), bool)
    return paired(document, cut, none, swapped.astype(np.int8), none)
