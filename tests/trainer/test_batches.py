"""Tensors equal the shards, and packed instances give the same results as instances in separate rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from corpusforge.arrays import offsets_of
from corpusforge.loader import Batcher
from corpusforge.loader.corpus import Rows, cut_to_length, gather, open_corpus
from corpusforge.loader.layout import lay_out
from corpusforge.loader.packing import BatchSettings
from corpusforge.sections import Pretrain
from corpusforge.shards import Manifest
from corpusforge.trainer import attention
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.attention import Packed
from corpusforge.trainer.batches import Batch, padded_shapes, to_tensors
from corpusforge.trainer.heldout import frozen_batches
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.prepare import prepare
from corpusforge.trainer.step import batch_losses, gradients
from tests.draws import draws
from tests.laid_out import laid_out
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]
MakeData = Callable[..., Data]


def shape_of(family: str = "bert", **changes: object) -> Architecture:
    base = Architecture(family, 2, 32, 2, 64, 300, 64, 1 if family == "roberta" else 2, 1e-12, 0.0, 1, True)
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def made_up_rows(lengths: list[int], *, spans: bool = False) -> Rows:
    """Rows of random ids, every third token of each masked."""
    rng = np.random.default_rng(0)
    sizes = np.array(lengths, np.int64)
    offsets = offsets_of(sizes)
    masked = np.concatenate([np.arange(a + 1, b - 1, 3) for a, b in pairwise(offsets)])
    return Rows(
        ids=rng.integers(5, 300, offsets[-1]),
        lengths=sizes,
        first_lengths=np.maximum(2, sizes // 2),
        keys=np.arange(len(sizes), dtype=np.uint64),
        pair_labels=rng.integers(0, 2, len(sizes)).astype(np.int8),
        masked=masked,
        labels=rng.integers(5, 300, len(masked)),
        span_sides=np.stack([masked - 1, masked + 1], 1) if spans else None,
    )


def made_of(rows: Rows, padding_id: int, budget: int = 10_000, *, packing: bool, **wanted: Any) -> list[Batch]:
    """The micro-batches of a step that reads these rows."""
    settings = BatchSettings(micro_batch_tokens=budget, packing=packing, fixed=wanted.get("fixed", False))
    return [to_tensors(laid, **wanted) for laid in laid_out(rows, settings, padding_id)]


def outcome(shape: Architecture, batches: list[Batch]) -> tuple[Tensor, dict[str, Tensor]]:
    """Sums and gradients of a step."""
    model = Encoder(shape).train()
    initialize(model, 0, 0.2)
    sums = gradients(model, batches, seed=0, step=0, device=torch.device("cpu"), dtype=None)
    assert sums is not None
    return sums, {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


def assert_equal(one: tuple[Tensor, dict[str, Tensor]], other: tuple[Tensor, dict[str, Tensor]]) -> None:
    assert torch.allclose(one[0], other[0], rtol=1e-5)
    assert one[1].keys() == other[1].keys()
    for name, gradient in one[1].items():
        assert torch.allclose(gradient, other[1][name], atol=1e-6, rtol=1e-3), name


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "spanbert"])
def test_packed_is_padded(family: str, fixed: bool) -> None:
    """Loss and gradient of every head, whatever the micro-batches."""
    lengths = [3, 17, 17, 40, 5, 64 - 2, 9, 17, 33, 4]
    changes: dict[str, object] = {
        "albert": {"embedding": 16, "is_shared": True, "activation": "gelu_new"},
        "spanbert": {"span_positions": 3, "pairs": False},
    }.get(family, {})
    shape = shape_of("bert" if family == "spanbert" else family, **changes)
    rows = made_up_rows(lengths, spans=family == "spanbert")
    wanted: dict[str, Any] = {"segments": shape.segments > 1, "pairs": shape.pairs, "spans": shape.span_positions}
    padded = outcome(shape, made_of(rows, shape.padding_id, packing=False, **wanted))
    counts = []
    for budget in (10_000, 100, 64):
        batches = made_of(rows, shape.padding_id, budget, packing=True, fixed=fixed, **wanted)
        assert sum(batch.tokens for batch in batches) == sum(lengths)
        assert_equal(padded, outcome(shape, batches))
        counts.append(len(batches))
        if fixed:
            kept = [{name: tuple(value.shape) for name, value in batch.tensors().items()} for batch in batches]
            assert all(batch.size % 256 == 0 for batch in batches)
            assert all(shapes["input_ids"] == kept[0]["input_ids"] for shapes in kept)
        else:
            assert all(batch.tokens == batch.size for batch in batches)
    assert counts == sorted(counts)
    assert counts[0] == 1


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@draws(60)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.booleans())
def test_every_kernel_is_attention_under_a_block_mask(lengths: list[int], is_sorted: bool) -> None:
    """`grouped` and `jagged` against the obvious oracle: one row and a mask that separates instances."""
    sizes = np.array(sorted(lengths) if is_sorted else lengths)
    N = int(sizes.sum())
    projected = torch.randn(N, 3, 2, 8, generator=torch.Generator().manual_seed(N), requires_grad=True)
    owner = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    query, key, value = projected.permute(1, 2, 0, 3)
    mask = owner[:, None] == owner[None, :]
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(0, 1).flatten(1)
    cost = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    (wanted,) = torch.autograd.grad((expected * cost).sum(), projected)
    bounds = torch.from_numpy(offsets_of(sizes).astype(np.int32))
    runs = tuple((1, int(size)) for size in sizes)
    packed = Packed(torch.zeros(1, N), bounds[:-1], bounds, int(sizes.max()), runs)
    for kernel in (attention.grouped, attention.jagged):
        found = kernel(projected, packed, 0.0)
        assert torch.allclose(found, expected, atol=1e-5), kernel
        (gradient,) = torch.autograd.grad((found * cost).sum(), projected)
        assert torch.allclose(gradient, wanted, atol=1e-5), kernel


def test_rows_of_a_set_length_are_taken_too() -> None:
    """As the loader packs them: several rows, each padded at its end."""
    shape, rows = shape_of("roberta", pairs=True), made_up_rows([20, 9, 9, 30, 5])
    padded = outcome(shape, made_of(rows, 1, packing=False, segments=False, pairs=True))
    laid = lay_out(rows, np.array([3, 2]), 40, 1)
    packed = to_tensors(laid, segments=False, pairs=True)
    assert packed.input_ids.shape == (2, 40)
    assert_equal(padded, outcome(shape, [packed]))
    assert_equal(padded, outcome(shape, [padded_shapes(packed)]))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kernel", [attention.grouped, attention.jagged])
def test_dropout_of_attention_drops(kernel: Callable[[Tensor, Packed, float], Tensor]) -> None:
    """About its share, and the same under the same seed."""
    (batch,) = made_of(made_up_rows([200, 200]), 1, packing=True, segments=False, pairs=False)
    assert batch.packed is not None
    projected = torch.zeros(400, 3, 1, 1)  # equal weights of 1/200 for values of 1
    projected[:, 2] = 1
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        found.append(kernel(projected, batch.packed, 0.25))
    assert torch.equal(found[0], found[1])
    assert float(found[0].std()) == pytest.approx((0.25 / 0.75 / 200) ** 0.5, rel=0.15)


def test_a_row_does_not_see_its_neighbours() -> None:
    """Changing one instance changes nothing in the others, to the bit."""
    shape = shape_of()
    model = Encoder(shape).eval()
    initialize(model, 0, 0.2)
    rows = made_up_rows([9, 9, 7])
    (batch,) = made_of(rows, 1, packing=True, segments=True, pairs=True)
    before = model.encode(batch.input_ids, batch.segment_ids, batch.real)
    other = batch.input_ids.clone()
    other[0, 9:18] += 1
    after = model.encode(other, batch.segment_ids, batch.real)
    changed = (before != after).any(-1)[0]
    assert changed[9:18].all()
    assert not changed[:9].any()
    assert not changed[18:].any()


def test_silent_batches_add_nothing() -> None:
    shape, rows = shape_of(), made_up_rows([9, 12, 30])
    model = Encoder(shape)
    initialize(model, 0, 0.2)
    for packing in (False, True):
        (batch,) = made_of(rows, 1, packing=packing, segments=True, pairs=True)
        silent = batch.silent()
        sums, losses = batch_losses(model, silent, None)
        losses.mean(1, 1).backward()  # type: ignore[no-untyped-call]
        assert not sums.any()
        assert (silent.masked_count, silent.pair_count, silent.tokens) == (0, 0, 0)
        assert all(not weight.grad.any() for weight in model.parameters() if weight.grad is not None)


def test_flash_of_variable_length_is_called_as_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel needs a GPU: torch checks shapes and names of arguments here, a stand-in the numbers."""
    from torch.nn.attention import varlen

    sizes = [7, 3, 3, 1]
    bounds = torch.tensor([0, 7, 10, 13, 14, 14, 14], dtype=torch.int32)  # filled up at the end
    packed = Packed(torch.zeros(1, 14), bounds[:4], bounds, 8, tuple((1, size) for size in sizes), flash=True)
    projected = torch.randn(14, 3, 2, 8, requires_grad=True)
    meta = Packed(*(part.to("meta") if isinstance(part, Tensor) else part for part in packed))
    nowhere = torch.empty(14, 3, 2, 8, dtype=torch.bfloat16, device="meta", requires_grad=True)
    found = attention.varlen_of(nowhere, meta)
    assert (found.shape, found.dtype) == ((14, 16), torch.bfloat16)

    def stand_in(query: Tensor, key: Tensor, value: Tensor, q: Tensor, k: Tensor, most: int, more: int) -> Tensor:
        assert q is k is bounds
        assert most == more == 8
        parts = [torch.split(side, bounds.diff().tolist()) for side in (query, key, value)]
        mixed = [
            F.scaled_dot_product_attention(*(p.transpose(0, 1) for p in part)) for part in zip(*parts, strict=True)
        ]
        return torch.cat([one.transpose(0, 1) for one in mixed])

    monkeypatch.setattr(varlen, "varlen_attn", stand_in)
    assert torch.allclose(attention.varlen_of(projected, packed), attention.grouped(projected, packed, 0.0), atol=1e-6)


