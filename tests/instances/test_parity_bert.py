"""segment-pair as google-research/bert makes it: 20,000 and more instances of each side, all of their distributions.

The other side is a plain program written from the published procedure (`oracles.bert_pairs`, `oracles.bert_masks`),
with random numbers of its own. Limits are those of p = 1e-4.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import numpy as np
import pytest

from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.formats import Plan
from corpusforge.instances.masking import MaskSettings
from corpusforge.instances.source import list_column, read_source
from tests.instances.distributions import (
    DEVIATIONS,
    chi_square_limits,
    fits,
    same_counts,
    same_distribution,
    same_share,
)
from tests.instances.token_batches import SPECIALS, all_negatives, instances_of, tokens_of
from tests.oracles import bert_masks, bert_pairs

LENGTH, PREDICTIONS = 64, 9  # 0.15 * 64 is 9.6: the cap counts for the longest


class Pairs(NamedTuple):
    """Instances of one side, ``[n]``: the document of A; where segments begin in the corpus, and their tokens."""

    document: np.ndarray
    a_start: np.ndarray
    a_length: np.ndarray
    b_start: np.ndarray
    b_length: np.ndarray
    label: np.ndarray


class Masks(NamedTuple):
    """Masked tokens of one side, ``[masked]``: the row, the position in it, what is seen and the original; and the
    masks of each instance, ``[n]``."""

    row: np.ndarray
    position: np.ndarray
    seen: np.ndarray
    label: np.ndarray
    counts: np.ndarray


def structure() -> list[list[int]]:
    """Documents from one sentence up; sentences of 1 to 60 tokens, most of them short."""
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 30, 4000)
    return [np.clip(rng.lognormal(2.6, 0.8, n), 1, 60).astype(int).tolist() for n in counts]


STRUCTURE = structure()
TOKENS = tokens_of(STRUCTURE)
SOURCE = read_source(TOKENS)


@pytest.fixture(scope="module")
def ours() -> tuple[Pairs, Masks, np.ndarray]:
    """Pairs, masks, and the length of each instance."""
    negatives = all_negatives(TOKENS)
    mask = MaskSettings(max_predictions=PREDICTIONS)
    builder = Builder(
        BuildSettings(SPECIALS, "segment-pair", LENGTH, True, "pairs", "original", mask=mask, seed=11), negatives
    )
    plan, batch = builder.plan(SOURCE), instances_of(builder, TOKENS)
    ids, offsets = list_column(batch.column("input_ids"))
    positions, bounds = list_column(batch.column("masked_positions"))
    counts = np.diff(bounds)
    row = np.repeat(np.arange(len(counts)), counts)
    seen = ids[offsets[row] + positions]
    labels = list_column(batch.column("masked_labels"))[0]
    masks = Masks(row, positions.astype(int), seen, labels, counts)
    return pairs_of(plan, negatives), masks, np.diff(offsets)


def pairs_of(plan: Plan, negatives) -> Pairs:
    """Our plan, with the places of random segments in the corpus rather than among the negatives."""
    rows = np.flatnonzero(plan.b_foreign)
    home = negatives.row_of(plan.b_start[rows])
    order = np.argsort(SOURCE.keys)
    document = order[np.searchsorted(SOURCE.keys[order], negatives.keys[home])]
    before = np.concatenate(([0], negatives.ends))[negatives.offsets[home]]
    b_start = plan.b_start.copy()
    b_start[rows] += SOURCE.token_offsets[document] - before
    return Pairs(plan.document, plan.a_start, plan.a_length, b_start, plan.b_length, plan.label)


@pytest.fixture(scope="module")
def googles() -> tuple[Pairs, Masks, np.ndarray]:
    rng, begins = random.Random(1), SOURCE.token_offsets[:-1].tolist()
    found, rows, counts, lengths = [], [], [], []
    ids, frame, words = SOURCE.ids.tolist(), {SPECIALS.cls, SPECIALS.sep}, list(range(SPECIALS.size))
    for number, a, b, label in bert_pairs.pairs(STRUCTURE, LENGTH - 3, 0.1, rng):
        a_start, b_start = (begins[segment[0][0]] + segment[0][1] for segment in (a, b))
        text = [ids[a_start : a_start + len(a)], ids[b_start : b_start + len(b)]]
        instance = [SPECIALS.cls, *text[0], SPECIALS.sep, *text[1], SPECIALS.sep]
        seen, chosen = bert_masks.masks(
            instance, rng, frame=frame, mask_id=SPECIALS.mask, words=words, most=PREDICTIONS
        )
        rows += [(len(found), p, seen[p], instance[p]) for p in chosen]
        found.append((number, a_start, len(a), b_start, len(b), label))
        counts.append(len(chosen))
        lengths.append(len(instance))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Pairs(*np.array(found).T), Masks(*columns, np.array(counts)), np.array(lengths)


def sentence_of(position: np.ndarray) -> np.ndarray:
    return np.searchsorted(SOURCE.ends, position, "right")


def features(pairs: Pairs) -> dict[str, np.ndarray]:
    """Features of a pair: lengths, where the cut is in sentences, what truncation took, where B is from."""
    first, last = sentence_of(pairs.a_start), sentence_of(pairs.a_start + pairs.a_length - 1)
    b_first, b_last = sentence_of(pairs.b_start), sentence_of(pairs.b_start + pairs.b_length - 1)
    b_document = SOURCE.documents[b_first]
    before, behind = SOURCE.offsets[:-1][b_document], SOURCE.offsets[1:][b_document]
    return {
        "tokens": pairs.a_length + pairs.b_length,
        "tokens of A": pairs.a_length,
        "tokens of B": pairs.b_length,
        "sentences of A": last - first + 1,
        "sentences of B": b_last - b_first + 1,
        "lost at the front of A": pairs.a_start - SOURCE.starts[first],
        "lost at the end of A": SOURCE.ends[last] - pairs.a_start - pairs.a_length,
        "lost at the front of B": pairs.b_start - SOURCE.starts[b_first],
        "lost at the end of B": SOURCE.ends[b_last] - pairs.b_start - pairs.b_length,
        "sentences in front of A": first - SOURCE.offsets[:-1][pairs.document],
        "document of B": b_document,
        "place of B": (b_first - before) / (behind - before),
    }


@pytest.mark.slow
def test_there_are_enough_and_as_many(ours, googles):
    mine, theirs = len(ours[0].label), len(googles[0].label)
    assert min(mine, theirs) >= 20_000
    assert abs(mine - theirs) < 0.01 * theirs
    per_document = [np.bincount(pairs.document, minlength=len(STRUCTURE)) for pairs in (ours[0], googles[0])]
    assert same_distribution(*per_document)


def test_labels(ours, googles):
    mine, theirs = ours[0].label, googles[0].label
    assert same_share(mine.sum(), len(mine), theirs.sum(), len(theirs))
    assert 0.5 < mine.mean() < 0.6  # 53 to 57 % on usual text


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", list(features(Pairs(*np.zeros((6, 0), int)))))
def test_lengths_cuts_and_origins(ours, googles, name, label):
    mine, theirs = (features(pairs)[name][pairs.label == label] for pairs in (ours[0], googles[0]))
    assert same_distribution(mine, theirs)


def test_the_tests_can_fail(ours, googles):
    """The limits are narrow enough to notice `balanced`, and one token more or less."""
    balanced = Builder(BuildSettings(SPECIALS, "segment-pair", LENGTH), all_negatives(TOKENS)).plan(SOURCE)
    theirs = googles[0]
    assert not same_share((balanced.label == 1).sum(), len(balanced.label), theirs.label.sum(), len(theirs.label))
    assert not same_distribution(ours[0].a_length + 1, theirs.a_length)
    assert not same_counts(np.bincount(ours[1].counts + 1), np.bincount(googles[1].counts))


def test_mask_counts(ours, googles):
    for _, masks, lengths in (ours, googles):
        expected = [min(PREDICTIONS, max(1, round(n * 0.15))) for n in lengths.tolist()]
        assert masks.counts.tolist() == expected
    assert same_counts(np.bincount(ours[1].counts), np.bincount(googles[1].counts))


def test_mask_positions_are_uniform(ours, googles):
    """Of instances of the full length each of 61 words is masked as often as the others, no more evenly than chance."""
    for pairs, masks, lengths in (ours, googles):
        full = lengths == LENGTH
        own = full[masks.row]
        position, row = masks.position[own], masks.row[own]
        place = position - 1 - (position > pairs.a_length[row])
        found, count, words = np.bincount(place, minlength=LENGTH - 3), int(full.sum()), LENGTH - 3
        assert len(found) == words and count > 10_000
        share = PREDICTIONS / words
        # Drawn without replacement: cells vary by share * (1 - share), and depend on each other by their sum.
        statistic = ((found - count * share) ** 2).sum() / (count * share * (1 - share)) * (words - 1) / words
        low, high = chi_square_limits(words - 1)
        assert low < statistic < high


def test_masks_are_drawn_independently(ours, googles):
    """As many neighbors are masked together as google's draws give, and no position twice."""
    together = []
    for _, masks, lengths in (ours, googles):
        gaps = np.diff(masks.position)[np.diff(masks.row) == 0]
        assert gaps.min() >= 1
        neighbors = np.bincount(masks.row[1:][(np.diff(masks.row) == 0)][gaps == 1], minlength=len(lengths))
        together.append(neighbors)
    assert same_counts(*(np.bincount(side) for side in together))


