"""The order of the data: a permutation each epoch, nothing lost or doubled, the same for any sharding."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.loader.corpus import Corpus, Ragged, cut_to_length
from corpusforge.loader.order import Part, Ramp, Stream, order_of, streams
from corpusforge.sections import Pretrain
from corpusforge.trainer.training_plan import training_plan


def corpus_of(lengths: list[int], firsts: list[int] | None = None, copies: list[int] | None = None) -> Corpus:
    """Instances of these lengths; ids are not read."""
    n = len(lengths)
    nothing = Ragged([], np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Corpus(
        ids=nothing,
        masked_positions=None,
        masked_labels=None,
        keys=np.arange(1, n + 1, dtype=np.uint64) * np.uint64(7919),
        lengths=np.array(lengths, np.int32),
        first_lengths=np.array(firsts or lengths, np.int32),
        pair_labels=np.zeros(n, np.int8) if firsts else None,
        copies=np.array(copies or [0] * n, np.uint16),
    )


lengths = st.lists(st.integers(3, 40), min_size=1, max_size=30)


@given(lengths, st.integers(8, 40))
def test_chunks_put_together_are_the_instances(sizes: list[int], room: int) -> None:
    chunks = cut_to_length(corpus_of(sizes), room)
    for row, length in enumerate(sizes):
        ours = np.flatnonzero(chunks.rows == row)
        tokens = [t + chunks.shifts[k] for k in ours for t in range(1, chunks.lengths[k] - 1)]
        assert tokens == list(range(1, length - 1))
        assert len(ours) == max(1, -(-(length - 2) // (room - 2)))  # as few as can be, about equally long
        assert np.ptp(chunks.lengths[ours]) <= 1
    assert chunks.lengths.max() <= room
    assert len(np.unique(chunks.keys)) == len(chunks.keys)


def truncated(a: list[int], b: list[int], room: int) -> list[int]:
    """The slow rule: while too long, the longer loses a token (tie: B, as in BERT), A its first and B its last."""
    while len(a) + len(b) > room:
        if len(a) > len(b):
            a = a[1:]
        else:
            b = b[:-1]
    return [*a, *b]


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=20), st.integers(8, 40))
def test_pairs_lose_the_longer_side_first(sizes: list[tuple[int, int]], room: int) -> None:
    corpus = corpus_of([a + b + 3 for a, b in sizes], [a + 2 for a, _ in sizes])
    chunks = cut_to_length(corpus, room)
    for k, (a, b) in enumerate(sizes):
        kept = truncated(list(range(1, a + 1)), list(range(a + 2, a + b + 2)), room - 3)
        expected = [0, *kept, a + b + 2]
        expected.insert(sum(1 for t in kept if t <= a) + 1, a + 1)  # the [SEP] between
        ours = [0, *(t + chunks.shifts[k] for t in range(1, chunks.lengths[k] - 1)), a + b + 2]
        assert (ours, chunks.first_lengths[k]) == (expected, ours.index(a + 1) + 1)


@given(lengths, st.integers(40, 200), st.integers(0, 5))
def test_every_epoch_reads_every_chunk_once_and_steps_are_full(sizes: list[int], tokens: int, seed: int) -> None:
    stream = Stream(corpus_of(sizes), Part(3, 43, 40, tokens), 0, seed, 2)
    read = [pair for step in range(3, 43) for pair in stream.step(step)]
    assert [e for e, _ in itertools.groupby(epoch for epoch, _ in read)] == list(range(2, read[-1][0] + 1))
    for epoch in range(2, read[-1][0]):  # the last may not be whole
        chunks = np.concatenate([chosen for e, chosen in read if e == epoch])
        assert sorted(chunks) == list(range(len(sizes)))
    sizes = [sum(stream.chunks.lengths[chosen].sum() for _, chosen in stream.step(step)) for step in range(3, 43)]
    assert all(abs(size - tokens) < 40 for size in sizes)
    assert abs(sum(sizes) - 40 * tokens) < 40
    assert stream.next_epoch() == read[-1][0] + 1


@given(st.lists(st.integers(0, 9), max_size=40))
def test_equal_words_keep_their_order(words: list[int]) -> None:
    for chosen in (words, sorted(set(words), key=lambda word: word * 7 % 10)):
        expected = sorted(range(len(chosen)), key=lambda k: chosen[k])
        assert order_of(np.array(chosen, np.uint64)).tolist() == expected


def test_epochs_differ_and_a_new_stream_agrees() -> None:
    corpus = corpus_of([10] * 50)
    one, two = (Stream(corpus, Part(0, 20, 40, 100), 0, 7, 0) for _ in range(2))
    assert one.step(0)[0][1].tolist() != one.step(5)[0][1].tolist()
    for step in (17, 3, 3, 11):
        ours, theirs = one.step(step), two.step(step)
        assert [(e, c.tolist()) for e, c in ours] == [(e, c.tolist()) for e, c in theirs]


def test_order_follows_the_instances_not_the_rows() -> None:
    corpus = corpus_of([5, 9, 30, 12, 7, 21])
    turned = np.array([4, 2, 0, 1, 5, 3])
    other = dataclasses.replace(
        corpus, keys=corpus.keys[turned], lengths=corpus.lengths[turned], first_lengths=corpus.lengths[turned]
    )
    ours = Stream(corpus, Part(0, 9, 40, 40), 0, 0, 0).step(4)
    theirs = Stream(other, Part(0, 9, 40, 40), 0, 0, 0).step(4)
    assert [(e, c.tolist()) for e, c in ours] == [(e, turned[c].tolist()) for e, c in theirs]


def test_epoch_k_reads_copy_k() -> None:
    corpus = corpus_of([10, 12, 14] * 3, copies=[0] * 3 + [1] * 3 + [2] * 3)
    stream = Stream(corpus, Part(0, 30, 40, 40), 0, 0, 0)
    for step in range(30):
        for epoch, chosen in stream.step(step):
            assert (corpus.copies[stream.chunks.rows[chosen]] == epoch % 3).all()
    assert stream.epochs() == 30 * 40 / 36


def test_epochs_are_numbered_on_after_the_switch() -> None:
    given_settings = Pretrain(preset="bert-tiny", steps=20, batch_tokens=100, short_length=16, short_share=0.5)
    corpus = corpus_of([40, 30, 12, 8, 9])
    short, full = streams(corpus, training_plan(given_settings, corpus.longest).parts, 0)
    last = max(epoch for epoch, _ in short.step(9))
    assert full.step(10)[0][0] == last + 1
    assert (short.part.length, full.part.length, full.part.start) == (16, 40, 10)


def test_the_effective_length_is_computed_once() -> None:
    stream = Stream(corpus_of([2, 4]), Part(0, 9, 40, 40), 0, 0, 0)
    assert stream.effective_length == (4 + 16) / 6
    stream.chunks.lengths[:] = 0  # a log line must not go through all chunks again
    assert stream.effective_length == (4 + 16) / 6


def test_an_epoch_begins_where_its_first_token_is_read() -> None:
    ramp = Ramp(0.25, 20)
    stream = Stream(corpus_of([10, 12, 14, 9] * 3, copies=[0] * 5 + [1] * 7), Part(3, 60, 40, 80, ramp), 0, 0, 4)
    read = [(step, epoch) for step in range(3, 60) for epoch, _ in stream.step(step)]
    assert stream.begin(4) == 3
    for epoch in range(5, read[-1][1]):
        first = min(step for step, e in read if e == epoch)
        assert stream.begin(epoch) in (first - 1, first)  # its first instance may begin in the step after its token
        assert stream.size(epoch)[0] == (5 if epoch % 2 == 0 else 7)
