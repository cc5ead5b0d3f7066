"""doc-sentences: equal to the oracle, and nothing lost or doubled."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.instances.builder import Builder, BuildSettings
from tests.instances.token_batches import SPECIALS, random_corpus, tokens_of, unmasked
from tests.oracles.blocks import doc_sentences

STRUCTURES = st.lists(st.lists(st.integers(1, 30), max_size=12), max_size=8)


def cut(tokens):
    """Documents as lists of sentences as lists of ids."""
    for ids, lengths in zip(tokens.column("ids").to_pylist(), tokens.column("sentences").to_pylist(), strict=True):
        ends = np.cumsum([0, *lengths])
        yield [ids[a:b] for a, b in itertools.pairwise(ends)]


@given(structure=STRUCTURES, length=st.integers(8, 40), masks=st.booleans())
def test_blocks_equal_the_oracle(structure, length, masks):
    tokens = tokens_of(structure)
    batch = Builder(BuildSettings(SPECIALS, length=length, stored_masks=masks)).build(tokens)
    expected = [
        [SPECIALS.cls, *block, SPECIALS.sep] for document in cut(tokens) for block in doc_sentences(document, length)
    ]
    assert unmasked(batch) == expected
    assert batch.column("length").to_pylist() == [len(block) for block in expected]
    assert batch.column("segment_lengths").to_pylist() == [[len(block), 0] for block in expected]
    assert batch.column("pair_label").null_count == batch.num_rows


def test_concatenated_blocks_are_the_corpus():
    tokens = random_corpus()
    batch = Builder(BuildSettings(SPECIALS, length=64)).build(tokens)
    ids = [token for row in batch.column("input_ids").to_pylist() for token in row[1:-1]]
    assert ids == [token for row in tokens.column("ids").to_pylist() for token in row]


def test_a_sentence_longer_than_an_instance_is_cut_and_continued():
    tokens = tokens_of([[3, 25, 2]])
    batch = Builder(BuildSettings(SPECIALS, length=12)).build(tokens)
    assert batch.column("length").to_pylist() == [3 + 2, 10 + 2, 10 + 2, 5 + 2 + 2]


def test_small_documents():
    tokens = tokens_of([[], [4], [], [1, 1]], ["empty", "one", "empty too", "two"])
    built = list(Builder(BuildSettings(SPECIALS, length=8)).batches(tokens))
    assert sum(b.instances.num_rows for b in built) == 2
    assert built[0].statistics["documents"] == 4
    assert built[0].statistics["documents_empty"] == 2
    assert built[0].statistics["documents_lost"] == 0


def test_batches_without_instances():
    builder = Builder(BuildSettings(SPECIALS, length=8))
    for tokens in (tokens_of([]), tokens_of([[], []])):
        assert builder.build(tokens).num_rows == 0
        assert [b.statistics["documents"] for b in builder.batches(tokens)] == [tokens.num_rows]


def test_a_document_of_a_million_sentences():
    lengths = np.random.default_rng(0).integers(1, 40, 1_000_000)
    tokens = tokens_of([lengths])
    batches = [b.instances for b in Builder(BuildSettings(SPECIALS, length=128)).batches(tokens)]
    assert sum(int(b.column("length").to_numpy().astype(int).sum()) - 2 * b.num_rows for b in batches) == lengths.sum()
    assert max(int(b.column("length").to_numpy().astype(int).sum()) for b in batches) <= 1 << 18
    assert batches[-1].column("index").to_pylist()[-1] == sum(b.num_rows for b in batches) - 1
