"""The builder: independent of shards and order; static, duplicated and dynamic masks are one function."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import schemas, seeds
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.masking import Masker
from corpusforge.instances.source import list_column
from corpusforge.instances.splits import is_heldout
from tests.instances.token_batches import SIZE, SPECIALS, all_negatives, instances_of, random_corpus, unmasked

CORPUS = random_corpus(200)
NEGATIVES = all_negatives(CORPUS)
FORMATS = ("doc-sentences", "segment-pair")


def builder(format, **changes):
    return Builder(BuildSettings(SPECIALS, format, **{"length": 48, "seed": 5, **changes}), NEGATIVES)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("copy", [0, 3])
def test_shards_and_order_change_nothing(format, copy):
    build = builder(format, stored_masks=True)
    expected = instances_of(build, CORPUS, copy)
    bounds = [0, 1, 2, 50, 51, 120, 200]
    parts = [instances_of(build, CORPUS.slice(a, b - a), copy) for a, b in itertools.pairwise(bounds)]
    assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([expected]).combine_chunks())
    shuffled = instances_of(build, CORPUS.take(pa.array(np.random.default_rng(0).permutation(200))), copy)
    by_place = [("document", "ascending"), ("index", "ascending")]
    assert sorted_rows(shuffled, by_place) == sorted_rows(expected, by_place)


def sorted_rows(batch, keys):
    return batch.take(pa.compute.sort_indices(batch, keys)).to_pylist()


@pytest.mark.parametrize("format", FORMATS)
def test_static_is_dynamic_at_epoch_0(format):
    compare(instances_of(builder(format, stored_masks=True), CORPUS), instances_of(builder(format), CORPUS), epoch=0)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("redraw", ["pairs", "masks"])
def test_duplicate_k_is_dynamic_at_epoch_k(format, redraw):
    stored, bare = (builder(format, stored_masks=masks, copies_redraw=redraw) for masks in (True, False))
    for copy in (0, 1, 7):
        compare(instances_of(stored, CORPUS, copy), instances_of(bare, CORPUS, copy), epoch=copy)
    if redraw == "masks":  # then the loader's epochs over the one dynamic corpus are the copies
        compare(instances_of(stored, CORPUS, 7), instances_of(bare, CORPUS), epoch=7)


def compare(stored, bare, epoch):
    """Masks stored in one batch are those the loader draws for the other, bit for bit."""
    ids, offsets = list_column(bare.column("input_ids"))
    keys = seeds.instance_keys(bare.column("document").to_numpy(), bare.column("index").to_numpy())
    masked = Masker(SPECIALS, BuildSettings(SPECIALS).mask, 5)(ids, offsets, keys, epoch)
    assert list_column(stored.column("input_ids"))[0].tolist() == masked.input_ids.tolist()
    assert list_column(stored.column("masked_positions"))[0].tolist() == masked.positions.tolist()
    assert list_column(stored.column("masked_positions"))[1].tolist() == masked.position_offsets.tolist()
    assert list_column(stored.column("masked_labels"))[0].tolist() == masked.labels.tolist()
    assert unmasked(stored) == unmasked(bare)


def test_copies_redraw_pairs_or_only_masks():
    pairs, masks = (builder("segment-pair", copies_redraw=redraw) for redraw in ("pairs", "masks"))
    assert unmasked(instances_of(pairs, CORPUS, 0)) != unmasked(instances_of(pairs, CORPUS, 1))
    assert unmasked(instances_of(masks, CORPUS, 0)) == unmasked(instances_of(masks, CORPUS, 1))
    assert set(instances_of(masks, CORPUS, 4).column("copy").to_pylist()) == {4}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("masks", [True, False])
def test_batches_have_the_schema(format, masks):
    build = builder(format, stored_masks=masks)
    assert build.schema == schemas.instances_schema(SIZE, masks=masks)
    batch = instances_of(build, CORPUS)
    batch.validate(full=True)
    assert batch.schema == build.schema
    index = batch.column("index").to_numpy().astype(int)
    fresh = np.diff(batch.column("document").to_numpy(), prepend=0) != 0
    assert (index[fresh] == 0).all() and (np.diff(index)[~fresh[1:]] == 1).all()


def test_a_sliced_batch_is_read_right():
    sliced = CORPUS.slice(37, 60)
    copied = pa.RecordBatch.from_pylist(sliced.to_pylist(), CORPUS.schema)
    for format in FORMATS:
        assert instances_of(builder(format), sliced).equals(instances_of(builder(format), copied))


def test_heldout_share():
    keys = np.arange(100_000, dtype=np.uint64)
    assert abs(is_heldout(keys, 1, 0.05).mean() - 0.05) < 0.005
    assert not is_heldout(keys, 1, 0.0).any()
    assert (is_heldout(keys, 1, 0.05) <= is_heldout(keys, 1, 0.1)).all()


def test_unknown_formats_are_refused():
    with pytest.raises(ValueError, match="no-such"):
        Builder(BuildSettings(SPECIALS, "no-such"))
    assert pickle.loads(pickle.dumps(BuildSettings(SPECIALS))) == BuildSettings(SPECIALS)
