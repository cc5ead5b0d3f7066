"""sop: consecutive segments of one document, in fair order; chunks as in ALBERT's procedure."""

from __future__ import annotations

import math
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.source import read_source
from tests.instances.test_segment_pair import distinct, same_distribution
from tests.instances.token_batches import SPECIALS, random_corpus, tokens_of, unmasked
from tests.oracles import bert_pairs

STRUCTURES = st.lists(st.lists(st.integers(1, 30), max_size=12), min_size=1, max_size=8)


def builder(**changes) -> Builder:
    return Builder(BuildSettings(SPECIALS, "sop", **{"length": 32, **changes}))


@given(structure=STRUCTURES, length=st.integers(8, 40), seed=st.integers(0, 1000), masks=st.booleans())
def test_every_pair_is_what_its_label_says(structure, length, seed, masks):
    tokens = distinct(tokens_of(structure))  # a token's id is its place
    batch = builder(length=length, seed=seed, stored_masks=masks).build(tokens)
    source = read_source(tokens)
    bounds = {int(k): source.token_offsets[i : i + 2] + 1000 for i, k in enumerate(source.keys)}
    for ids, row in zip(unmasked(batch), batch.to_pylist(), strict=True):
        a, b = ids[1 : row["segment_lengths"][0] - 1], ids[row["segment_lengths"][0] : -1]
        first, second = (b, a) if row["pair_label"] else (a, b)
        low, high = bounds[row["document"]]
        assert low <= first[0] and second[-1] < high
        assert first == list(range(first[0], first[-1] + 1)) and second == list(range(second[0], second[-1] + 1))
        assert second[0] > first[-1]
        assert second[0] == first[-1] + 1 or len(ids) == length  # only truncation takes text between them
    long_enough = {int(k) for k, n in zip(source.keys, np.diff(source.token_offsets), strict=True) if n > 1}
    assert {row["document"] for row in batch.to_pylist()} == long_enough


@given(structure=STRUCTURES)
def test_nothing_is_left_out_where_nothing_is_cut(structure):
    tokens = distinct(tokens_of(structure))
    batch = builder(length=4000, short_probability=0.0).build(tokens)
    seen = sorted(i for ids in unmasked(batch) for i in ids if i not in (SPECIALS.cls, SPECIALS.sep))
    sizes = np.array([sum(document) for document in structure])
    expected = np.repeat(sizes > 1, sizes)
    assert seen == (np.flatnonzero(expected) + 1000).tolist()


def test_order_is_a_fair_coin():
    built = list(builder(length=64).batches(random_corpus(3000)))
    swapped, kept = (sum(b.statistics[k] for b in built) for k in ("pairs_swapped", "pairs_next"))
    assert swapped + kept > 20_000
    assert abs(swapped - kept) < 5 * math.sqrt(swapped + kept)
    assert sum(b.statistics["pairs_random"] + b.statistics["pairs_forced"] for b in built) == 0


def test_documents_of_one_token_are_counted():
    built = list(builder().batches(tokens_of([[1], [], [2], [1, 1], [5, 40, 1]])))
    found = built[0].statistics
    assert (found["documents_too_short"], found["documents_empty"], found["documents_lost"]) == (1, 1, 0)
    assert len({d for b in built for d in b.instances.column("document").to_pylist()}) == 3


def test_albert_has_the_same_lengths():
    """Documents of short sentences, so that a chunk hardly ever has one sentence only."""
    rng = np.random.default_rng(5)
    structure = [rng.integers(1, 9, n).tolist() for n in rng.integers(8, 80, 5500)]
    batch = builder(length=64).build(tokens_of(structure))
    segments = batch.column("segment_lengths").flatten().to_numpy().reshape(-1, 2).astype(int) - [2, 1]
    peer = [(len(a), len(b)) for _, a, b, _ in bert_pairs.pairs(structure, 61, 0.1, random.Random(1), consecutive=True)]
    coins = np.random.default_rng(1).random(len(peer)) < 0.5
    theirs = np.array([(b, a) if coin else (a, b) for (a, b), coin in zip(peer, coins, strict=True)])
    assert len(segments) > 20_000 and abs(len(segments) - len(theirs)) < 0.02 * len(theirs)
    for column in (0, 1):
        assert same_distribution(segments[:, column], theirs[:, column])
    assert same_distribution(segments.sum(1), theirs.sum(1))
