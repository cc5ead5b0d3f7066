"""Which instances a batch holds: hypothesis over lengths, budgets and copies."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusforge.loader.corpus import Corpus, Ragged
from corpusforge.loader.epochs import BatchSettings, Epochs, cut_bins

LENGTHS = st.lists(st.integers(3, 60), min_size=1, max_size=80)
SHAPES = st.builds(
    BatchSettings,
    tokens=st.integers(64, 400),
    multiple=st.sampled_from([1, 8, 16]),
    bins=st.sampled_from([(), (16, 64), (60,)]),
    packing=st.booleans(),
    row_length=st.sampled_from([0, 60, 64]),
)


def corpus_of(lengths: list[int], copies: list[int] | None = None) -> Corpus:
    """Instances of these lengths; ids are not looked at."""
    n = len(lengths)
    nothing = Ragged([], np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int32))
    return Corpus(
        ids=nothing,
        masked_positions=None,
        masked_labels=None,
        keys=np.arange(1, n + 1, dtype=np.uint64) * np.uint64(7919),
        lengths=np.array(lengths, np.int32),
        first_lengths=np.array(lengths, np.int32),
        pair_labels=None,
        copies=np.array(copies or [0] * n, np.uint16),
    )


@settings(deadline=None)
@given(LENGTHS, SHAPES, st.integers(0, 3), st.integers(1, 3))
def test_every_epoch_is_a_partition(lengths: list[int], shape: BatchSettings, seed: int, copies: int) -> None:
    corpus = corpus_of(lengths * copies, [k for k in range(copies) for _ in lengths])
    epochs = Epochs(corpus, shape, seed)
    for epoch in (0, 1, copies + 1):
        seen, size, slots = [], 0, 0
        for position in range(epochs.begin(epoch), epochs.begin(epoch + 1)):
            assert epochs.locate(position) == (epoch, position - epochs.begin(epoch))
            chosen = epochs.choose(position)
            assert chosen.epoch == epoch
            held = corpus.lengths[chosen.instances]
            rows = [int(some.sum()) for some in np.split(held, np.cumsum(chosen.members)[:-1])]
            assert 0 < min(rows) <= max(rows) <= chosen.width
            assert len(rows) * chosen.width <= shape.tokens
            seen += chosen.instances.tolist()
            size += len(rows) * chosen.width
            slots += 1
        own = np.flatnonzero(corpus.copies == epoch % copies)
        assert sorted(seen) == own.tolist()
        extent = epochs.extent(epoch)
        assert extent == (slots, len(own), sum(lengths), size)


@given(LENGTHS, SHAPES)
def test_only_the_last_batch_of_an_epoch_has_room_for_a_row(lengths: list[int], shape: BatchSettings) -> None:
    shape = dataclasses.replace(shape, packing=False)
    widths = np.sort(shape.widths(np.array(lengths)))[::-1].astype(np.int32)
    ends = cut_bins(widths, shape.tokens)
    assert (ends[0], ends[-1]) == (0, len(lengths))
    for begin, end in itertools.pairwise(ends[:-1]):
        assert (end - begin) * widths[begin] <= shape.tokens < (end - begin + 1) * widths[begin]


def test_epochs_and_seeds_differ_and_a_new_reader_agrees() -> None:
    corpus, shape = corpus_of([10] * 300), BatchSettings(tokens=128)
    one, two, other = Epochs(corpus, shape, 7), Epochs(corpus, shape, 7), Epochs(corpus, shape, 8)
    per_epoch = one.extent().batches
    assert one.choose(0).instances.tolist() != one.choose(per_epoch).instances.tolist()
    assert one.choose(0).instances.tolist() != other.choose(0).instances.tolist()
    for position in (5, 2 * per_epoch + 1, 3, 10**6):
        assert np.array_equal(one.choose(position).instances, two.choose(position).instances)


def test_batches_of_all_lengths_come_mixed() -> None:
    """Long batches do not come first, and instances of one batch part in the next epoch."""
    lengths = np.random.default_rng(0).integers(3, 60, 4000).tolist()
    epochs = Epochs(corpus_of(lengths), BatchSettings(tokens=512), 0)
    count = epochs.extent().batches
    widths = np.array([epochs.choose(k).width for k in range(count)])
    assert abs(np.corrcoef(np.arange(count), widths)[0, 1]) < 0.2
    first = set(epochs.choose(0).instances.tolist())
    later = [set(epochs.choose(k).instances.tolist()) for k in range(count, 2 * count)]
    assert max(len(first & some) for some in later) < len(first) / 2
