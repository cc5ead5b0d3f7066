"""Sharding: weights, gradients and moments in parts, one a rank, for models that do not fit one GPU as they are.

Comes in: a model and its optimiser, whole. Goes out: the same, in place, under torch's `fully_shard` (FSDP2); and for
checkpoints, whole again. Decision: a checkpoint does not know of shards. It is written from gathered tensors and read
before the model is sharded, so a run goes on sharded or not, on any number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from corpusforge.trainer.model import Encoder
from corpusforge.trainer.ranks import Ranks


def shard(
    model: Encoder, optimizer: torch.optim.Optimizer, make: Callable[[Encoder], torch.optim.Optimizer], ranks: Ranks
) -> torch.optim.Optimizer:
    """Shard a model over all ranks, layer by layer; gives the optimiser of its parts, which ``make`` makes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import distribute_tensor

    names = {name: optimizer.state.get(weight, {}) for name, weight in model.named_parameters()}
    mesh = init_device_mesh(model.bias.device.type, (ranks.count,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    ranks.is_sharded = True
    parted = make(model)
    for name, weight in model.named_parameters():
        for key, value in names[name].items():
            parts = isinstance(value, Tensor) and value.dim() > 0
            held: Any = weight
            parted.state[weight][key] = distribute_tensor(value, mesh, held.placements) if parts else value
    return parted


def gathered(model: Encoder, optimizer: torch.optim.Optimizer) -> tuple[Encoder, Any]:
    """A sharded model and its moments, whole, on the CPU. All ranks call this; each gets all of it."""
    root: Any = model
    for module in (root, *root.layers):
        module.reshard()  # what a forward pass gathered and no backward pass parted again
    whole = Encoder(model.shape)
    state: dict[Tensor, dict[str, Tensor]] = {}
    for (name, weight), into in zip(model.named_parameters(), whole.parameters(), strict=True):
        assert weight.numel() == into.numel(), name
        into.data.copy_(whole_tensor(weight.detach()))
        held = optimizer.state.get(weight, {})
        state[into] = {key: whole_tensor(torch.as_tensor(value)).cpu() for key, value in held.items()}
    return whole, SimpleNamespace(state=state)


def whole_tensor(tensor: Tensor) -> Tensor:
    """A tensor that may lie in parts, whole. All ranks call this."""
    gather = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()