@pytest.mark.parametrize("budget", [48, 200, 100_000])
def test_micro_batches_hold_every_row_once(make_data: MakeData, budget: int) -> None:
    data = make_data(pairs=True, copies=1)
    corpus = open_corpus(Manifest.load(data.instances).paths(data.instances, "train"))
    rows = gather(corpus, cut_to_length(corpus, 48), np.arange(len(corpus)))
    seen = []
    for laid in laid_out(rows, BatchSettings(micro_batch_tokens=budget), 0):
        batch = to_tensors(laid, segments=True, pairs=True)
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
    for k, ids in enumerate(np.split(rows.ids.astype(np.int64), rows.offsets[1:-1])):
        places = (rows.masked - rows.offsets[k])[masked_row == k].tolist()
        masks = tuple(zip(places, rows.labels[masked_row == k].tolist(), strict=True))
        assert rows.pair_labels is not None
        expected.append((tuple(ids.tolist()), int(rows.first_lengths[k]), int(rows.pair_labels[k]), masks))
    assert sorted(seen) == sorted(expected)


@pytest.mark.parametrize("packing", [False, True])
def test_the_loader_gives_the_trainers_own_batches(make_data: MakeData, small_run: Pretrain, packing: bool) -> None:
    """A user of another framework reads what a run of one part would train on here."""
    data = make_data(pairs=True)
    changed = dataclasses.replace(small_run, packing=packing, short_share=0.0)
    job = prepare(data.instances, changed, vocab_folder=data.vocabulary)
    settings = BatchSettings(changed.batch_tokens, changed.micro_batch_tokens, packing=packing)
    batcher = Batcher(data.instances, settings, vocab_folder=data.vocabulary)
    for step, made in enumerate(batcher.iterate(stop=changed.steps)):
        theirs = job.batches(step)
        assert len(made) == len(theirs)
        for ours, batch in zip(made, theirs, strict=True):
            assert np.array_equal(ours.input_ids, batch.input_ids.numpy())
            assert np.array_equal(ours.masked, batch.masked.numpy())
            assert np.array_equal(ours.labels, batch.labels.numpy())
            assert np.array_equal(ours.segment_ids(), batch.segment_ids.numpy())
    held = Batcher(data.instances, batcher.settings, table="heldout", vocab_folder=data.vocabulary)
    frozen = frozen_batches(held.corpus, job.masker, 48, changed.micro_batch_tokens, 0, segments=True)
    for ours, batch in zip(held.frozen(), frozen, strict=True):
        assert np.array_equal(ours.input_ids, batch.input_ids.numpy())
