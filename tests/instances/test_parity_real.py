"""sop, n-grams and spans as built from real text, against what ALBERT and SpanBERT publish. Limits: p = 1e-4."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import seeds
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.mask_runs import NGRAM_SHARES, run_lengths, span_shares, thresholds
from corpusforge.instances.mask_units import words_of
from corpusforge.instances.masking import Masker, MaskSettings, mask_counts
from corpusforge.instances.source import Source, list_column, read_source
from tests.instances.distributions import DEVIATIONS, fits, same_counts, same_distribution
from tests.instances.real_tokens import wikipedia
from tests.instances.token_batches import instances_of
from tests.oracles import bert_pairs, mask_streams

SHARES = {"ngram": NGRAM_SHARES, "span": span_shares()}
MEANS = {"ngram": 18 / 11, "span": 3.797}
"""ALBERT: 6/11, 3/11, 2/11 of 1, 2, 3 words; SpanBERT: "a mean span length of 3.8" words."""


@pytest.fixture(scope="module")
def real(shared_data):
    return wikipedia(shared_data)


@pytest.mark.slow
def test_sop_has_alberts_lengths_and_swaps(real):
    tokens, specials = real
    source = read_source(tokens)
    plan = Builder(BuildSettings(specials, "sop", 128, seed=3)).plan(source)
    swapped = plan.label == 1
    assert len(swapped) > 20_000
    # ALBERT swaps where one more draw is below 0.5.
    assert abs(2 * swapped.sum() - len(swapped)) < (DEVIATIONS + 0.17) * math.sqrt(len(swapped))
    rng = random.Random(2)
    pairs = bert_pairs.pairs(structure_of(source), 125, 0.1, rng, consecutive=True, swap=True)
    peer = np.array([(label, len(a), len(b)) for _, a, b, label in pairs])
    chosen = ~alone(source, plan, swapped)
    assert chosen.mean() > 0.95
    for label in (0, 1):
        rows, others = np.flatnonzero(chosen & (plan.label == label)), peer[peer[:, 0] == label]
        assert abs(len(others) / len(rows) - 1) < 0.05
        assert same_distribution(plan.a_length[rows], others[:, 1])
        assert same_distribution(plan.b_length[rows], others[:, 2])
        assert same_distribution((plan.a_length + plan.b_length)[rows], others[:, 1:].sum(1))


def structure_of(source: Source) -> list[list[int]]:
    lengths = (source.ends - source.starts).tolist()
    return [lengths[a:b] for a, b in zip(source.offsets[:-1].tolist(), source.offsets[1:].tolist(), strict=True)]


def alone(source: Source, plan, swapped: np.ndarray) -> np.ndarray:
    """Which pairs are of chunks of one sentence, to which ALBERT gives a segment of another document: the sentence
    reaches the longest target by itself, or is the last of its document."""
    start = np.where(swapped, plan.b_start, plan.a_start)
    stop = np.where(swapped, plan.a_start + plan.a_length, plan.b_start + plan.b_length) - 1
    first, last = np.searchsorted(source.ends, start, "right"), np.searchsorted(source.ends, stop, "right")
    longest = (source.ends - source.starts)[first] >= 125
    return (first == last) | longest


@pytest.mark.parametrize("unit", ["ngram", "span"])
def test_masks_built_have_the_published_lengths(real, unit):
    tokens, specials = real
    tokens = tokens.slice(0, 1200)
    mask = MaskSettings(unit=unit)
    settings = BuildSettings(specials, "full-sentences", 512, stored_masks=True, mask=mask, seed=8)
    batch = instances_of(Builder(settings), tokens)
    bare = instances_of(Builder(dataclasses.replace(settings, stored_masks=False)), tokens)
    ids, offsets = list_column(bare.column("input_ids"))
    starts, _ = list_column(bare.column("word_starts"))
    keys = seeds.instance_keys(bare.column("document").to_numpy(), bare.column("index").to_numpy())
    masked = Masker(specials, mask, 8)(ids, offsets, keys, 0, starts)
    # What was drawn here again is what is stored.
    for name, values in (("masked_positions", masked.positions), ("masked_labels", masked.labels)):
        assert batch.column(name).equals(lists(values, masked.position_offsets, batch.column(name).type))
    assert list_column(batch.column("input_ids"))[0].tolist() == masked.input_ids.tolist()

    maskable = ~specials.is_special()[ids]
    units = words_of(maskable, starts, offsets)
    sizes = run_sizes(masked, units, offsets)
    runs = np.diff(masked.span_offsets)
    counts = np.bincount(sizes, minlength=len(SHARES[unit]) + 1)[1:]
    assert len(sizes) > 8_000 and len(counts) == len(SHARES[unit])

    # The lengths drawn for the runs that were placed have the published shares (Wald: even though the number of runs
    # depends on the draws).
    numbers = np.arange(len(sizes)) - np.repeat(masked.span_offsets[:-1], runs)
    sequences = np.repeat(seeds.words(8, "mask", keys, 0), runs)
    drawn = run_lengths(sequences, numbers, thresholds(SHARES[unit]))
    assert fits(np.bincount(drawn, minlength=len(counts) + 1)[1:], np.array(SHARES[unit]))
    spread = math.sqrt(sum(n * n * s for n, s in enumerate(SHARES[unit], 1)) - MEANS[unit] ** 2)
    assert abs(drawn.mean() - MEANS[unit]) < DEVIATIONS * spread / math.sqrt(len(drawn)) + 0.001

    # Nearly all are as long as drawn: the last of an instance ends with its budget.
    shortened = drawn.sum() - sizes.sum()
    assert 0 <= shortened < len(runs) * MEANS[unit] and abs(sizes.mean() / MEANS[unit] - 1) < 0.06

    # Built as the papers say, from other random numbers, they have the same lengths.
    rng, others = random.Random(4), []
    budgets = mask_counts(np.diff(offsets), mask)
    begins, lengths = units.begins.tolist(), units.sizes.tolist()
    for row in range(len(runs)):
        own = range(units.bounds[row], units.bounds[row + 1])
        words = [(begins[k], lengths[k]) for k in own]
        others += [size for _, size in mask_streams.runs(words, int(budgets[row]), unit, rng)]
    assert same_counts(counts, np.bincount(others, minlength=len(counts) + 1)[1:])


def run_sizes(masked, units, offsets) -> np.ndarray:
    """Words of each run."""
    begin = masked.spans + np.repeat(offsets[:-1], np.diff(masked.span_offsets))[:, None]
    return np.diff(np.searchsorted(units.begins, begin), axis=1)[:, 0]


def lists(values: np.ndarray, offsets: np.ndarray, kind: pa.DataType) -> pa.ListArray:
    values = values.astype(kind.value_type.to_pandas_dtype())
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
