"""Negatives: a uniform sample that does not depend on shards, and draws that avoid one's own document."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.instances.negatives import (
    Candidates,
    Negatives,
    candidates_of,
    keep_smallest,
    negatives_table,
    no_negatives,
    take_negatives,
)
from corpusforge.instances.source import read_source
from tests.draws import draws
from tests.instances.token_batches import SIZE, all_negatives, random_corpus, tokens_of

CORPUS = random_corpus(300)


def sampled(parts, budget):
    """The negatives table of a corpus cut into parts."""
    sources = [read_source(p) for p in parts]
    limit = keep_smallest([candidates_of(s, 3, budget) for s in sources], budget).limit(budget)
    return negatives_table([take_negatives(s, 3, limit) for s in sources], SIZE)


@draws(40)
@given(cuts=st.lists(st.integers(0, 300), max_size=6), budget=st.integers(0, 400_000), seed=st.integers(0, 100))
def test_any_cut_into_shards_gives_the_same_table(cuts, budget, seed):
    expected = sampled([CORPUS], budget)
    bounds = sorted({0, 300, *cuts})
    parts = [CORPUS.slice(a, b - a) for a, b in itertools.pairwise(bounds)]
    order = np.random.default_rng(seed).permutation(len(parts))
    assert sampled([parts[i] for i in order], budget).equals(expected)
    size = expected.column("ids").values.nbytes
    assert size <= budget or expected.num_rows == 2


def test_the_table_holds_whole_documents():
    negatives = all_negatives(CORPUS)
    source = read_source(CORPUS)
    assert negatives.keys.tolist() == sorted(
        int(k) for k, n in zip(source.keys, np.diff(source.offsets), strict=True) if n
    )
    rows = {int(key): row for row, key in enumerate(source.keys)}
    ids, sentences = CORPUS.column("ids").to_pylist(), CORPUS.column("sentences").to_pylist()
    for i, key in enumerate(negatives.keys.tolist()):
        ends = negatives.ends[negatives.offsets[i] : negatives.offsets[i + 1]]
        begin = negatives.ends[negatives.offsets[i] - 1] if negatives.offsets[i] else 0
        assert negatives.ids[begin : ends[-1]].tolist() == ids[rows[key]]
        assert np.diff(ends, prepend=begin).tolist() == sentences[rows[key]]


def test_candidates_pack_and_limits():
    candidates = candidates_of(read_source(CORPUS), 3, 10_000)
    again = Candidates.unpack(candidates.pack())
    assert again.hash.tolist() == candidates.hash.tolist() and again.size.tolist() == candidates.size.tolist()
    assert Candidates.unpack(b"").limit(5) == 0
    assert len(take_negatives(read_source(CORPUS), 3, 0).keys) == 0


def test_draws_are_whole_sentences_of_other_documents():
    tokens = tokens_of([[3, 4, 5], [6, 7], [1, 1, 1, 1, 9]])
    negatives = all_negatives(tokens)
    keys = np.arange(6000, dtype=np.uint64)
    own = read_source(tokens).keys[keys % 3]
    wanted = np.full(len(keys), 6)
    begin, length = negatives.draw(keys, own, wanted, 9)
    assert (negatives.keys[negatives.row_of(begin)] != own).all()
    starts = {0, *negatives.ends.tolist()}
    assert set(begin.tolist()) == starts - {int(negatives.ends[-1])}  # every sentence is drawn
    assert set((begin + length).tolist()) <= set(negatives.ends.tolist())
    last = negatives.ends[negatives.offsets[1:] - 1][negatives.row_of(begin)]
    assert ((length >= wanted) | (begin + length == last)).all()
    # Documents first, then sentences: each of the two others is drawn half of the time.
    row = negatives.row_of(begin)[own == read_source(tokens).keys[0]]
    assert np.isclose(np.bincount(row, minlength=3).max() / len(row), 0.5, atol=0.06)


def test_at_least_one_sentence_even_when_none_is_wanted():
    negatives = all_negatives(tokens_of([[3, 4, 5], [6, 7]]))
    _, length = negatives.draw(np.arange(100, dtype=np.uint64), np.zeros(100, np.uint64), np.full(100, -5), 9)
    assert set(length.tolist()) == {3, 4, 5, 6, 7}


def test_documents_that_are_no_negatives_may_draw_all():
    negatives = all_negatives(tokens_of([[3], [6]]))
    begin, _ = negatives.draw(np.arange(100, dtype=np.uint64), np.zeros(100, np.uint64), np.full(100, 5), 9)
    assert set(negatives.row_of(begin).tolist()) == {0, 1}


def test_an_empty_table_answers_empty_questions():
    nothing = np.zeros(0, np.uint64)
    begin, length = no_negatives(SIZE).draw(nothing, nothing, np.zeros(0, np.int64), 0)
    assert len(begin) == len(length) == 0
    assert len(Negatives(negatives_table([], 100_000))) == 0
