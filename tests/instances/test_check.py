"""Every invariant can be broken, and is then found."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors, shards
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.check import check_cover, check_instances, check_pairs
from corpusforge.instances.masking import MaskSettings
from corpusforge.instances.measure import judge
from corpusforge.instances.source import list_column, read_source
from tests.instances.token_batches import SPECIALS, all_negatives, instances_of, random_corpus, tokens_of

CORPUS = random_corpus(60)
NEGATIVES = all_negatives(CORPUS)
SOURCE = read_source(CORPUS)


def broken(what):
    return pytest.raises(errors.InvariantBroken, match=what)


def changed(batch, name, change):
    """A batch with the values of one column changed; list columns keep their offsets."""
    column = batch.column(name)
    if pa.types.is_list(column.type):
        values, offsets = list_column(column)
        values = values.copy()
        change(values)
        new = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
    elif pa.types.is_fixed_size_list(column.type):
        values = column.flatten().to_numpy().copy()
        change(values)
        new = pa.FixedSizeListArray.from_arrays(pa.array(values), 2)
    else:
        values = column.to_numpy(zero_copy_only=False).copy()
        change(values)
        new = pa.array(values, column.type)
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), new)


def put(at, value):
    def change(values):
        values[at] = value

    return change


@pytest.fixture(scope="module")
def pairs():
    return instances_of(
        Builder(BuildSettings(SPECIALS, "segment-pair", length=48, stored_masks=True), NEGATIVES), CORPUS
    )


def check(batch, **changes):
    check_instances(batch, SPECIALS, **{"length": 48, "mask": MaskSettings(), **changes})


def test_a_sound_batch_passes(pairs):
    check(pairs)


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("length", put(3, 9), "stored length"),
        ("input_ids", put(0, 5000), r"begin with \[CLS\]"),
        ("input_ids", put(-1, 5000), r"end with \[SEP\]"),
        ("segment_lengths", put(0, 60), "do not add up"),
        ("segment_lengths", lambda v: v.reshape(-1, 2).__setitem__(0, (2, v[0] + v[1] - 2)), "segment is empty"),
        ("masked_positions", put(0, 60), "after the end of its instance"),
        ("masked_positions", put(1, 0), "do not ascend"),
        ("masked_labels", put(0, 102), "special token is masked"),
    ],
)
def test_broken_rows_are_found(pairs, name, change, what):
    with broken(what):
        check(changed(pairs, name, change))


def test_longer_than_allowed(pairs):
    with broken("longer than 20"):
        check(pairs, length=20)


def test_wrong_number_of_masks(pairs):
    with broken("wrong number of masks"):
        check(pairs, mask=MaskSettings(rate=0.5))


def test_a_special_inside_a_segment(pairs):
    ids, offsets = list_column(pairs.column("input_ids"))
    positions, _ = list_column(pairs.column("masked_positions"))
    free = next(i for i in range(1, 40) if i not in set(positions[:7].tolist()))
    assert ids[free] not in (SPECIALS.sep, SPECIALS.cls)
    with broken("inside a segment"):
        check(changed(pairs, "input_ids", put(free, SPECIALS.cls)))
    with broken("differs from the text"):
        check(pairs, originals=ids)
    with broken("a label without a pair"):
        check(
            changed(pairs, "pair_label", lambda v: None).set_column(
                2, pairs.schema.field(2), pa.nulls(len(offsets) - 1, pa.int8())
            )
        )


def test_cover():
    plan = Builder(BuildSettings(SPECIALS, length=48)).plan(SOURCE)
    check_cover(SOURCE, plan)
    with broken("leave out or repeat"):
        check_cover(SOURCE, dataclasses.replace(plan, a_length=plan.a_length - 1))
    with broken("end of the last document"):
        check_cover(SOURCE, plan.rows(0, len(plan.document) - 1))
    with broken("crosses the end"):
        check_cover(SOURCE, dataclasses.replace(plan, document=np.maximum(plan.document - 1, 0)))


def test_pair_plans():
    plan = Builder(BuildSettings(SPECIALS, "segment-pair", length=48), NEGATIVES).plan(SOURCE)
    check_pairs(SOURCE, plan, NEGATIVES, 45)
    with broken("is empty"):
        check_pairs(SOURCE, dataclasses.replace(plan, b_length=plan.b_length * 0), NEGATIVES, 45)
    with broken("A crosses"):
        check_pairs(SOURCE, dataclasses.replace(plan, document=plan.document[::-1]), NEGATIVES, 45)
    with broken("does not say"):
        check_pairs(SOURCE, dataclasses.replace(plan, label=1 - plan.label), NEGATIVES, 45)
    with broken("labelled as the continuation"):
        check_pairs(SOURCE, dataclasses.replace(plan, b_start=np.where(plan.b_foreign, plan.b_start, 0)), NEGATIVES, 45)
    rows = np.flatnonzero(plan.b_foreign)[:1]
    own = NEGATIVES.keys.searchsorted(SOURCE.keys[plan.document[rows]])
    start = plan.b_start.copy()
    start[rows] = np.concatenate(([0], NEGATIVES.ends))[NEGATIVES.offsets[own]]
    with broken("from the document of A"):
        check_pairs(SOURCE, dataclasses.replace(plan, b_start=start), NEGATIVES, 45)


def totals(format="segment-pair", **changes):
    total = {}
    for built in Builder(BuildSettings(SPECIALS, format, length=48, stored_masks=True, **changes), NEGATIVES).copies(
        CORPUS, 1
    ):
        shards.add_statistics(total, built.statistics)
    return total


def judged(statistics, **changes):
    settings = {"where": "train", "length": 48, "mask": MaskSettings(), "words": 29_000, **changes}
    return judge(statistics, **settings)


def test_judged_ratios():
    found = totals()
    ratios = judged(found)
    assert found["documents"] == 60
    assert sum(found["lengths"]) == found["instances"]
    assert sum(found["instances_per_document"]) == 60
    assert found["instances_per_document"][0] == found["documents_empty"] > 0
    assert 0.1 < ratios["masked"] < 0.2 and abs(ratios["masked_as_mask"] - 0.8) < 0.1
    assert abs(ratios["pairs_random"] - 0.5) < 0.15
    assert 0.5 < ratios["fill"] <= 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"documents_lost": 1}, "without an instance"),
        ({"specials_in_text": 2}, "special ids"),
        ({"masked_as_mask": 0}, "masked as mask"),
        ({"masked_as_random": 0}, "masked as random"),
        ({"pairs_drawn_random": 0}, "labels drawn 1"),
    ],
)
def test_what_must_not_be_is_refused(change, what):
    with broken(what):
        judged({**totals(), **change})


def test_nothing_judges_fine_and_specials_in_text_are_counted():
    assert judged({})["fill"] == 0
    tokens = tokens_of([[5, 5]])
    ids, offsets = list_column(tokens.column("ids"))
    ids = ids.copy()
    ids[3], ids[4] = SPECIALS.sep, SPECIALS.unk
    spoiled = tokens.set_column(
        1, tokens.schema.field(1), pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids))
    )
    with broken("inside a segment"):
        instances_of(Builder(BuildSettings(SPECIALS)), spoiled)


def test_copies_that_repeat_labels_do_not_repeat_coins():
    builder = Builder(BuildSettings(SPECIALS, "segment-pair", length=48, copies_redraw="masks"), NEGATIVES)
    total = {}
    for built in builder.copies(CORPUS, 20):
        shards.add_statistics(total, built.statistics)
    assert total["instances"] == 20 * (total["pairs_drawn"] + total["pairs_forced"] // 20)
    assert total["documents"] == 60
    judged(total)
