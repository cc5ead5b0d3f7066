"""full-sentences: equal to the oracle, nothing lost or doubled, separators only where documents meet."""

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
from tests.instances.test_doc_sentences import STRUCTURES, cut
from tests.instances.token_batches import SPECIALS, random_corpus, tokens_of, unmasked
from tests.oracles.blocks import full_sentences


def builder(length: int, *, masks: bool = False) -> Builder:
    return Builder(BuildSettings(SPECIALS, "full-sentences", length, stored_masks=masks))


@given(structure=STRUCTURES, length=st.integers(8, 40), masks=st.booleans())
def test_blocks_equal_the_oracle(structure, length, masks):
    tokens = tokens_of(structure)
    batch = builder(length, masks=masks).build(tokens)
    expected = full_sentences(list(cut(tokens)), length, SPECIALS.sep)
    assert unmasked(batch) == [[SPECIALS.cls, *block, SPECIALS.sep] for block in expected]
    assert batch.column("pair_label").null_count == batch.num_rows
    places = list(zip(batch.column("document").to_pylist(), batch.column("index").to_pylist(), strict=True))
    assert len(set(places)) == len(places)  # what masks are drawn by


def test_the_text_without_separators_is_the_corpus():
    tokens = random_corpus()
    batch = builder(64).build(tokens)
    ids = [token for row in batch.column("input_ids").to_pylist() for token in row[1:-1] if token != SPECIALS.sep]
    assert ids == [token for row in tokens.column("ids").to_pylist() for token in row]
    assert batch.column("length").to_numpy().astype(int).mean() > 40  # sentences of up to 60 tokens


def test_documents_inside_a_block_are_not_lost():
    built = list(builder(32).batches(tokens_of([[3], [], [4], [5], [20, 9], [1]])))
    statistics = built[0].statistics
    assert [b.instances.column("length").to_pylist() for b in built] == [[3 + 4 + 5 + 2 + 2, 20 + 9 + 2, 3]]
    assert (statistics["documents"], statistics["documents_empty"], statistics["documents_lost"]) == (6, 1, 0)
    assert statistics["instances_per_document"][:2] == [1, 5]


def test_what_is_left_out_or_doubled_is_found():
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
                continue  # behind the end: an index error already
            with pytest.raises(InvariantBroken):
                check_joined(joined, broken, SPECIALS.sep)


def test_many_documents_of_one_sentence():
    tokens = tokens_of([[int(n)] for n in np.random.default_rng(0).integers(1, 9, 20_000)])
    batch = builder(128).build(tokens)
    assert batch.column("length").to_numpy()[:-1].min() > 118
