"""sentence-pair: A and B are single natural sentences, contiguous or from two documents (RoBERTa, section 4.2).

Comes in: a Source and Donors. Goes out: a Plan; label 0: B is the sentence behind A, 1: B is a sentence of another
document. Sentences are read in order: two at a time where the coin says next, else one. A last sentence that has none
behind it becomes the B of its predecessor, which then stands in two instances, so that labels stay fair coins; only a
document of one sentence is *forced* to a random B.

Instances are far shorter than the longest allowed; batches that count tokens make up for it. Sentences that are too
long together lose tokens as in segment-pair.
"""

from __future__ import annotations

import numpy as np

from corpusforge import seeds
from corpusforge.instances.doc_sentences import follow
from corpusforge.instances.donors import Donors
from corpusforge.instances.plan import Plan, paired
from corpusforge.instances.segment_pair import truncate
from corpusforge.instances.source import Source


def plan_sentence_pair(source: Source, donors: Donors, length: int, *, seed: int, copy: int) -> Plan:
    """Pairs of one copy of the corpus, of at most ``length`` tokens. Every document with a token gives at least one."""
    document, starts, sizes = source.documents, source.starts, source.ends - source.starts
    sentence = np.arange(len(sizes))
    first_of, last_of = source.offsets[:-1][document], source.offsets[1:][document] - 1
    counters = (sentence - first_of).view(np.uint64) + (np.uint64(copy) << np.uint64(40))
    keys = seeds.words(seed, "sentence-pair", source.keys[document], counters)
    forced = first_of == last_of
    random = (seeds.words(seed, "sentence-pair-coin", keys) >= np.uint64(1 << 63)) | forced
    step = np.where(random | (sentence == last_of), 1, 2)
    chosen = follow(sentence + step)
    is_last = ~random[chosen] & (chosen == last_of[chosen])
    a, keys, random = chosen - is_last, keys[chosen], random[chosen]
    b_start, b_length = starts[np.minimum(a + 1, len(starts) - 1)], sizes[np.minimum(a + 1, len(sizes) - 1)]
    foreign = np.flatnonzero(random)
    one = np.ones(len(foreign), np.int64)
    b_start[foreign], b_length[foreign] = donors.draw(keys[foreign], source.keys[document[a[foreign]]], one, seed)
    cut = truncate(starts[a], sizes[a], b_start, b_length, length - 3, keys, seed)
    return paired(document[a], cut, random, random.astype(np.int8), forced[chosen])
