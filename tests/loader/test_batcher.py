"""Steps of a folder: every instance once an epoch, the same for every reader, masks as in the duplicated copies."""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from corpusforge import errors
from corpusforge.instances.masking import MaskSettings
from corpusforge.instances.measure import LENGTH_BINS
from corpusforge.loader import Batch, Batcher, BatchSettings, epoch_size
from corpusforge.loader.batcher import Feed, frozen_batches
from corpusforge.shards import Manifest
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]
MakeData = Callable[..., Data]

PADDED = BatchSettings(batch_tokens=400, micro_batch_tokens=256)
PACKED = BatchSettings(batch_tokens=400, micro_batch_tokens=256, packing=True)
KINDS = {
    "padded": PADDED,
    "32 bits": BatchSettings(400, 256, multiple=16, bits=32),
    "packed": PACKED,
    "packed, fixed": BatchSettings(400, 256, packing=True, fixed=True),
    "packed rows": BatchSettings(400, 256, packing=True, row_length=64),
}


def opened(data: Data, settings: BatchSettings, **more: object) -> Batcher:
    return Batcher(data.instances, settings, vocab_folder=data.vocabulary, **more)  # type: ignore[arg-type]


def same(one: Batch, other: Batch) -> bool:
    names = [name for name in vars(one) if vars(one)[name] is not None]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def same_steps(one: list[Batch], other: list[Batch]) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


def originals(batch: Batch) -> list[tuple[int, int, tuple[int, ...]]]:
    """Epoch, key and unmasked ids of every instance of a batch."""
    flat = batch.input_ids.ravel().copy()
    flat[batch.masked] = batch.labels
    places = zip(batch.begins.tolist(), batch.lengths.tolist(), strict=True)
    ids = [tuple(flat[a : a + n].tolist()) for a, n in places]
    return list(zip(batch.epochs.tolist(), batch.keys.tolist(), ids, strict=True))


