"""Word starts from TOKENS to INSTANCES: every format, random segments of negatives, and masks that are checked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors, schemas
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.check import check_instances
from corpusforge.instances.masking import MaskSettings
from corpusforge.instances.source import list_column
from tests.instances.token_batches import SPECIALS, all_negatives, instances_of, random_corpus

FORMATS = ("doc-sentences", "full-sentences", "segment-pair", "sentence-pair", "sop")


def corpus_with_words() -> pa.RecordBatch:
    """A token begins a word where its id is even, so that a row shows whether its word starts are its own."""
    tokens = random_corpus(120)
    ids, offsets = list_column(tokens["ids"])
    starts = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids % 2 == 0))
    return pa.RecordBatch.from_arrays(
        [*tokens.columns, starts], schema=schemas.tokens_schema(SPECIALS.size, word_starts=True)
    )


TOKENS = corpus_with_words()


@pytest.mark.parametrize("unit", ["whole-word", "ngram", "span"])
@pytest.mark.parametrize("format", FORMATS)
def test_word_starts_follow_their_tokens(format: str, unit: str) -> None:
    settings = BuildSettings(SPECIALS, format, 64, mask=MaskSettings(unit=unit), seed=3)
    for stored in (False, True):
        builder = Builder(dataclasses.replace(settings, stored_masks=stored), all_negatives(TOKENS))
        batch = instances_of(builder, TOKENS)
        assert batch.num_rows > 100
        assert batch.schema == schemas.instances_schema(SPECIALS.size, masks=stored, word_starts=True)
        ids, _ = list_column(batch["input_ids"])
        starts, offsets = list_column(batch["word_starts"])
        if stored:
            positions, bounds = list_column(batch["masked_positions"])
            ids = ids.copy()
            ids[positions + np.repeat(offsets[:-1], np.diff(bounds))] = list_column(batch["masked_labels"])[0]
        if stored:
            counted = [built.statistics for built in builder.copies(TOKENS, 1)]
            bare = sum(not row for row in batch["masked_positions"].to_pylist())
            assert sum(found.get("instances_unmasked", 0) for found in counted) == bare
        assert (starts == ((ids % 2 == 0) | SPECIALS.is_special()[ids])).all()


def test_masks_that_split_words_are_noticed() -> None:
    mask = MaskSettings(unit="whole-word")
    batch = instances_of(Builder(BuildSettings(SPECIALS, length=64, stored_masks=True, mask=mask)), TOKENS)
    check_instances(batch, SPECIALS, 64, mask)
    starts, offsets = list_column(batch["word_starts"])
    none = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(np.zeros(len(starts), bool)))
    special = SPECIALS.is_special()[list_column(batch["input_ids"])[0]]
    ends = np.zeros(len(starts), bool)
    ends[offsets[:-1]] = ends[offsets[1:] - 1] = True
    joined = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ends & special))
    number = batch.schema.get_field_index("word_starts")
    for column, what in ((none, "special token continues"), (joined, "masked in part")):
        with pytest.raises(errors.InvariantBroken, match=what):
            check_instances(batch.set_column(number, batch.schema.field(number), column), SPECIALS, 64, mask)
    with pytest.raises(errors.InvariantBroken, match="wrong number of masks"):
        check_instances(batch, SPECIALS, 64, dataclasses.replace(mask, rate=0.05))


def test_tokens_without_word_starts_are_refused() -> None:
    with pytest.raises(ValueError, match="word_starts"):
        instances_of(Builder(BuildSettings(SPECIALS, mask=MaskSettings(unit="span"))), random_corpus(5))
