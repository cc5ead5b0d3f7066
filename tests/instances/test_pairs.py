"""Pairs: every label is true, labels are fair coins, distributions are those of the papers' code."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.pairs import binomial_half, truncate
from corpusforge.instances.source import read_source
from tests.instances.token_batches import SPECIALS, all_negatives, instances_of, random_corpus, tokens_of, unmasked
from tests.oracles import bert_pairs

STRUCTURES = st.lists(st.lists(st.integers(1, 30), max_size=12), min_size=1, max_size=8)


def pair_builder(tokens, **changes):
    return Builder(BuildSettings(SPECIALS, "segment-pair", **{"length": 32, **changes}), all_negatives(tokens))


@given(
    structure=STRUCTURES,
    length=st.integers(8, 40),
    sampling=st.sampled_from(["balanced", "original"]),
    seed=st.integers(0, 1000),
    masks=st.booleans(),
)
def test_every_pair_is_what_its_label_says(structure, length, sampling, seed, masks):
    # Every token of the corpus has an id of its own, so that a segment tells where it is from.
    tokens = distinct(tokens_of(structure))
    builder = pair_builder(tokens, length=length, pair_sampling=sampling, seed=seed, stored_masks=masks)
    batch = instances_of(builder, tokens)
    source = read_source(tokens)
    home = np.repeat(np.arange(len(source.keys)), np.diff(source.token_offsets))
    filled = int((np.diff(source.token_offsets) > 0).sum())
    first = int(source.ids[0]) if len(source.ids) else 0
    rows = {int(key): row for row, key in enumerate(source.keys)}
    for ids, row in zip(unmasked(batch), batch.to_pylist(), strict=True):
        a_length, b_length = row["segment_lengths"]
        a, b = ids[1 : a_length - 1], ids[a_length:-1]
        assert len(ids) == a_length + b_length == row["length"] <= length
        assert (ids[0], ids[a_length - 1], ids[-1]) == (SPECIALS.cls, SPECIALS.sep, SPECIALS.sep)
        assert a and b
        assert a == list(range(a[0], a[0] + len(a))) and b == list(range(b[0], b[0] + len(b)))
        home_a, home_b = {int(home[i - first]) for i in a}, {int(home[i - first]) for i in b}
        assert home_a == {rows[row["document"]]}
        if row["pair_label"] == 0:
            assert home_b == home_a and b[0] > a[-1]
            # Between A and B only what truncation took from A's end and B's front.
            assert b[0] == a[-1] + 1 or len(ids) == length
        else:
            assert len(home_b) == 1 and (home_b != home_a or filled == 1)
    assert {row["document"] for row in batch.to_pylist()} == {
        int(key) for key, tokens_ in zip(source.keys, np.diff(source.token_offsets), strict=True) if tokens_
    }


def same_distribution(a, b):
    """Whether a two-sample Kolmogorov-Smirnov test lets two samples pass (p > 1e-4: Smirnov's limit 2.23)."""
    points = np.unique(np.concatenate((a, b)))
    distance = np.abs(
        np.searchsorted(np.sort(a), points, "right") / len(a) - np.searchsorted(np.sort(b), points, "right") / len(b)
    ).max()
    return distance * math.sqrt(len(a) * len(b) / (len(a) + len(b))) < 2.23


def distinct(tokens):
    import pyarrow as pa

    column = tokens.column("ids")
    ids = np.arange(len(column.values), dtype=np.uint16) + 1000
    return tokens.set_column(1, tokens.schema.field(1), pa.ListArray.from_arrays(column.offsets, pa.array(ids)))


@pytest.mark.slow
@pytest.mark.parametrize("short", [0.1, 0.5])
def test_original_has_googles_distributions(short):
    rng = np.random.default_rng(5)
    # Document lengths from one sentence up, sentences now and then longer than the target.
    structure = [rng.integers(1, 60, n).tolist() for n in rng.integers(1, 25, 4500)]
    tokens = tokens_of(structure)
    batch = instances_of(pair_builder(tokens, length=64, pair_sampling="original", short_probability=short), tokens)
    assert batch.num_rows > 20_000
    segments = batch.column("segment_lengths").flatten().to_numpy().reshape(-1, 2).astype(int)
    labels = batch.column("pair_label").to_numpy()
    peer = list(bert_pairs.pairs(structure, 61, short, random.Random(1)))
    peer_labels = np.array([label for *_, label in peer])
    share, peer_share = labels.mean(), peer_labels.mean()
    assert abs(share - peer_share) < 5 * math.sqrt(0.5 / len(peer))
    assert abs(batch.num_rows - len(peer)) < 0.02 * len(peer)
    for label in (0, 1):
        ours = segments[labels == label]
        others = np.array([(len(a), len(b)) for _, a, b, drawn in peer if drawn == label])
        for values, peers in (
            (ours[:, 0] - 2, others[:, 0]),
            (ours[:, 1] - 1, others[:, 1]),
            (ours.sum(1) - 3, others.sum(1)),
        ):
            assert same_distribution(values, peers)
    per_document = np.bincount(np.unique(batch.column("document").to_numpy(), return_inverse=True)[1])
    peers_per_document = np.bincount([number for number, *_ in peer])
    assert same_distribution(per_document, peers_per_document)


def test_balanced_labels_are_fair_and_original_ones_are_not():
    tokens = random_corpus(3000)
    counts = {}
    for sampling in ("balanced", "original"):
        built = list(pair_builder(tokens, pair_sampling=sampling).copies(tokens, 1))
        keys = ("pairs_next", "pairs_random", "pairs_drawn_random", "pairs_forced")
        counts[sampling] = {key: sum(b.statistics[key] for b in built) for key in keys}
    fair = counts["balanced"]
    n = fair["pairs_next"] + fair["pairs_random"]
    assert n > 20_000
    assert fair["pairs_forced"] < 0.005 * n  # last sentences of one token
    assert abs(fair["pairs_drawn_random"] - (n - fair["pairs_forced"]) / 2) < 5 * math.sqrt(n) / 2
    unfair = counts["original"]
    assert unfair["pairs_random"] / (unfair["pairs_next"] + unfair["pairs_random"]) > 0.6  # many long sentences here


def test_one_sentence_documents_are_balanced_too():
    tokens = tokens_of([[n] for n in np.random.default_rng(0).integers(2, 20, 4000)])
    labels = instances_of(pair_builder(tokens), tokens).column("pair_label").to_numpy()
    assert len(labels) == 4000
    assert abs(labels.sum() - 2000) < 5 * math.sqrt(1000)


def test_a_corpus_of_one_document():
    tokens = tokens_of([[5, 6, 7, 8] * 30])
    labels = instances_of(pair_builder(tokens), tokens).column("pair_label").to_numpy()
    assert set(labels.tolist()) == {0, 1}


def test_no_negatives_is_a_fault_of_the_caller():
    tokens = tokens_of([[5, 6, 7, 8] * 30])
    with pytest.raises(ValueError, match="no negatives"):
        instances_of(Builder(BuildSettings(SPECIALS, "segment-pair", length=32)), tokens)


@given(a=st.integers(1, 300), b=st.integers(1, 300), longest=st.integers(2, 200), key=st.integers(0, 2**64 - 1))
def test_truncation_removes_what_one_by_one_would(a, b, longest, key):
    one = [np.array([v]) for v in (0, a, 1000, b)]
    a_start, a_length, b_start, b_length = (int(v[0]) for v in truncate(*one, longest, np.array([key], np.uint64), 3))
    left, right = bert_pairs._truncated(range(a), range(b), longest, random.Random(0))
    assert (a_length, b_length) == (len(left), len(right))
    assert 0 <= a_start <= a - a_length
    assert 0 <= b_start - 1000 <= b - b_length


def test_front_shares_are_binomial():
    keys = np.arange(20_000, dtype=np.uint64)
    for trials in (1, 7, 63, 64, 65, 200):
        drawn = binomial_half(keys, np.full(len(keys), trials), 1, "demo")
        assert drawn.min() >= 0 and drawn.max() <= trials
        assert abs(drawn.mean() - trials / 2) < 5 * math.sqrt(trials / 4 / len(keys))
        assert abs(drawn.var() / (trials / 4) - 1) < 0.06
    coins = np.bincount(binomial_half(keys, np.full(len(keys), 7), 1, "demo"), minlength=8)
    for k, count in enumerate(coins.tolist()):
        share = math.comb(7, k) / 128
        assert abs(count - share * len(keys)) < 5 * math.sqrt(len(keys) * share)


@pytest.mark.slow
def test_a_document_of_a_million_sentences():
    tokens = tokens_of([np.random.default_rng(0).integers(1, 40, 1_000_000), [5, 5]])
    batches = pair_builder(tokens, length=128).copies(tokens, 1)
    assert sum(b.instances.num_rows for b in batches) > 150_000


SHORT_STRUCTURES = st.lists(st.lists(st.integers(1, 9), max_size=12), min_size=2, max_size=8)


def sentence_builder(tokens, length: int = 32, **changes) -> Builder:
    return Builder(BuildSettings(SPECIALS, "sentence-pair", length, **changes), all_negatives(tokens))


@given(structure=SHORT_STRUCTURES, seed=st.integers(0, 1000), masks=st.booleans())
def test_both_are_sentences_and_labels_are_true(structure, seed, masks):
    tokens = distinct(tokens_of(structure))
    batch = instances_of(sentence_builder(tokens, seed=seed, stored_masks=masks), tokens)  # two sentences always fit
    source = read_source(tokens)
    sentences = {
        int(start) + 1000: (int(stop) + 1000, at)
        for at, (start, stop) in enumerate(zip(source.starts, source.ends, strict=True))
    }
    home = source.documents
    first_of_a = {}
    for ids, row in zip(unmasked(batch), batch.to_pylist(), strict=True):
        a, b = ids[1 : row["segment_lengths"][0] - 1], ids[row["segment_lengths"][0] : -1]
        (a_stop, a_at), (b_stop, b_at) = sentences[a[0]], sentences[b[0]]
        assert (a_stop, b_stop) == (a[-1] + 1, b[-1] + 1)
        assert int(source.keys[home[a_at]]) == row["document"]
        filled = np.count_nonzero(np.diff(source.offsets)) > 1
        assert (
            (b_at == a_at + 1 and home[a_at] == home[b_at])
            if row["pair_label"] == 0
            else (home[a_at] != home[b_at] or not filled)
        )
        first_of_a.setdefault(int(home[a_at]), set()).update({a_at} | ({b_at} if row["pair_label"] == 0 else set()))
    for document, (first, stop) in enumerate(zip(source.offsets[:-1], source.offsets[1:], strict=True)):
        assert first_of_a.get(document, set()) == set(range(first, stop))  # every sentence is in a pair


def test_labels_are_fair_coins():
    tokens = random_corpus(3000)
    built = list(sentence_builder(tokens, 128).copies(tokens, 1))
    statistics = {k: sum(b.statistics[k] for b in built) for k in ("pairs_drawn", "pairs_drawn_random", "pairs_forced")}
    drawn = statistics["pairs_drawn"]
    assert drawn > 20_000
    assert abs(2 * statistics["pairs_drawn_random"] - drawn) < 5 * math.sqrt(drawn)
    single = np.count_nonzero(np.diff(read_source(tokens).offsets) == 1)
    assert statistics["pairs_forced"] == single


def test_long_sentences_are_truncated():
    tokens = tokens_of([[100, 90, 3], [80, 70]])
    batch = instances_of(sentence_builder(tokens, 32), tokens)
    assert max(batch.column("length").to_pylist()) == 32


def test_copies_draw_other_pairs():
    tokens = random_corpus(50)
    ours = sentence_builder(tokens, 128, stored_masks=True)
    assert unmasked(instances_of(ours, tokens, 0)) != unmasked(instances_of(ours, tokens, 1))
    kept = sentence_builder(tokens, 128, stored_masks=True, copies_redraw="masks")
    assert unmasked(instances_of(kept, tokens, 0)) == unmasked(instances_of(kept, tokens, 1))


def sop_builder(**changes) -> Builder:
    return Builder(BuildSettings(SPECIALS, "sop", **{"length": 32, **changes}))


@given(structure=STRUCTURES, length=st.integers(8, 40), seed=st.integers(0, 1000), masks=st.booleans())
def test_every_sop_is_what_its_label_says(structure, length, seed, masks):
    tokens = distinct(tokens_of(structure))  # a token's id is its place
    batch = instances_of(sop_builder(length=length, seed=seed, stored_masks=masks), tokens)
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
    batch = instances_of(sop_builder(length=4000, short_probability=0.0), tokens)
    seen = sorted(i for ids in unmasked(batch) for i in ids if i not in (SPECIALS.cls, SPECIALS.sep))
    sizes = np.array([sum(document) for document in structure])
    expected = np.repeat(sizes > 1, sizes)
    assert seen == (np.flatnonzero(expected) + 1000).tolist()


def test_order_is_a_fair_coin():
    built = list(sop_builder(length=64).copies(random_corpus(3000), 1))
    swapped, kept = (sum(b.statistics[k] for b in built) for k in ("pairs_swapped", "pairs_next"))
    assert swapped + kept > 20_000
    assert abs(swapped - kept) < 5 * math.sqrt(swapped + kept)
    assert sum(b.statistics["pairs_random"] + b.statistics["pairs_forced"] for b in built) == 0


def test_documents_of_one_token_are_counted():
    built = list(sop_builder().copies(tokens_of([[1], [], [2], [1, 1], [5, 40, 1]]), 1))
    statistics = built[0].statistics
    assert (statistics["documents_too_short"], statistics["documents_empty"], statistics["documents_lost"]) == (1, 1, 0)
    assert len({d for b in built for d in b.instances.column("document").to_pylist()}) == 3


def test_albert_has_the_same_lengths():
    """Documents of short sentences, so that a chunk hardly ever has one sentence only."""
    rng = np.random.default_rng(5)
    structure = [rng.integers(1, 9, n).tolist() for n in rng.integers(8, 80, 5500)]
    batch = instances_of(sop_builder(length=64), tokens_of(structure))
    segments = batch.column("segment_lengths").flatten().to_numpy().reshape(-1, 2).astype(int) - [2, 1]
    peer = [(len(a), len(b)) for _, a, b, _ in bert_pairs.pairs(structure, 61, 0.1, random.Random(1), consecutive=True)]
    coins = np.random.default_rng(1).random(len(peer)) < 0.5
    others = np.array([(b, a) if coin else (a, b) for (a, b), coin in zip(peer, coins, strict=True)])
    assert len(segments) > 20_000 and abs(len(segments) - len(others)) < 0.02 * len(others)
    for column in (0, 1):
        assert same_distribution(segments[:, column], others[:, column])
    assert same_distribution(segments.sum(1), others.sum(1))