def everything(data: Data, copy: int = 0) -> list[tuple[int, tuple[int, ...]]]:
    """Key and ids of all instances of a copy in the folder."""
    corpus = opened(data, PADDED).corpus
    parts = np.split(corpus.ids.whole(np.arange(len(corpus))), np.cumsum(corpus.lengths)[:-1])
    return sorted((int(k), tuple(ids.tolist())) for k, ids in zip(corpus.keys, parts, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pairs", [False, True])
def test_every_epoch_holds_every_instance_once_and_whole(make_data: MakeData, kind: str, pairs: bool) -> None:
    data, settings = make_data(pairs=pairs, files=3), KINDS[kind]
    batcher = opened(data, settings)
    orders = {}
    for epoch in (0, 1, 5):
        size = batcher.epoch_size(epoch)
        steps = [batcher.step(step) for step in range(batcher.begin(epoch), batcher.begin(epoch + 1) + 1)]
        assert size.steps <= len(steps) <= size.steps + 1
        batches = [batch for made in steps for batch in made]
        orders[epoch] = [(key, ids) for batch in batches for e, key, ids in originals(batch) if e == epoch]
        assert sorted(orders[epoch]) == everything(data)
        assert size.instances == len(orders[epoch])
        assert size.tokens == sum(len(ids) for _, ids in orders[epoch])
        inner = [batch for made in steps[1:-1] for batch in made]
        padding = 1 - sum(batch.tokens for batch in inner) / sum(batch.size for batch in inner)
        assert size.padding == pytest.approx(padding, abs=0.15)
        assert [(b.step, b.number) for b in steps[1]] == [(steps[1][0].step, k) for k in range(len(steps[1]))]
        for batch in batches:
            check_layout(batch, settings)
    assert orders[0] != orders[1] != orders[5]


def check_layout(batch: Batch, settings: BatchSettings) -> None:
    """The places of a batch, against a plain loop over its instances."""
    B, T = batch.input_ids.shape
    if settings.fixed:
        assert (B, T % 256) == (1, 0)
    elif settings.packing and not settings.row_length:
        assert batch.input_ids.shape == (1, batch.tokens)
        assert settings.micro_batch_tokens + batch.longest > T
    else:
        assert settings.micro_batch_tokens >= B * T
        assert not settings.row_length or settings.row_length == T
    assert batch.is_packed == settings.packing
    assert batch.input_ids.dtype == batch.labels.dtype == (np.int32 if settings.bits == 32 else np.int64)
    if not settings.packing:
        assert T % settings.multiple == 0
    segment, position, number = (np.zeros(B * T, int) for _ in range(3))
    edges = {0, B * T, *range(0, B * T, T)}
    for k, (begin, n, first) in enumerate(zip(batch.begins, batch.lengths, batch.first_lengths, strict=True)):
        assert begin // T == (begin + n - 1) // T  # in one row
        segment[begin + first : begin + n] = 1
        position[begin : begin + n] = range(n)
        number[begin : begin + n] = k + 1
        edges |= {int(begin), int(begin + n)}
    shape = batch.input_ids.shape
    assert (batch.segment_ids() == segment.reshape(shape)).all()
    assert (batch.positions() == position.reshape(shape)).all()
    assert (batch.instance_numbers() == number.reshape(shape)).all()
    assert (batch.is_real() == (number.reshape(shape) > 0)).all()
    assert (batch.input_ids[~batch.is_real()] == 0).all()
    assert batch.cu_seqlens().tolist() == sorted(edges)
    assert batch.longest == max(batch.lengths.tolist())
    dense = batch.dense_labels()
    assert (dense.ravel()[batch.masked] == batch.labels).all()
    assert (dense != -100).sum() == len(batch.masked) == len(np.unique(batch.masked))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copies", [0, 3])
def test_workers_threads_and_beginnings_change_nothing(make_data: MakeData, kind: str, copies: int) -> None:
    data = make_data(copies=copies, count=40)
    batcher = opened(data, KINDS[kind])
    stop = 3 * batcher.epoch_size().steps + 2
    plain = [batcher.step(step) for step in range(stop)]
    assert [batches[0].step for batches in plain] == list(range(stop))
    for start, workers, threads in ((0, 1, 0), (0, 1, 3), (3, 2, 1), (1, 5, 2), (stop - 1, 3, 0), (stop, 1, 1)):
        other = opened(data, KINDS[kind])
        parts = [list(other.iterate(start, stop, worker=w, workers=workers, threads=threads)) for w in range(workers)]
        read = [step for some in itertools.zip_longest(*parts) for step in some if step is not None]
        assert [batches[0].step for batches in read] == list(range(start, stop))
        assert all(same_steps(batches, plain[batches[0].step]) for batches in read)
    endless = list(itertools.islice(batcher.iterate(2), stop - 2))
    assert all(map(same_steps, endless, plain[2:]))


def read_in_process(batcher: Batcher, steps: list[int]) -> list[Batch]:
    return [batch for step in steps for batch in batcher.step(step)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_make_the_same_batches(make_data: MakeData, method: str) -> None:
    batcher = opened(make_data(), PACKED)
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        odd, even = pool.map(read_in_process, [batcher, batcher], [[1, 3, 5], [0, 2, 4]])
    for batch in [*odd, *even]:
        assert same(batch, batcher.step(batch.step)[batch.number])


@pytest.mark.parametrize("kind", ["padded", "packed"])
def test_dynamic_masks_at_epoch_k_are_those_of_duplicate_k(make_data: MakeData, kind: str) -> None:
    dynamic, stored = (opened(make_data(copies=copies, name=str(copies)), KINDS[kind]) for copies in (0, 3))
    ours, theirs = (
        {
            (epoch, int(key), tuple(batch.input_ids.ravel()[begin : begin + n].tolist()))
            for batches_of_step in batcher.iterate(stop=batcher.begin(3) + 1)
            for batch in batches_of_step
            for epoch, key, begin, n in zip(batch.epochs, batch.keys, batch.begins, batch.lengths, strict=True)
            if epoch < 3
        }
        for batcher in (dynamic, stored)
    )
    assert ours == theirs
    assert len(ours) == 3 * len(dynamic.corpus)


def test_batches_do_not_depend_on_how_instances_lie_in_shards(make_data: MakeData) -> None:
    one, many = (opened(make_data(files=files, name=str(files)), PACKED) for files in (1, 5))
    assert all(same_steps(one.step(step), many.step(step)) for step in range(20))


def test_another_seed_and_other_masks(make_data: MakeData) -> None:
    data = make_data()
    plain, other = opened(data, PADDED), opened(data, PADDED, seed=1)
    assert not same(plain.step(0)[0], other.step(0)[0])
    half = opened(data, PADDED, masking=MaskSettings(rate=0.5)).step(0)[0]
    assert originals(half) == originals(plain.step(0)[0])
    assert len(half.masked) > 2 * len(plain.step(0)[0].masked)
    held = opened(data, PADDED, table="heldout")  # its masks are stored
    assert held.epoch_size().instances == 12


def test_instances_are_cut_to_a_length(make_data: MakeData) -> None:
    data = make_data()
    short, plain = (opened(data, BatchSettings(300, 256, length=length)) for length in (24, 0))
    assert max(batch.longest for batches in short.iterate(stop=20) for batch in batches) == 24
    assert short.epoch_size().instances > plain.epoch_size().instances
    assert max(batch.longest for batch in short.frozen()) == 24


def test_held_out_batches_hold_every_instance_once_under_masks_that_stay(make_data: MakeData) -> None:
    data = make_data()
    held = opened(data, PADDED, table="heldout")
    keys = [key for batch in held.frozen() for key in batch.keys.tolist()]
    assert sorted(keys) == sorted(held.corpus.keys.tolist())
    sample = list(frozen_batches(held.corpus, None, held.corpus.longest, 256, 0, tokens=100))
    assert 100 <= sum(batch.tokens for batch in sample) < 100 + 2 * held.corpus.longest
    dynamic = opened(data, PADDED)  # nothing is stored: those of epoch 0
    epoch = {(k, i) for made in dynamic.iterate(stop=dynamic.begin(1) + 1) for b in made for k, i in masked(b)}
    assert {(k, i) for batch in dynamic.frozen() for k, i in masked(batch)} <= epoch


def masked(batch: Batch) -> list[tuple[int, tuple[int, ...]]]:
    spans = zip(batch.begins.tolist(), batch.lengths.tolist(), strict=True)
    ids = [tuple(batch.input_ids.ravel()[a : a + n].tolist()) for a, n in spans]
    return [(k, i) for k, i, e in zip(batch.keys.tolist(), ids, batch.epochs, strict=True) if e == 0]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_tiny_corpora(make_data: MakeData, count: int, kind: str) -> None:
    batcher = opened(make_data(count=count, files=1), KINDS[kind])
    steps = list(batcher.iterate(stop=5, threads=2))
    assert len(steps) == 5
    tokens = [sum(batch.tokens for batch in batches) for batches in steps]
    assert abs(sum(tokens) - 5 * 400) < 48


def test_settings_that_cannot_work(make_data: MakeData, tmp_path: Path) -> None:
    data = make_data()
    for settings, word in (
        (BatchSettings(micro_batch_tokens=40), "micro_batch_tokens"),
        (BatchSettings(batch_tokens=40), "batch_tokens"),
        (BatchSettings(packing=True, row_length=40), "row_length"),
        (BatchSettings(micro_batch_tokens=64, packing=True, row_length=65), "micro_batch_tokens"),
        (BatchSettings(multiple=0), "multiple"),
        (BatchSettings(bits=16), "bits"),
        (BatchSettings(length=4), "length"),
    ):
        with pytest.raises(errors.RecipeInvalid, match=word):
            opened(data, settings)
    with pytest.raises(errors.RecipeInvalid, match="stored"):
        opened(make_data(copies=1, name="stored"), PADDED, masking=MaskSettings())
    with pytest.raises(errors.StageMismatch, match="word starts"):
        opened(data, PADDED, masking=MaskSettings(unit="span"))
    with pytest.raises(errors.CorpusForgeError):
        Batcher(str(tmp_path / "nothing"))
    with pytest.raises(IndexError):
        opened(data, PADDED).step(-1)


def test_a_batcher_can_be_pickled(make_data: MakeData) -> None:
    batcher = opened(make_data(), PADDED, seed=3, masking=MaskSettings(rate=0.3))
    assert same_steps(pickle.loads(pickle.dumps(batcher)).step(7), batcher.step(7))


def test_an_error_in_a_thread_is_raised(make_data: MakeData, monkeypatch: pytest.MonkeyPatch) -> None:
    batcher = opened(make_data(), PADDED)

    def broken(steps: object) -> list[list[Batch]]:
        raise OSError("disk gone")

    monkeypatch.setattr(batcher, "steps", broken)
    with pytest.raises(OSError, match="disk gone"):
        next(batcher.iterate(threads=2))


def slow_square(number: int) -> int:
    time.sleep(0.003 if number % 3 else 0.0)
    return number * number


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order(threads: int) -> None:
    with Feed(slow_square, 3, 30, threads=threads) as feed:
        assert list(feed) == [n * n for n in range(3, 30)]
        with pytest.raises(IndexError):
            feed.next()
        assert feed.waited >= 0
    with Feed(slow_square, 3, 3) as feed:
        assert list(feed) == []


def test_no_end_and_no_thread_left_behind() -> None:
    before = threading.active_count()
    made = []
    with Feed(lambda n: made.append(n) or n, 0, None, threads=2) as feed:
        assert [feed.next() for _ in range(10)] == list(range(10))
    assert threading.active_count() == before
    assert len(made) <= 10 + 3 + 1  # no more than it may prepare


def test_an_error_comes_when_its_turn_comes() -> None:
    def make(number: int) -> int:
        if number == 2:
            raise KeyboardInterrupt
        return number

    with Feed(make, 0, 9, threads=3) as feed:
        assert [feed.next(), feed.next()] == [0, 1]
        with pytest.raises(KeyboardInterrupt):
            feed.next()
        assert feed.next() == 3


def add_statistics(data: Data, longest: int, copies: int) -> None:
    """Give a made-up folder the statistics that build-instances writes."""
    manifest = Manifest.load(data.instances)
    lengths = Batcher(data.instances, BatchSettings(), vocab_folder=data.vocabulary).corpus.lengths
    bins = np.bincount((lengths * LENGTH_BINS + longest - 1) // longest - 1, minlength=LENGTH_BINS)
    statistics = {"instances": len(lengths), "tokens": int(lengths.sum()), "lengths": bins.tolist()}
    section = {"length": longest, "masking": "duplicated" if copies else "dynamic", "copies": copies or 10}
    recipe = {"instances": section, "seed": 0}
    dataclasses.replace(manifest, statistics={"train": statistics}, recipe=recipe).save(data.instances)


@pytest.mark.slow
@pytest.mark.parametrize("copies", [0, 3])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("longest", [64, 512])
def test_the_manifest_gives_the_size_of_an_epoch(make_data: MakeData, longest: int, packing: bool, copies: int) -> None:
    data = make_data(count=300, longest=60, copies=copies)
    add_statistics(data, longest, copies)
    settings = BatchSettings(batch_tokens=2048, micro_batch_tokens=512, packing=packing)
    exact = Batcher(data.instances, settings, vocab_folder=data.vocabulary).epoch_size()
    short = dataclasses.replace(settings, length=32)
    exact_short = Batcher(data.instances, short, vocab_folder=data.vocabulary).epoch_size()
    for path in Path(data.instances).rglob("*.arrow"):
        path.unlink()
    size = epoch_size(data.instances, settings)
    assert size[:3] == exact[:3]
    assert size.padding == pytest.approx(exact.padding, abs=0.1)
    if longest == 64:  # bins of one token
        assert epoch_size(data.instances, short)[:3] == exact_short[:3]
    else:
        assert exact_short.steps <= epoch_size(data.instances, short).steps < 1.3 * exact_short.steps


def test_a_manifest_without_lengths_gives_no_size(make_data: MakeData) -> None:
    with pytest.raises(errors.StageMismatch, match="counts no instances of 'train'"):
        epoch_size(make_data().instances)
