"""A new model: the sizes and constants of its paper, the initial weights, the tied decoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import nn

from corpusforge.sections import Pretrain
from corpusforge.sections.presets import PRESETS
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.prepare import prepare
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]

PUBLISHED = {
    "bert": {"epsilon": 1e-12, "activation": "gelu", "segments": 2, "dropout": 0.1},
    "roberta": {"epsilon": 1e-5, "activation": "gelu", "segments": 1, "dropout": 0.1},
    "albert": {"epsilon": 1e-12, "activation": "gelu_new", "segments": 2, "dropout": 0.0},
}
"""config.json of bert-base-uncased, roberta-base and albert-base-v2."""

SMALL = Architecture("bert", 2, 64, 2, 256, 512, 128, 2, 1e-12, 0.1, 0, True, span_positions=15)


@pytest.mark.parametrize("preset", PRESETS)
def test_constants_are_the_published_ones(make_data: Callable[..., Data], preset: str) -> None:
    chosen = PRESETS[preset]
    data = make_data(
        pairs=chosen.family == "albert", words=chosen.mask_unit != "token", instances={"mask_unit": chosen.mask_unit}
    )
    job = prepare(data.instances, Pretrain(preset=preset), vocab_folder=data.vocabulary)
    shape = job.shape
    assert {key: getattr(shape, key) for key in PUBLISHED[shape.family]} == PUBLISHED[shape.family]
    assert (shape.inner, shape.vocabulary, shape.longest) == (4 * shape.width, 192, 512)
    assert shape.first_position == (job.specials.pad + 1 if shape.family == "roberta" else 0)
    assert shape.embedding_width == (128 if shape.family == "albert" else shape.width)
    assert shape.is_shared == (shape.family == "albert")
    assert shape.pairs == (shape.family == "albert")  # the others' data have none here
    with torch.device("meta"):
        model = Encoder(dataclasses.replace(shape, layers=2))
    assert {module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)} == {shape.epsilon}
    assert len(model.layers) == (1 if shape.is_shared else 2)


def test_the_first_weights_are_a_truncated_normal() -> None:
    model, again, other = (Encoder(SMALL) for _ in range(3))
    for made, seed in ((model, 1), (again, 1), (other, 2)):
        initialize(made, seed)
    norms = {name for name, module in model.named_modules() if isinstance(module, nn.LayerNorm)}
    for name, weight in model.named_parameters():
        value = weight.detach()
        assert torch.equal(value, again.get_parameter(name)), name
        if weight.dim() < 2:
            assert (value == float(name.rpartition(".")[0] in norms and name.endswith("weight"))).all(), name
            continue
        assert not torch.equal(value, other.get_parameter(name)), name
        assert 0.02 < value.abs().max() <= 0.04, name
    drawn = torch.cat([w.detach().flatten() for w in model.parameters() if w.dim() >= 2])
    assert drawn.mean().abs() < 1e-4
    assert drawn.std() == pytest.approx(0.02 * 0.8796, rel=0.01)  # of a normal cut at two deviations


def test_a_head_more_changes_no_other_weight() -> None:
    plain, more = Encoder(dataclasses.replace(SMALL, pairs=False, span_positions=0)), Encoder(SMALL)
    for model in (plain, more):
        initialize(model, 3)
    assert {name for name, _ in more.named_parameters()} > {name for name, _ in plain.named_parameters()}
    for name, weight in plain.named_parameters():
        assert torch.equal(weight, more.get_parameter(name)), name


def test_the_decoder_is_the_embeddings() -> None:
    model = Encoder(dataclasses.replace(SMALL, pairs=False, span_positions=0)).eval()
    initialize(model, 0)
    ids = torch.randint(5, 100, (2, 9), generator=torch.Generator().manual_seed(0))
    found = model(ids, torch.zeros_like(ids), None, torch.tensor([3, 12]))
    found.masked.logsumexp(-1).sum().backward()
    gradient = model.tokens.weight.grad
    assert gradient is not None
    assert (gradient.norm(dim=1) > 0).all()  # of words that are not in the batch as well
    changed = model.tokens.weight.detach().clone()
    changed[400] += 1
    model.tokens.weight.data = changed
    moved = (model(ids, torch.zeros_like(ids), None, torch.tensor([3, 12])).masked - found.masked).abs().amax(0)
    assert moved[400] > 0
    assert moved[torch.arange(512) != 400].max() == 0
