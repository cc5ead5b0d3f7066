"""Instances end to end in one row are the same to the model as instances in rows of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from corpusforge.arrays import offsets_of
from corpusforge.loader.layout import lay_out
from corpusforge.loader.rows import Rows
from corpusforge.trainer import attention
from corpusforge.trainer.attention import Packed
from corpusforge.trainer.batches import Batch, make_batches
from corpusforge.trainer.losses import batch_losses
from corpusforge.trainer.model import Architecture, Encoder, initialise
from corpusforge.trainer.packed import deal, filled_up, packed_batches, to_packed_tensors
from corpusforge.trainer.step import gradients


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


def outcome(shape: Architecture, batches: list[Batch]) -> tuple[Tensor, dict[str, Tensor]]:
    """Sums and gradients of a step."""
    model = Encoder(shape).train()
    initialise(model, 0, 0.2)
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
    wanted = {"segments": shape.segments > 1, "pairs": shape.pairs, "spans": shape.span_positions}
    padded = outcome(shape, make_batches(rows, 10_000, shape.padding_id, **wanted))  # type: ignore[arg-type]
    counts = []
    for budget in (10_000, 100, 64):
        batches = packed_batches(rows, budget, shape.padding_id, fixed=fixed, **wanted)  # type: ignore[arg-type]
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
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.booleans())
def test_every_kernel_is_attention_under_a_block_mask(lengths: list[int], is_sorted: bool) -> None:
    """`grouped` and `jagged` against the obvious oracle: one row, a mask that keeps instances apart."""
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


@given(st.lists(st.integers(3, 128), min_size=1, max_size=300), st.integers(16, 4096))
def test_rows_are_dealt_out_evenly(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, np.int64)
    groups = deal(sizes, budget)
    assert sorted(np.concatenate(groups)) == list(range(len(lengths)))
    loads, counts = [int(sizes[group].sum()) for group in groups], [len(group) for group in groups]
    assert max(counts) - min(counts) <= 1
    assert max(loads) - min(loads) <= 128
    assert max(loads) <= budget + 128
    for group in groups:
        assert (np.diff(sizes[group]) <= 0).all()


def test_rows_of_a_set_length_are_taken_too() -> None:
    """As the loader packs them: several rows, each with a rest of padding."""
    shape, rows = shape_of("roberta", pairs=True), made_up_rows([20, 9, 9, 30, 5])
    padded = outcome(shape, make_batches(rows, 10_000, 1, segments=False, pairs=True))
    laid = lay_out(rows, np.array([3, 2]), 40, 1)
    packed = to_packed_tensors(laid, segments=False, pairs=True)
    assert packed.input_ids.shape == (2, 40)
    assert_equal(padded, outcome(shape, [packed]))
    assert_equal(padded, outcome(shape, [filled_up(packed)]))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kernel", [attention.grouped, attention.jagged])
def test_dropout_of_attention_drops(kernel: Callable[[Tensor, Packed, float], Tensor]) -> None:
    """About its share, and the same under the same seed."""
    (batch,) = packed_batches(made_up_rows([200, 200]), 1000, 1, segments=False, pairs=False)
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
    initialise(model, 0, 0.2)
    rows = made_up_rows([9, 9, 7])
    (batch,) = packed_batches(rows, 1000, 1, segments=True, pairs=True)
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
    initialise(model, 0, 0.2)
    for make in (make_batches, packed_batches):
        (batch,) = make(rows, 1000, 1, segments=True, pairs=True)
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
