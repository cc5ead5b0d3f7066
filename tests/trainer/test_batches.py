"""Batches hold what the shards hold, and static masks are dynamic masks at epoch 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import shards
from corpusforge.instances.masking import Masker, MaskSettings
from corpusforge.loader.corpus import Corpus, open_corpus
from corpusforge.loader.folder import load_specials
from corpusforge.loader.layout import cut_micro_batches
from corpusforge.loader.order import cut_pieces
from corpusforge.loader.rows import Rows, draw_masks, gather
from corpusforge.trainer.batches import make_batches
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]
MakeData = Callable[..., Data]


def opened(data: Data) -> Corpus:
    return open_corpus(shards.Manifest.load(data.instances).paths(data.instances, "train"))


def raw_rows(data: Data) -> list[dict]:  # type: ignore[type-arg]
    paths = shards.Manifest.load(data.instances).paths(data.instances, "train")
    return [row for path in paths for batch in shards.read_shard(path) for row in batch.to_pylist()]


def split(rows: Rows) -> list[list[int]]:
    return [part.tolist() for part in np.split(rows.ids.astype(np.int64), rows.offsets[1:-1])]


@pytest.mark.parametrize("room", [16, 48])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("files", [1, 4])
def test_gathered_rows_are_slices_of_the_instances(make_data: MakeData, room: int, pairs: bool, files: int) -> None:
    data = make_data(pairs=pairs, copies=2, files=files)
    corpus, raw = opened(data), raw_rows(data)
    pieces = cut_pieces(corpus, room)
    chosen = np.random.default_rng(0).permutation(len(pieces.rows))
    rows = gather(corpus, pieces, chosen)
    masked_row = np.searchsorted(rows.offsets, rows.masked, side="right") - 1
    for k, (piece, ids) in enumerate(zip(chosen, split(rows), strict=True)):
        instance, shift, n = raw[pieces.rows[piece]], pieces.shifts[piece], pieces.lengths[piece]
        assert ids == [instance["input_ids"][0], *instance["input_ids"][1 + shift : n - 1 + shift], ids[-1]]
        assert ids[-1] == instance["input_ids"][-1]
        found = dict(
            zip((rows.masked - rows.offsets[k])[masked_row == k].tolist(), rows.labels[masked_row == k], strict=True)
        )
        stored = dict(zip(instance["masked_positions"], instance["masked_labels"], strict=True))
        assert found == {p - shift: label for p, label in stored.items() if 1 <= p - shift < n - 1}
    if pairs and rows.pair_labels is not None:
        assert rows.pair_labels.tolist() == [raw[r]["pair_label"] for r in pieces.rows[chosen]]


def test_static_masks_are_dynamic_masks_at_epoch_0(make_data: MakeData) -> None:
    dynamic, static = (opened(make_data(copies=copies, name=str(copies))) for copies in (0, 1))
    masker = Masker(load_specials(make_data(name="v").vocabulary), MaskSettings(), 0)
    drawn, stored = (gather(corpus, cut_pieces(corpus, 99), np.arange(len(corpus))) for corpus in (dynamic, static))
    drawn = draw_masks(drawn, masker, 0)
    for name in ("ids", "masked", "labels", "keys"):
        assert np.array_equal(getattr(drawn, name), getattr(stored, name)), name


@pytest.mark.parametrize("budget", [48, 200, 100_000])
def test_micro_batches_hold_every_row_once(make_data: MakeData, budget: int) -> None:
    data = make_data(pairs=True, copies=1)
    corpus = opened(data)
    rows = gather(corpus, cut_pieces(corpus, 48), np.arange(len(corpus)))
    seen = []
    for batch in make_batches(rows, budget, 0, segments=True, pairs=True):
        assert batch.size <= max(budget, 48)
        assert batch.pair_labels is not None
        is_real = torch.ones_like(batch.input_ids, dtype=torch.bool) if batch.is_real is None else batch.is_real
        assert (batch.input_ids[~is_real] == 0).all()
        assert batch.tokens == int(is_real.sum())
        B, T = batch.input_ids.shape
        assert is_real.flatten()[batch.masked].all()
        whole = batch.input_ids.clone()
        whole.view(-1)[batch.masked] = batch.labels
        for b in range(B):
            n = int(is_real[b].sum())
            masked = [(int(p) - b * T, int(v)) for p, v in zip(batch.masked, batch.labels, strict=True) if p // T == b]
            segment = int((batch.segment_ids[b] == 0)[:n].sum())
            row = (tuple(batch.input_ids[b, :n].tolist()), segment, int(batch.pair_labels[b]), tuple(masked))
            assert int(batch.segment_ids[b].sum()) == n - segment
            seen.append(row)
    masked_row = np.searchsorted(rows.offsets, rows.masked, side="right") - 1
    expected = []
    for k, ids in enumerate(split(rows)):
        places = (rows.masked - rows.offsets[k])[masked_row == k].tolist()
        masks = tuple(zip(places, rows.labels[masked_row == k].tolist(), strict=True))
        assert rows.pair_labels is not None
        expected.append((tuple(ids), int(rows.first_lengths[k]), int(rows.pair_labels[k]), masks))
    assert sorted(seen) == sorted(expected)


@given(st.lists(st.integers(3, 128), min_size=1, max_size=200), st.integers(128, 4096))
@example([3, 3, 3, 17, 25, 49], 336)  # one cut leaves another to be made
def test_cuts_keep_the_budget_and_bound_padding(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, np.int64)
    groups = cut_micro_batches(sizes, budget)
    assert sorted(np.concatenate(groups)) == list(range(len(lengths)))
    for group in groups:
        longest = -(-int(sizes[group].max()) // 8) * 8
        assert longest * len(group) <= budget
        for cut in range(1, len(group)):  # no cut would have saved an eighth of the budget
            rest = -(-int(sizes[group[cut:]].max()) // 8) * 8
            assert (longest - rest) * (len(group) - cut) * 8 < budget
