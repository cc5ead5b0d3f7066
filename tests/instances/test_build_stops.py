"""Each invariant of the build report is broken on purpose, somewhere in the builder, and the build stops."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors, seeds, shards
from corpusforge.instances import builder as module
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.formats import find_format
from corpusforge.instances.masking import Masker, MaskSettings
from corpusforge.instances.measure import judge, judge_whole
from corpusforge.instances.negatives import Negatives
from corpusforge.instances.source import list_column
from corpusforge.sections.instances import FORMATS
from tests.instances.test_word_starts_built import corpus_with_words
from tests.instances.token_batches import SPECIALS, all_negatives

TOKENS = corpus_with_words()
NEGATIVES = all_negatives(TOKENS)


def build(format: str, copies: int = 1, tokens: pa.RecordBatch = TOKENS, **changes: Any) -> dict[str, Any]:
    """The statistics of a stage of one unit: all copies, summed and judged."""
    settings = BuildSettings(SPECIALS, format, 48, stored_masks=True, **changes)
    total: dict[str, Any] = {}
    for built in Builder(settings, NEGATIVES).copies(tokens, copies):
        shards.add_statistics(total, built.statistics)
    ratios = judge(total, where="train", length=48, mask=settings.mask, words=len(SPECIALS.words()))
    return {**total, "ratios": ratios}


def after(monkeypatch, name: str, change) -> None:
    """Change what a function of the builder returns."""
    original = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **how: change(original(*given, **how)))


def planned(monkeypatch, format: str, plan) -> None:
    """Replace the plan of a format."""
    formats = importlib.import_module(f"corpusforge.instances.{FORMATS[format].module}").FORMATS
    monkeypatch.setitem(formats, format, formats[format]._replace(plan=plan))


def replaced(column: str, change):
    """A change of one column of a plan, or of masks."""

    def changed(value):
        values = getattr(value, column).copy()
        change(values, value)
        columns = {column: values}
        return value._replace(**columns) if hasattr(value, "_replace") else dataclasses.replace(value, **columns)

    return changed


def put(row: int, value: int):
    return lambda values, _: values.__setitem__(row, value)


def add(row: Any, value: int):
    return lambda values, _: values.__setitem__(row, values[row] + value)


@pytest.mark.parametrize("format", ["doc-sentences", "full-sentences", "segment-pair", "sentence-pair", "sop"])
@pytest.mark.parametrize("unit", ["token", "whole-word", "ngram", "span"])
def test_nothing_stops_a_sound_build(format, unit):
    statistics = build(format, 3, mask=MaskSettings(unit=unit))
    ratios = statistics["ratios"]
    assert 0.1 < ratios["masked"] < 0.2 and 0.9 < ratios["masked_of_budget"] <= 1
    assert {"fill", "unknown_share", "instances_per_document", "masked_as_mask"} <= set(ratios)
    assert statistics["documents_lost"] == statistics["specials_in_text"] == 0


def own_documents(plan):
    """Random segments of the documents they were drawn for."""
    rows = np.flatnonzero(plan.b_foreign)
    keys = module.read_source(TOKENS).keys[plan.document[rows]]
    starts = plan.b_start.copy()
    starts[rows] = np.concatenate(([0], NEGATIVES.ends))[NEGATIVES.offsets[np.searchsorted(NEGATIVES.keys, keys)]]
    lengths = np.where(plan.b_foreign, 1, plan.b_length)
    return dataclasses.replace(plan, b_start=starts, b_length=lengths)


def without_a_document(plan):
    keep = np.flatnonzero(plan.document != plan.document[0])
    return type(plan)(**{name: column[keep] for name, column in vars(plan).items()})


PLANS = [
    ("doc-sentences", replaced("a_length", add(0, -1)), "leave out or repeat"),
    ("doc-sentences", replaced("a_start", add(3, -1)), "leave out or repeat"),
    ("doc-sentences", lambda plan: plan.rows(0, len(plan.document) - 1), "end of the last document"),
    ("doc-sentences", replaced("document", lambda values, _: values.__isub__(1)), "crosses the end"),
    ("full-sentences", replaced("a_start", add(3, 1)), "leave out or repeat"),
    ("full-sentences", lambda plan: plan.rows(0, len(plan.document) - 1), "the beginning or the end"),
    ("segment-pair", replaced("b_length", put(2, 0)), "segment of a pair is empty"),
    ("segment-pair", replaced("b_start", lambda v, p: np.copyto(v, p.a_start, where=p.label == 0)), "and is not"),
    ("segment-pair", replaced("label", lambda values, _: values.__ixor__(1)), "does not say where B is from"),
    ("segment-pair", own_documents, "from the document of A"),
    ("segment-pair", without_a_document, "documents without an instance: 1, expected 0"),
    ("sentence-pair", own_documents, "from the document of A"),
    ("sop", replaced("label", lambda values, _: values.__ixor__(1)), "which segment is the first"),
    ("sop", replaced("a_length", add(slice(None), -1)), "segment of a pair is empty|do not follow each other"),
]


@pytest.mark.parametrize(("format", "change", "what"), PLANS)
def test_plans(format, change, what, monkeypatch):
    plan = find_format(format).plan
    planned(monkeypatch, format, lambda *given: change(plan(*given)))
    with pytest.raises(errors.InvariantBroken, match=what):
        build(format)


def test_longer_than_allowed(monkeypatch):
    plan = find_format("doc-sentences").plan

    def too_long(source, negatives, settings, copy):
        return plan(source, negatives, dataclasses.replace(settings, length=settings.length + 1), copy)

    planned(monkeypatch, "doc-sentences", too_long)
    with pytest.raises(errors.InvariantBroken, match="longer than 48"):
        build("doc-sentences")


@pytest.mark.parametrize(
    ("place", "what"),
    [
        (lambda offsets: offsets[:-1], r"begin with \[CLS\]"),
        (lambda offsets: offsets[1:] - 1, r"end with \[SEP\]"),
        (lambda offsets: offsets[:-1] + 1, None),
    ],
)
def test_frames(place, what, monkeypatch):
    def spoiled(assembled):
        ids, offsets = assembled
        ids[place(offsets)[5]] = 5000 if what else SPECIALS.cls
        return ids, offsets

    after(monkeypatch, "assemble", spoiled)
    with pytest.raises(errors.InvariantBroken, match=what or "inside a segment"):
        build("doc-sentences")


def masks_of(change):
    """A mask function with a fault; masks are drawn, then changed."""

    class Faulty(Masker):
        def __call__(self, ids, offsets, keys, epoch=0, word_starts=None):
            return change(super().__call__(ids, offsets, keys, epoch, word_starts))

    return Faulty


def with_settings(**changes):
    """A mask function that masks as other settings say."""

    class Other(Masker):
        def __init__(self, specials, settings, seed):
            super().__init__(specials, dataclasses.replace(settings, **changes), seed)

    return Other


def unmasked_position(masked):
    free = np.setdiff1d(np.arange(1, 20), masked.positions[: masked.position_offsets[1]])[0]
    ids = masked.input_ids.copy()
    ids[free] = 5000
    return masked._replace(input_ids=ids)


class RandomSpecials(Masker):
    def __init__(self, specials, settings, seed):
        super().__init__(specials, settings, seed)
        self._words = np.array([SPECIALS.cls, 1], np.uint16)


class OneEpoch(Masker):
    def __call__(self, ids, offsets, keys, epoch=0, word_starts=None):
        return super().__call__(ids, offsets, keys, 0, word_starts)


MASKS = [
    (with_settings(rate=0.2), "token", "wrong number of masks"),
    (with_settings(rate=0.5), "span", "wrong number of masks"),
    (with_settings(unit="token"), "whole-word", "masked in part"),
    (with_settings(mask_share=0.6), "token", "masked as mask"),
    (with_settings(random_share=0.2), "ngram", "masked as (random|kept)"),
    (with_settings(mask_share=0.2), "span", "masked as mask"),
    (masks_of(replaced("labels", add(0, 1))), "token", "differs from the text"),
    (masks_of(unmasked_position), "token", "differs from the text"),
    (RandomSpecials, "token", "random token is a special"),
]


@pytest.mark.parametrize(("masker", "unit", "what"), MASKS)
def test_masks(masker, unit, what, monkeypatch):
    monkeypatch.setattr(module, "Masker", masker)
    with pytest.raises(errors.InvariantBroken, match=what):
        build("doc-sentences", mask=MaskSettings(unit=unit))


@pytest.mark.parametrize("format", ["doc-sentences", "segment-pair"])
def test_copies_with_the_same_masks(format, monkeypatch):
    monkeypatch.setattr(module, "Masker", OneEpoch)
    build(format)  # nothing is wrong with one copy
    with pytest.raises(errors.InvariantBroken, match="have the same masks"):
        build(format, 3, copies_redraw="masks")


def test_copies_may_agree_where_there_is_no_choice():
    words = TOKENS.slice(0, 0)
    for rate in (0.0, 1.0):
        build("doc-sentences", 2, mask=MaskSettings(rate=rate, mask_share=1.0, random_share=0.0))
    assert not build("doc-sentences", 2, tokens=words)["documents"]


@pytest.mark.parametrize(("format", "stage"), [("segment-pair", "pair-cut"), ("sop", "sop-swap")])
def test_labels_that_are_not_fair_coins(format, stage, monkeypatch):
    words = seeds.words
    monkeypatch.setattr(seeds, "words", lambda seed, name, *given: words(seed, name, *given) >> (name == stage))
    with pytest.raises(errors.InvariantBroken, match="labels drawn 1"):
        build(format)


def test_special_ids_in_text():
    ids, offsets = list_column(TOKENS.column("ids"))
    ids = ids.copy()
    ids[70] = SPECIALS.mask
    spoiled = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids))
    with pytest.raises(errors.InvariantBroken, match="inside a segment"):
        build("doc-sentences", tokens=TOKENS.set_column(1, TOKENS.schema.field(1), spoiled))


def test_a_random_segment_from_the_document_itself(monkeypatch):
    """The fault is in the table of negatives: it forgets who is asking."""
    draw = Negatives.draw
    monkeypatch.setattr(Negatives, "draw", lambda self, keys, documents, *rest: draw(self, keys, documents * 0, *rest))
    with pytest.raises(errors.InvariantBroken, match="from the document of A"):
        build("segment-pair", 10)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"rows": {"train": 7, "heldout": 1}}, "instances on disk: 7, expected 8"),
        ({"documents": 6}, "documents encoded: 5, expected 6"),
        ({"encoded": {"documents": 5, "tokens": 91}}, "source_tokens of all parts: 90, expected 91"),
        ({"heldout": {"documents": 2, "source_tokens": 10, "instances": 1}}, "documents of all parts: 6, expected 5"),
    ],
)
def test_what_gets_lost_between_steps(change, what):
    parts = {
        "train": {"documents": 4, "source_tokens": 80, "instances": 8},
        "heldout": {"documents": 1, "source_tokens": 10, "instances": 1},
    }
    figures = {"documents": 5, "encoded": {"documents": 5, "tokens": 95, "tokens_too_long": 5}}
    figures |= {"rows": {"train": 8, "heldout": 1}, "where": "out"}
    judge_whole(parts, **figures)
    parts |= {split: change.pop(split) for split in list(change) if split in parts}
    with pytest.raises(errors.InvariantBroken, match=what):
        judge_whole(parts, **{**figures, **change})
