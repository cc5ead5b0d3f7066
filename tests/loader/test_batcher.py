"""Batches of a folder: every instance once an epoch, the same for whoever reads, masks those of the duplicates."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from corpusforge import errors
from corpusforge.instances.masking import MaskSettings
from corpusforge.loader import Batch, Batcher, BatchSettings
from corpusforge.loader.epochs import BYTES_A_UNIT, BYTES_OF_BATCHES, BYTES_OF_PACKS
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]
MakeData = Callable[..., Data]

PADDED = BatchSettings(tokens=256)
PACKED = BatchSettings(tokens=256, packing=True)
KINDS = {
    "padded": PADDED,
    "bins": BatchSettings(tokens=256, bins=(16, 32, 64), bits=32),
    "packed": PACKED,
    "packed rows": BatchSettings(tokens=256, packing=True, row_length=64),
}


def opened(data: Data, settings: BatchSettings, **more: object) -> Batcher:
    return Batcher(data.instances, settings, vocab_folder=data.vocabulary, **more)  # type: ignore[arg-type]


def same(one: Batch, other: Batch) -> bool:
    names = [name for name in vars(one) if vars(one)[name] is not None]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def originals(batch: Batch) -> list[tuple[int, tuple[int, ...]]]:
    """Key and unmasked ids of every instance of a batch."""
    flat = batch.input_ids.ravel().copy()
    flat[batch.masked] = batch.labels
    places = zip(batch.begins.tolist(), batch.lengths.tolist(), strict=True)
    return [(int(k), tuple(flat[a : a + n].tolist())) for k, (a, n) in zip(batch.keys, places, strict=True)]


def everything(data: Data) -> list[tuple[int, tuple[int, ...]]]:
    """The same of all instances of the folder."""
    corpus = opened(data, PADDED).corpus
    parts = np.split(corpus.ids.whole(np.arange(len(corpus))), np.cumsum(corpus.lengths)[:-1])
    return sorted((int(k), tuple(ids.tolist())) for k, ids in zip(corpus.keys, parts, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pairs", [False, True])
def test_every_epoch_holds_every_instance_once_and_whole(make_data: MakeData, kind: str, pairs: bool) -> None:
    data, settings = make_data(pairs=pairs, files=3), KINDS[kind]
    batcher = opened(data, settings)
    found = {}
    for epoch in (0, 1, 5):
        extent = batcher.extent(epoch)
        batches = [batcher.batch(position) for position in range(batcher.begin(epoch), batcher.begin(epoch + 1))]
        assert len(batches) == extent.batches
        assert {batch.epoch for batch in batches} == {epoch}
        found[epoch] = [row for batch in batches for row in originals(batch)]
        assert sorted(found[epoch]) == everything(data)
        assert extent.instances == len(found[epoch])
        assert extent.tokens == sum(batch.tokens for batch in batches)
        assert extent.size == sum(batch.size for batch in batches)
        assert 0 <= extent.padding < (0.5 if settings.bins else 0.3)
        for batch in batches:
            check_layout(batch, settings)
    assert found[0] != found[1] != found[5]


def check_layout(batch: Batch, settings: BatchSettings) -> None:
    """What a batch says of its places, against a plain loop over its instances."""
    B, T = batch.input_ids.shape
    assert settings.tokens >= B * T
    assert batch.input_ids.dtype == batch.labels.dtype == (np.int32 if settings.bits == 32 else np.int64)
    if settings.bins:
        assert T in settings.bins
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copies", [0, 3])
def test_workers_threads_and_beginnings_change_nothing(make_data: MakeData, kind: str, copies: int) -> None:
    data = make_data(copies=copies, count=40)
    batcher = opened(data, KINDS[kind])
    stop = 3 * batcher.extent().batches + 2
    plain = [batcher.batch(position) for position in range(stop)]
    assert [batch.position for batch in plain] == list(range(stop))
    for start, workers, threads in ((0, 1, 0), (0, 1, 3), (3, 2, 1), (1, 5, 2), (stop - 1, 3, 0), (stop, 1, 1)):
        other = opened(data, KINDS[kind])
        parts = [list(other.iterate(start, stop, worker=w, workers=workers, threads=threads)) for w in range(workers)]
        found = [batch for some in itertools.zip_longest(*parts) for batch in some if batch is not None]
        assert [batch.position for batch in found] == list(range(start, stop))
        assert all(same(one, plain[one.position]) for one in found)
    endless = list(itertools.islice(batcher.iterate(2), stop - 2))
    assert all(same(one, other) for one, other in zip(endless, plain[2:], strict=True))


def read_in_process(batcher: Batcher, positions: list[int]) -> list[Batch]:
    return [batcher.batch(position) for position in positions]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_make_the_same_batches(make_data: MakeData, method: str) -> None:
    batcher = opened(make_data(), PACKED)
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        odd, even = pool.map(read_in_process, [batcher, batcher], [[1, 3, 5], [0, 2, 4]])
    for batch in [*odd, *even]:
        assert same(batch, batcher.batch(batch.position))


@pytest.mark.parametrize("kind", ["padded", "packed"])
def test_dynamic_masks_at_epoch_k_are_those_of_duplicate_k(make_data: MakeData, kind: str) -> None:
    dynamic, stored = (opened(make_data(copies=copies, name=str(copies)), KINDS[kind]) for copies in (0, 3))
    for epoch in range(3):
        ours, theirs = (
            {
                (int(key), tuple(batch.input_ids.ravel()[begin : begin + n].tolist()))
                for position in range(batcher.begin(epoch), batcher.begin(epoch + 1))
                for batch in [batcher.batch(position)]
                for key, begin, n in zip(batch.keys, batch.begins, batch.lengths, strict=True)
            }
            for batcher in (dynamic, stored)
        )
        assert ours == theirs
    assert stored.locate(stored.begin(3))[0] == 3


def test_batches_do_not_depend_on_how_instances_lie_in_shards(make_data: MakeData) -> None:
    one, many = (opened(make_data(files=files, name=str(files)), PACKED) for files in (1, 5))
    assert all(same(one.batch(position), many.batch(position)) for position in range(20))


def test_another_seed_and_other_masks(make_data: MakeData) -> None:
    data = make_data()
    plain, other = opened(data, PADDED), opened(data, PADDED, seed=1)
    assert not same(plain.batch(0), other.batch(0))
    half = opened(data, PADDED, masking=MaskSettings(rate=0.5))
    assert same_ids(half.batch(0), plain.batch(0))
    assert len(half.batch(0).masked) > 2 * len(plain.batch(0).masked)
    held = opened(data, PADDED, table="heldout")  # its masks are stored
    assert held.extent().instances == 12


def same_ids(one: Batch, other: Batch) -> bool:
    return originals(one) == originals(other)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_tiny_corpora(make_data: MakeData, count: int, kind: str) -> None:
    batcher = opened(make_data(count=count, files=1), KINDS[kind])
    batches = list(batcher.iterate(stop=5, threads=2))
    assert len(batches) == 5
    assert sum(batch.tokens for batch in batches[: batcher.extent().batches]) == batcher.extent().tokens


def test_settings_that_cannot_work(make_data: MakeData, tmp_path: Path) -> None:
    data = make_data()
    for settings, word in (
        (BatchSettings(tokens=40), "tokens"),
        (BatchSettings(tokens=40, packing=True), "row_length"),
        (BatchSettings(tokens=64, packing=True, row_length=65), "tokens"),
        (BatchSettings(tokens=640, bins=(16, 40)), "bins"),
        (BatchSettings(tokens=640, bins=(64, 32)), "ascending"),
        (BatchSettings(tokens=640, multiple=0), "multiple"),
        (BatchSettings(tokens=640, bits=16), "bits"),
    ):
        with pytest.raises(errors.RecipeInvalid, match=word):
            opened(data, settings)
    with pytest.raises(errors.RecipeInvalid, match="stored"):
        opened(make_data(copies=1, name="stored"), PADDED, masking=MaskSettings())
    with pytest.raises(errors.StageMismatch, match="word starts"):
        opened(data, PADDED, masking=MaskSettings(unit="span"))
    with pytest.raises(errors.CorpusForgeError):
        Batcher(str(tmp_path / "nothing"))


@pytest.mark.parametrize("kind", ["padded", "packed"])
def test_what_is_held_for_each_instance(make_data: MakeData, kind: str) -> None:
    batcher = opened(make_data(count=2000, files=1), KINDS[kind])
    batcher.batch(batcher.begin(1) - 1)
    batcher.batch(batcher.begin(1))
    epochs = batcher._epochs
    held = [array for copy in epochs._copies for array in (copy.instances, copy.ranks, copy.ends, copy.widths)]
    held += [array for order in epochs._orders.values() for array in order]
    assert len(epochs._orders) == 2
    stated = BYTES_OF_BATCHES + (BYTES_OF_PACKS if kind == "packed" else 0)
    units = len(epochs._copies[0].widths)
    assert sum(array.nbytes for array in held if array is not None) == 2000 * stated + units * BYTES_A_UNIT + 8


def test_a_batcher_travels(make_data: MakeData) -> None:
    batcher = opened(make_data(), PADDED, seed=3)
    assert same(pickle.loads(pickle.dumps(batcher)).batch(7), batcher.batch(7))


def test_what_goes_wrong_in_a_thread_is_raised(make_data: MakeData, monkeypatch: pytest.MonkeyPatch) -> None:
    batcher = opened(make_data(), PADDED)

    def broken(positions: object) -> list[Batch]:
        raise OSError("disk gone")

    monkeypatch.setattr(batcher, "batches", broken)
    with pytest.raises(OSError, match="disk gone"):
        next(batcher.iterate(threads=2))
