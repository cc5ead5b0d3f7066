"""Blocks of sentences, of one document and across documents: against the oracles, nothing lost, nothing twice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import InvariantBroken
from corpusforge.instances.blocks import join_documents, plan_full_sentences
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.check import check_joined
from corpusforge.instances.formats import PlanSettings
from corpusforge.instances.negatives import no_negatives
from corpusforge.instances.source import read_source
from tests.instances.token_batches import SPECIALS, instances_of, random_corpus, tokens_of, unmasked
from tests.oracles.blocks import doc_sentences, full_sentences

STRUCTURES = st.lists(st.lists(st.integers(1, 30), max_size=12), max_size=8)


def cut(tokens):
    """Documents as lists of sentences as lists of ids."""
    for ids, lengths in zip(tokens.column("ids").to_pylist(), tokens.column("sentences").to_pylist(), strict=True):
        ends = np.cumsum([0, *lengths])
        yield [ids[a:b] for a, b in itertools.pairwise(ends)]


@given(structure=STRUCTURES, length=st.integers(8, 40), masks=st.booleans())
def test_blocks_equal_the_oracle(structure, length, masks):
    tokens = tokens_of(structure)
    batch = instances_of(Builder(BuildSettings(SPECIALS, length=length, stored_masks=masks)), tokens)
    expected = [
        [SPECIALS.cls, *block, SPECIALS.sep] for document in cut(tokens) for block in doc_sentences(document, length)
    ]
    assert unmasked(batch) == expected
    assert batch.column("length").to_pylist() == [len(block) for block in expected]
    assert batch.column("segment_lengths").to_pylist() == [[len(block), 0] for block in expected]
    assert batch.column("pair_label").null_count == batch.num_rows


def test_concatenated_blocks_are_the_corpus():
    tokens = random_corpus()
    batch = instances_of(Builder(BuildSettings(SPECIALS, length=64)), tokens)
    ids = [token for row in batch.column("input_ids").to_pylist() for token in row[1:-1]]
    assert ids == [token for row in tokens.column("ids").to_pylist() for token in row]


def test_a_sentence_longer_than_an_instance_is_cut_and_continued():
    tokens = tokens_of([[3, 25, 2]])
    batch = instances_of(Builder(BuildSettings(SPECIALS, length=12)), tokens)
    assert batch.column("length").to_pylist() == [3 + 2, 10 + 2, 10 + 2, 5 + 2 + 2]


def test_small_documents():
    tokens = tokens_of([[], [4], [], [1, 1]], ["empty", "one", "empty too", "two"])
    built = list(Builder(BuildSettings(SPECIALS, length=8)).copies(tokens, 1))
    assert sum(b.instances.num_rows for b in built) == 2
    assert built[0].statistics["documents"] == 4
    assert built[0].statistics["documents_empty"] == 2
    assert built[0].statistics["documents_lost"] == 0


def test_batches_without_instances():
    builder = Builder(BuildSettings(SPECIALS, length=8))
    for tokens in (tokens_of([]), tokens_of([[], []])):
        assert instances_of(builder, tokens).num_rows == 0
        assert [b.statistics["documents"] for b in builder.copies(tokens, 1)] == [tokens.num_rows]


@pytest.mark.slow
def test_a_document_of_a_million_sentences():
    lengths = np.random.default_rng(0).integers(1, 40, 1_000_000)
    tokens = tokens_of([lengths])
    batches = [b.instances for b in Builder(BuildSettings(SPECIALS, length=128)).copies(tokens, 1)]
    assert sum(int(b.column("length").to_numpy().astype(int).sum()) - 2 * b.num_rows for b in batches) == lengths.sum()
    assert max(int(b.column("length").to_numpy().astype(int).sum()) for b in batches) <= 1 << 18
    assert batches[-1].column("index").to_pylist()[-1] == sum(b.num_rows for b in batches) - 1


def full_builder(length: int, *, masks: bool = False) -> Builder:
    return Builder(BuildSettings(SPECIALS, "full-sentences", length, stored_masks=masks))


@given(structure=STRUCTURES, length=st.integers(8, 40), masks=st.booleans())
def test_full_blocks_equal_the_oracle(structure, length, masks):
    tokens = tokens_of(structure)
    batch = instances_of(full_builder(length, masks=masks), tokens)
    expected = full_sentences(list(cut(tokens)), length, SPECIALS.sep)
    assert unmasked(batch) == [[SPECIALS.cls, *block, SPECIALS.sep] for block in expected]
    assert batch.column("pair_label").null_count == batch.num_rows
    places = list(zip(batch.column("document").to_pylist(), batch.column("index").to_pylist(), strict=True))
    assert len(set(places)) == len(places)  # what masks are drawn by


def test_the_text_without_separators_is_the_corpus():
    tokens = random_corpus()
    batch = instances_of(full_builder(64), tokens)
    ids = [token for row in batch.column("input_ids").to_pylist() for token in row[1:-1] if token != SPECIALS.sep]
    assert ids == [token for row in tokens.column("ids").to_pylist() for token in row]
    assert batch.column("length").to_numpy().astype(int).mean() > 40  # sentences of up to 60 tokens


def test_documents_inside_a_block_are_not_lost():
    built = list(full_builder(32).copies(tokens_of([[3], [], [4], [5], [20, 9], [1]]), 1))
    statistics = built[0].statistics
    assert [b.instances.column("length").to_pylist() for b in built] == [[3 + 4 + 5 + 2 + 2, 20 + 9 + 2, 3]]
    assert (statistics["documents"], statistics["documents_empty"], statistics["documents_lost"]) == (6, 1, 0)
    assert statistics["instances_per_document"][:2] == [1, 5]


def test_text_left_out_or_doubled_is_noticed():
    source = read_source(tokens_of([[10, 7], [4], [30]]))
    joined = join_documents(source, SPECIALS.sep)
    plan = plan_full_sentences(joined, no_negatives(SPECIALS.size), PlanSettings(24), 0)
    check_joined(joined, plan, SPECIALS.sep)
    for name, change in itertools.product(("a_start", "a_length"), (-1, 1)):
        for row in range(len(plan.document)):
            broken = plan.rows(0, len(plan.document))
            column = getattr(broken, name).copy()
            column[row] += change
            object.__setattr__(broken, name, column)
            if (name, change, row) == ("a_length", 1, len(column) - 1):
                continue  # after the end: an index error already
            with pytest.raises(InvariantBroken):
                check_joined(joined, broken, SPECIALS.sep)


def test_many_documents_of_one_sentence():
    tokens = tokens_of([[int(n)] for n in np.random.default_rng(0).integers(1, 9, 20_000)])
    batch = instances_of(full_builder(128), tokens)
    assert batch.column("length").to_numpy()[:-1].min() > 118
