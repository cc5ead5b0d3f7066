"""A step's gradient does not depend on how the step is divided into micro-batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch

from corpusforge.sections import Pretrain
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.prepare import prepare
from corpusforge.trainer.step import gradients
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]


@pytest.mark.parametrize("pairs", [False, True])
def test_accumulation_is_one_big_batch(make_data: Callable[..., Data], small_run: Pretrain, pairs: bool) -> None:
    data = make_data(pairs=pairs)
    found = []
    for budget in (10_000, 160, 48):
        settings = dataclasses.replace(small_run, micro_batch_tokens=budget, dropout=0.0, batch_tokens=1000)
        job = prepare(data.instances, settings, vocab_folder=data.vocabulary)
        batches = job.batches(7)
        model = Encoder(job.shape)
        initialize(model, 0)
        sums = gradients(model, batches, seed=0, step=7, device=job.device, dtype=None)
        assert sums is not None
        found.append((len(batches), sums, {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    (one, sums, whole), *others = found
    assert one < others[0][0] < others[1][0]
    for _, other_sums, parts in others:
        assert torch.allclose(sums, other_sums, rtol=1e-5)
        assert parts.keys() == whole.keys()
        for name, gradient in whole.items():
            assert torch.allclose(gradient, parts[name], atol=1e-6, rtol=1e-4), name


def test_dropout_is_a_function_of_the_step(make_data: Callable[..., Data], small_run: Pretrain) -> None:
    data = make_data()
    job = prepare(data.instances, small_run, vocab_folder=data.vocabulary)
    model = Encoder(job.shape)
    initialize(model, 0)
    sums = [gradients(model, job.batches(1), seed=0, step=step, device=job.device, dtype=None) for step in (1, 1, 2)]
    assert torch.equal(sums[0], sums[1])  # type: ignore[arg-type]
    assert not torch.equal(sums[0], sums[2])  # type: ignore[arg-type]
