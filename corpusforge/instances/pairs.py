"""Formats of two segments and a label: segment-pair, sentence-pair and sop.

`segment-pair` (google-research/bert): chunks of sentences reach a target length; A is a random number of the first
sentences; B is the rest, or a run of sentences of another document, and then the unused rest is put back. A pair that
is too long loses tokens one by one from its longer segment, from either end with 0.5 each. Sampling ``original`` draws
the label as google-research/bert does: a chunk of one sentence always gets a random B, so that 53 to 57 % of pairs are
random. ``balanced``, the default, flips the coin first and fits the chunk to it: where B must continue a single
sentence, the next sentence is taken as B; where the document has none left, the sentence is halved. Only a last
sentence of one token cannot be halved, and is *forced* to a random B. So every label that is not forced is a fair coin,
independent of the text. In both, the draws of a chunk are a function of (document, copy, first sentence).

`sentence-pair` (RoBERTa, section 4.2): A and B are single natural sentences; label 0: B is the sentence after A, 1: B
is a sentence of another document. Sentences are read in order: two at a time where the coin says next, else one. A last
sentence that has none after it becomes the B of its predecessor, which is then in two instances, so that labels stay
fair coins; only a document of one sentence is *forced* to a random B. Instances are far shorter than the longest
allowed; batches that count tokens make up for it.

`sop` (ALBERT, section 3.1): two consecutive segments, in their order (label 0) or swapped (label 1), chunked and cut as
in segment-pair; no other document is needed. ALBERT's code gives a chunk of one sentence a segment of another document
and label 1. Here it is extended by the next sentence, or halved where there is none, so that all labels are fair coins.
A document of a single token is not a pair: it is left out and counted.

A random B is never from the document of A, except in a corpus of one document, as in BERT's code.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from corpusforge import seeds
from corpusforge.arrays import I64, U64, Bools, offsets_of
from corpusforge.instances.blocks import follow
from corpusforge.instances.check import check_order, check_pairs
from corpusforge.instances.formats import Format, Plan, PlanSettings, paired
from corpusforge.instances.negatives import Negatives
from corpusforge.instances.source import Source

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def plan_segment_pair(source: Source, negatives: Negatives, settings: PlanSettings, copy: int) -> Plan:
    """Pairs of one copy of the corpus. Every document with a token gives at least one."""
    chunks, seed = chunks_of(source, settings, copy), settings.seed
    first = follow(chunks.successor)
    document, target = chunks.document[first], chunks.target[first]
    a_start, a_length = source.starts[first], chunks.a_stop[first] - source.starts[first]
    b_start, b_length = chunks.a_stop[first], chunks.b_stop[first] - chunks.a_stop[first]
    random, keys = chunks.random[first], chunks.keys[first]
    foreign = np.flatnonzero(random)
    b_start[foreign], b_length[foreign] = negatives.draw(
        keys[foreign], source.keys[document[foreign]], target[foreign] - a_length[foreign], seed
    )
    a_start, a_length, b_start, b_length = truncate(
        a_start, a_length, b_start, b_length, settings.length - 3, keys, seed
    )
    label = random.astype(np.int8)
    return paired(document, (a_start, a_length, b_start, b_length), random, label, chunks.forced[first])


@dataclasses.dataclass(frozen=True)
class Chunks:
    """The chunk that would begin at each sentence, ``[sentences]``; `follow` picks those that do."""

    document: I64
    target: I64  # tokens A and B should reach together
    keys: U64
    a_stop: I64  # position in ids after A
    b_stop: I64  # the same for B, where B continues A
    random: Bools
    forced: Bools
    successor: I64  # the sentence the chunk after it begins at


def chunks_of(source: Source, settings: PlanSettings, copy: int) -> Chunks:
    """The chunks of one copy of the corpus. Sampling ``consecutive`` (sop): B always continues A; where a last sentence
    of one token would be left alone, it joins the chunk before it."""
    document, starts, ends, seed = source.documents, source.starts, source.ends, settings.seed
    sentence = np.arange(len(ends))
    last = source.offsets[1:][document]
    consecutive = settings.sampling == "consecutive"
    target = targets(source.keys, settings, copy)[document]
    # The sentence that reaches the target is part of the chunk.
    stop = np.minimum(np.searchsorted(ends, starts + target, "left") + 1, last)
    count = stop - sentence
    ordinal = sentence - source.offsets[:-1][document]
    counters = ordinal.view(np.uint64) + (np.uint64(copy) << np.uint64(40))
    keys = seeds.words(seed, "pair", source.keys[document], counters)
    draws = seeds.words(seed, "pair-cut", keys)
    cut = 1 + (((draws & _LOW) * np.maximum(count - 1, 1).view(np.uint64)) >> _HALF).view(np.int64)
    alone = count == 1
    random = (draws >= np.uint64(1 << 63)) & (not consecutive)
    halved = np.zeros(len(ends), bool)
    if settings.sampling == "original":
        forced = alone
    else:
        forced = alone & (sentence + 1 == last) & (ends - starts == 1)
        extended = alone & ~random & (sentence + 1 < last)
        stop = stop + extended
        halved = alone & ~random & ~extended & ~forced
    if consecutive:
        stop = stop + ((stop == last - 1) & ((ends - starts)[last - 1] == 1))
    else:
        random |= forced
    a_stop = np.where(halved, (starts + ends + 1) // 2, ends[sentence + cut - 1])
    successor = np.where(random, sentence + cut, stop)
    return Chunks(document, target, keys, a_stop, ends[stop - 1], random, forced, successor)


def targets(documents: U64, settings: PlanSettings, copy: int) -> I64:
    """The target length of each document: ``length - 3``, or with ``short_probability`` uniform in [2, length - 3]."""
    longest = settings.length - 3
    draws = seeds.words(settings.seed, "pair-target", documents, copy)
    short = (draws >> _HALF) < np.uint64(round(settings.short_probability * 2**32))
    uniform = 2 + (((draws & _LOW) * np.uint64(longest - 1)) >> _HALF).view(np.int64)
    return np.where(short, uniform, longest)


def truncate(
    a_start: I64, a_length: I64, b_start: I64, b_length: I64, longest: int, keys: U64, seed: int
) -> tuple[I64, I64, I64, I64]:
    """Shorten pairs to ``longest`` tokens together, as if one by one from the longer (B where equal), front or back.

    How many each loses is fixed; how many of those from the front is Binomial(lost, 0.5), counted in random bits.

    >>> one = lambda n: np.array([n])
    >>> truncate(one(0), one(9), one(20), one(4), 6, np.array([1], np.uint64), 0)[1::2]
    (array([3]), array([3]))
    """
    excess = np.maximum(a_length + b_length - longest, 0)
    ahead = np.minimum(np.abs(a_length - b_length), excess)  # lost by the longer until both are equal
    rest = excess - ahead
    a_lost = np.where(a_length > b_length, ahead, 0) + rest // 2
    b_lost = np.where(b_length > a_length, ahead, 0) + (rest + 1) // 2
    a_start = a_start + binomial_half(keys, a_lost, seed, "pair-front-a")
    b_start = b_start + binomial_half(keys, b_lost, seed, "pair-front-b")
    return a_start, a_length - a_lost, b_start, b_length - b_lost


def binomial_half(keys: U64, trials: I64, seed: int, stage: str) -> I64:
    """Binomial(trials, 0.5) for each key: the ones among that many random bits."""
    rows = np.flatnonzero(trials)
    blocks = (trials[rows] + 63) // 64
    offsets = offsets_of(blocks)
    ordinal = np.arange(offsets[-1]) - np.repeat(offsets[:-1], blocks)
    words = seeds.words(seed, stage, np.repeat(keys[rows], blocks), ordinal.view(np.uint64))
    surplus = np.maximum((ordinal + 1) * 64 - np.repeat(trials[rows], blocks), 0)
    ones = np.bitwise_count(words >> surplus.view(np.uint64)).astype(np.int64)
    result = np.zeros(len(trials), np.int64)
    if len(rows):
        result[rows] = np.add.reduceat(ones, offsets[:-1])
    return result


def plan_sentence_pair(source: Source, negatives: Negatives, settings: PlanSettings, copy: int) -> Plan:
    """Pairs of one copy of the corpus. Every document with a token gives at least one."""
    seed = settings.seed
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
    b_start[foreign], b_length[foreign] = negatives.draw(keys[foreign], source.keys[document[a[foreign]]], one, seed)
    cut = truncate(starts[a], sizes[a], b_start, b_length, settings.length - 3, keys, seed)
    return paired(document[a], cut, random, random.astype(np.int8), forced[chosen])


def plan_sop(source: Source, negatives: Negatives, settings: PlanSettings, copy: int) -> Plan:
    """Pairs of one copy of the corpus. Every document of two tokens or more gives at least one."""
    seed = settings.seed
    chunks = chunks_of(source, dataclasses.replace(settings, sampling="consecutive"), copy)
    first = follow(chunks.successor)
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


def _check_pairs(source: Source, plan: Plan, negatives: Negatives, settings: PlanSettings) -> None:
    check_pairs(source, plan, negatives, settings.length - 3)


def _check_order(source: Source, plan: Plan, negatives: Negatives, settings: PlanSettings) -> None:
    check_order(source, plan, settings.length - 3)


FORMATS = {
    "segment-pair": Format(plan_segment_pair, _check_pairs, is_pair=True, needs_negatives=True),
    "sentence-pair": Format(plan_sentence_pair, _check_pairs, is_pair=True, needs_negatives=True),
    "sop": Format(plan_sop, _check_order, is_pair=True, shortest=2),
}
