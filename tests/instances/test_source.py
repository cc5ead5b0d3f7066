"""Sentences longer than an instance, one document at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import schemas
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.source import SentenceLimit
from tests.instances.test_blocks import STRUCTURES, cut
from tests.instances.token_batches import SPECIALS, tokens_of


def with_word_starts(tokens: pa.RecordBatch) -> pa.RecordBatch:
    ids = tokens.column("ids")
    starts = pa.ListArray.from_arrays(ids.offsets, pa.array(ids.values.to_numpy() % 3 == 0))
    schema = schemas.tokens_schema(SPECIALS.size, word_starts=True)
    return pa.RecordBatch.from_arrays([*tokens.columns, starts], schema=schema)


@given(
    structure=STRUCTURES,
    longest=st.integers(1, 30),
    policy=st.sampled_from(("keep", "truncate", "drop")),
    skip=st.integers(0, 2),
)
def test_sentences_are_those_of_the_oracle(structure, longest, policy, skip):
    tokens = with_word_starts(tokens_of(structure)).slice(min(skip, len(structure)))
    limited, statistics = SentenceLimit(longest, policy)(tokens)
    documents = list(cut(tokens))
    if policy == "truncate":
        documents = [[sentence[:longest] for sentence in document] for document in documents]
    elif policy == "drop":
        documents = [[sentence for sentence in document if len(sentence) <= longest] for document in documents]
    assert list(cut(limited)) == documents
    assert limited.schema == tokens.schema and limited.column("document").equals(tokens.column("document"))
    for ids, starts in zip(*(limited.column(name).to_pylist() for name in ("ids", "word_starts")), strict=True):
        assert starts == [i % 3 == 0 for i in ids]
    before, after = (sum(map(len, t.column("ids").to_pylist())) for t in (tokens, limited))
    too_long = sum(n > longest for row in tokens.column("sentences").to_pylist() for n in row)
    assert statistics == {"sentences_too_long": too_long, "tokens_too_long": before - after}


def test_without_long_sentences_nothing_is_copied():
    tokens = tokens_of([[3, 4], [5]])
    assert SentenceLimit(5, "drop")(tokens)[0] is tokens


def test_a_document_of_long_sentences_becomes_empty():
    tokens, _ = SentenceLimit(30, "drop")(tokens_of([[90, 80], [3]]))
    built = list(Builder(BuildSettings(SPECIALS, length=32)).copies(tokens, 1))
    assert built[0].statistics["documents_empty"] == 1
    assert np.concatenate([b.instances.column("length").to_numpy() for b in built]).tolist() == [5]
