"""Each optimizer against the plain one: every weight, step by step, decay and adaptation where they belong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn

from corpusforge import sections
from corpusforge.sections import Pretrain
from corpusforge.sections.presets import find_preset
from corpusforge.trainer import checkpoint
from corpusforge.trainer.optimizers import make_optimizer
from tests.draws import draws
from tests.made_up_instances import Data
from tests.oracles.optimizers import Slow
from tests.trainer.training_runs import assert_equal_runs, stop_at, train

NAMES = [name for name in sections.settings()["pretrain.optimizer"].choices if name != "auto"]
pytest_plugins = ["tests.made_up_data"]

PRESET = find_preset("bert-tiny")


class Small(nn.Module):
    """A matrix that decays, one of zeros, a bias and a LayerNorm's weight that do not."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.matrix = nn.Parameter(torch.from_numpy(rng.normal(0, 0.02, (3, 4))))
        self.zeros = nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))
        self.bias = nn.Parameter(torch.from_numpy(rng.normal(0, 0.02, 5)))
        self.norm = nn.Parameter(torch.ones(4, dtype=torch.float64))


@draws(20)
@given(st.sampled_from(NAMES), st.integers(0, 1000), st.floats(1e-4, 1e-1), st.sampled_from([0.98, 0.999]))
def test_a_plain_optimiser_gives_the_same_weights(name: str, seed: int, rate: float, beta_2: float) -> None:
    model, rng = Small(seed), np.random.default_rng(seed + 1)
    preset = dataclasses.replace(PRESET, beta_2=beta_2)
    optimizer = make_optimizer(model, preset, rate, name)  # type: ignore[arg-type]
    slow = {
        key: Slow(
            *(name, weight.detach().flatten().tolist()),
            b1=preset.beta_1,
            b2=beta_2,
            eps=preset.adam_epsilon,
            decay=preset.weight_decay if weight.dim() > 1 else 0.0,
        )
        for key, weight in model.named_parameters()
    }
    for step in range(6):
        for group in optimizer.param_groups:
            group["lr"] = rate / (step + 1)
        for key, weight in model.named_parameters():
            gradient = rng.normal(0, 1 if step % 2 else 1e-8, weight.shape) * (key != "zeros" or step > 2)
            weight.grad = torch.from_numpy(gradient)
            slow[key].step(gradient.flatten().tolist(), rate / (step + 1), adapts=weight.dim() > 1)
        optimizer.step()
        for key, weight in model.named_parameters():
            np.testing.assert_allclose(weight.detach().flatten(), slow[key].weight, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_float32_stays_close_and_weights_without_a_gradient_stay(name: str) -> None:
    models = [Small(3), Small(3).float()]
    for model in models:
        optimizer = make_optimizer(model, PRESET, 1e-2, name)  # type: ignore[arg-type]
        for step in range(5):
            for weight in (model.matrix, model.bias):
                weight.grad = torch.sin(torch.arange(weight.numel(), dtype=weight.dtype) + step).view_as(weight)
            optimizer.step()
        assert torch.equal(model.norm, torch.ones_like(model.norm))
        assert len(optimizer.state) == 2
    torch.testing.assert_close(models[0].matrix.float(), models[1].matrix, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(models[0].bias.float(), models[1].bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_state_is_the_same_three_things(name: str) -> None:
    model = Small(0)
    optimizer = make_optimizer(model, PRESET, 1e-3, name)  # type: ignore[arg-type]
    model.matrix.grad = torch.ones_like(model.matrix)
    optimizer.step()
    state = optimizer.state[model.matrix]
    assert set(state) == {"step", "exp_avg", "exp_avg_sq"}
    assert float(state["step"]) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert-adam", "lamb"])
def test_a_resumed_run_is_bit_equal_with_every_optimiser(
    make_data: Callable[..., Data], small_run: Pretrain, tmp_path: Path, name: str
) -> None:
    data, chosen = make_data(), dataclasses.replace(small_run, optimizer=name)
    train(data, tmp_path / "straight", chosen)
    stop_at(data, tmp_path / "stopped", chosen, 7)
    train(data, tmp_path / "stopped", chosen, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")
    steps = load_file(checkpoint.all_folders(tmp_path / "straight")[0] / checkpoint.MOMENTS)[checkpoint.STEPS]
    assert steps.tolist() == [10.0]