def test_what_masked_tokens_become(ours, googles):
    counts = []
    for _, masks, _ in (ours, googles):
        as_mask, kept = masks.seen == SPECIALS.mask, masks.seen == masks.label
        counts.append(np.array([as_mask.sum(), kept.sum(), (~as_mask & ~kept).sum()]))
        assert fits(counts[-1], np.array([0.8, 0.1, 0.1]))
    assert same_counts(*counts)


def test_random_tokens_are_any_words(ours):
    _, masks, _ = ours
    swapped = masks.seen[(masks.seen != SPECIALS.mask) & (masks.seen != masks.label)]
    words = SPECIALS.words()
    assert np.isin(swapped, words).all()
    place = np.searchsorted(words, swapped) * 50 // len(words)
    shares = np.bincount(np.arange(len(words)) * 50 // len(words))
    assert fits(np.bincount(place, minlength=50), shares)


def test_labels_are_the_text(ours):
    """Labels are the text in their places; masked words come evenly from all of the text."""
    pairs, masks, _ = ours
    inside = masks.position - 1 < pairs.a_length[masks.row]
    place = np.where(
        inside,
        pairs.a_start[masks.row] + masks.position - 1,
        pairs.b_start[masks.row] + masks.position - pairs.a_length[masks.row] - 2,
    )
    assert (SOURCE.ids[place] == masks.label).all()
    share = masks.label.astype(float).mean() / SOURCE.ids.astype(float).mean()
    assert abs(share - 1) < DEVIATIONS * 0.3 / math.sqrt(len(masks.label)) + 0.01
