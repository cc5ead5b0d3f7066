"""The step on its kernels: packed runs learn the same, compiled ones too, and no step waits for the device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from corpusforge.sections import Pretrain
from corpusforge.trainer.cost import estimate
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.prepare import Job, prepare
from corpusforge.trainer.step import compiled, gradients
from tests.made_up_instances import Data
from tests.trainer.training_runs import RecordedProgress, logged, train

pytest_plugins = ["tests.made_up_data"]
MakeData = Callable[..., Data]


def job_of(data: Data, settings: Pretrain) -> Job:
    return prepare(data.instances, settings, vocab_folder=data.vocabulary)


@pytest.mark.slow
def test_packing_is_a_matter_of_kernels(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    """Without dropout a run learns the same packed, padded and with fixed shapes."""
    data, found = make_data(pairs=True), []
    for packing in (True, False):
        settings = dataclasses.replace(small_run, dropout=0.0, packing=packing)
        recorded = RecordedProgress()
        facts = train(data, tmp_path / str(packing), settings, progress=recorded)
        kernel = "packed, grouped kernel" if packing else "padded rows"
        assert f"attention: {kernel}" in recorded.lines
        assert logged(tmp_path / str(packing))[0]["attention"] == facts["attention"] == kernel
        assert estimate(data.instances, settings, vocab_folder=data.vocabulary)["attention"] == kernel
        found.append(facts)
    assert found[0]["loss"] == pytest.approx(found[1]["loss"], rel=1e-4)
    assert found[0]["tokens"] == found[1]["tokens"]
    padding = [line["padding"] for line in logged(tmp_path / "True") if "padding" in line]
    assert padding == [0.0] * len(padding)


WAITS = ("item", "cpu", "tolist", "numpy", "__bool__", "__int__", "__float__", "nonzero", "__index__")
"""Methods of a tensor that make the host wait for the device."""


@pytest.mark.parametrize("kind", ["packed", "fixed", "padded"])
def test_a_step_never_waits_for_the_device(
    make_data: MakeData, small_run: Pretrain, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from corpusforge.trainer import log
    from corpusforge.trainer.optimizers import make_optimizer
    from corpusforge.trainer.step import update

    settings = dataclasses.replace(small_run, packing=kind != "padded", compile=kind == "fixed")
    job = job_of(make_data(pairs=True), settings)
    model = Encoder(job.shape)
    initialize(model, 0)
    optimizer = make_optimizer(model, job.plan.preset, 1e-3, job.plan.optimizer)
    calls: list[str] = []

    def counted(name: str) -> Any:
        really = getattr(Tensor, name)

        def call(self: Tensor, *arguments: Any, **options: Any) -> Any:
            calls.append(name)
            return really(self, *arguments, **options)

        return call

    def step(number: int) -> None:
        sums = gradients(model, job.batches(number), seed=0, step=number, device=job.device, dtype=job.dtype)
        assert sums is not None
        meter.add(sums, update(model, optimizer, learning_rate=1e-3, clip=1.0), 1, 1)

    meter = log.Meter([])
    step(0)  # sets up the optimiser's state
    with monkeypatch.context() as patch:
        for name in WAITS:
            patch.setattr(Tensor, name, counted(name))
        step(1)
        assert calls == []
        meter.read()
        assert calls == ["tolist"]  # what the count would have seen


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_compiled_step_is_the_step(make_data: MakeData, small_run: Pretrain, precision: str) -> None:
    settings = dataclasses.replace(
        small_run, compile=True, dropout=0.0, precision=precision, batch_tokens=600, micro_batch_tokens=300
    )
    job = job_of(make_data(pairs=True), settings)
    model = Encoder(job.shape)
    initialize(model, 0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    # What inductor makes of the graphs is tested below: here the C++ compiler would take a minute.
    fast, steps = compiled(model, fixed=True, backend="aot_eager"), (7, 8, 9)
    found = []
    for run in (model, fast, fast):
        model.zero_grad()
        sums = [gradients(run, job.batches(k), seed=0, step=k, device=job.device, dtype=job.dtype) for k in steps]
        assert all(value is not None for value in sums)
        kept = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
        found.append((torch.stack(sums), kept, torch._dynamo.utils.counters["frames"]["ok"]))  # type: ignore[arg-type]
    tolerance = 1e-4 if precision == "fp32" else 3e-2
    assert torch.allclose(found[0][0], found[1][0], rtol=tolerance)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert (one - other).norm() <= tolerance * one.norm() + 1e-6
    assert [frames for _, _, frames in found] == [0, found[1][2], found[1][2]]  # nothing is compiled twice
    assert found[1][2] > 0
    kinds = {tuple(map(str, (value.shape for value in b.tensors().values()))) for k in steps for b in job.batches(k)}
    assert len(kinds) <= 2


@pytest.mark.slow
def test_a_compiled_run_ends(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data = make_data()
    losses = []
    for compile in (False, True):
        settings = dataclasses.replace(small_run, compile=compile, dropout=0.0, steps=2, short_share=0.0)
        losses.append(train(data, tmp_path / str(compile), settings)["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
