"""Ranks: the processes of one run, one for each GPU, as `torchrun` starts them; and sharding of a model over them.

A step's micro-batches are numbered, and rank r of n computes numbers r, r + n, ... Every rank accumulates the gradients
of its own, and once a step, after the last micro-batch, gradients are summed over ranks. Losses are divided by the
masked positions of all ranks before that, so the gradient equals that of one process up to rounding. What only hosts
need (counts, whether a signal arrived) is sent between hosts, without waiting for a device.

Sharding (torch's `fully_shard`, FSDP2) splits weights, gradients and moments, for models that do not fit one GPU.
Checkpoints do not depend on shards: they are written from gathered tensors and read before the model is sharded, so a
run can be resumed sharded or not, on any number of ranks.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from corpusforge.trainer.batches import Batch
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.signals import WATCHED

TIMEOUT = datetime.timedelta(minutes=60)
"""How long ranks wait for a busy one: only the first rank writes checkpoints."""

BUCKET = 64 << 20
"""Gradient elements summed in one call: 256 MiB of float32, enough to make the overhead of a call negligible."""


class Agreed(NamedTuple):
    """What all ranks know about a step before they compute it, summed over ranks."""

    masked: int  # positions to predict
    pairs: int
    tokens: int
    size: int  # tokens with padding
    stop: int  # number of the signal that some rank received; 0: none


class Ranks:
    """One of the processes of a run; by default the only one."""

    def __init__(self, number: int = 0, count: int = 1) -> None:
        self.number, self.count = number, count
        self.is_sharded = False  # weights and gradients are sharded, and FSDP sums gradients itself

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes files and reports progress."""
        return self.number == 0

    def agree(self, batches: list[Batch], stop: int = 0) -> Agreed:
        """Count a step over all ranks. All ranks call this before every step."""
        own = Agreed(
            masked=sum(batch.masked_count for batch in batches),
            pairs=sum(batch.pair_count for batch in batches),
            tokens=sum(batch.tokens for batch in batches),
            size=sum(batch.size for batch in batches),
            stop=stop,
        )
        if self.count == 1:
            return own
        counts = torch.tensor([*own[:-1], *(int(stop == number) for number in WATCHED)])
        dist.all_reduce(counts, group=_hosts())
        masked, pairs, tokens, size, *received = counts.tolist()
        signals = (int(number) for number, ranks in zip(WATCHED, received, strict=True) if ranks)
        return Agreed(masked, pairs, tokens, size, next(signals, 0))

    def share(self, batches: list[Batch]) -> list[Batch]:
        """This rank's micro-batches: as many as every other rank has; if needed, the last one has no labels."""
        share = batches[self.number :: self.count]
        if len(share) * self.count < len(batches) or not share:
            share.append(batches[self.number % len(batches)].silent())
        return share

    def numbers(self, count: int) -> range:
        """Numbers of this rank's ``count`` micro-batches among those of the step."""
        return range(self.number, self.number + count * self.count, self.count)

    def total(self, sums: Tensor) -> Tensor:
        """The sum over ranks."""
        if self.count > 1:
            dist.all_reduce(sums)
        return sums

    def sum_gradients(self, model: torch.nn.Module) -> None:
        """Sum gradients over ranks, so that every rank has the gradient of the step."""
        if self.count == 1 or self.is_sharded:
            return
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        for weight in weights:  # a head may have had nothing to predict on this rank
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        for bucket in _buckets([weight.grad for weight in weights if weight.grad is not None]):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            dist.all_reduce(flat)
            for gradient, part in zip(bucket, torch.split(flat, [g.numel() for g in bucket]), strict=True):
                gradient.copy_(part.view_as(gradient))

    def from_first(self, value: Any) -> Any:
        """The first rank's value."""
        if self.count == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, group=_hosts())
        return values[0]

    def wait(self) -> None:
        """Wait until every rank is here."""
        if self.count > 1:
            dist.barrier(group=_hosts())


def _buckets(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    size = 0
    for gradient in gradients:
        if bucket and size + gradient.numel() > BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(gradient)
        size += gradient.numel()
    if bucket:
        yield bucket


_HOSTS: list[Any] = []


def _hosts() -> Any:
    """The group of host-side messages: gloo, whatever the devices use."""
    return _HOSTS[0]


def started() -> tuple[int, int]:
    """This process's rank and the number of processes, from the environment that torchrun sets.

    >>> started()
    (0, 1)
    """
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def local_device(device: torch.device) -> torch.device:
    """The device of this process: the GPU of its local rank."""
    if device.type == "cuda" and device.index is None and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return device


@contextlib.contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """The ranks of this run, connected while the block runs; one rank if torchrun did not start the process.

    ``device``: auto, cpu or cuda.
    """
    number, count = started()
    if count == 1:
        yield Ranks()
        return
    is_gpu = device != "cpu" and torch.cuda.is_available()
    if is_gpu:
        torch.cuda.set_device(local_device(torch.device("cuda")))
    dist.init_process_group("nccl" if is_gpu else "gloo", timeout=TIMEOUT)
    _HOSTS.append(dist.new_group(backend="gloo", timeout=TIMEOUT))
    try:
        yield Ranks(number, count)
    finally:
        _HOSTS.clear()
        dist.destroy_process_group()


def shard(
    model: Encoder, optimizer: torch.optim.Optimizer, make: Callable[[Encoder], torch.optim.Optimizer], ranks: Ranks
) -> torch.optim.Optimizer:
    """Shard a model over all ranks, layer by layer; returns the optimizer of its shards, which ``make`` creates."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import distribute_tensor

    moments = {name: optimizer.state.get(weight, {}) for name, weight in model.named_parameters()}
    mesh = init_device_mesh(model.bias.device.type, (ranks.count,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    ranks.is_sharded = True
    sharded = make(model)
    for name, weight in model.named_parameters():
        for key, value in moments[name].items():
            is_sharded = isinstance(value, Tensor) and value.dim() > 0
            part: Any = weight
            sharded.state[weight][key] = distribute_tensor(value, mesh, part.placements) if is_sharded else value
    return sharded


def gathered(model: Encoder, optimizer: torch.optim.Optimizer) -> tuple[Encoder, Any]:
    """The full model and moments of a sharded one, on the CPU. All ranks call this; each gets all of it."""
    root: Any = model
    for module in (root, *root.layers):
        module.reshard()  # free what a forward pass without a backward pass has gathered
    full = Encoder(model.shape)
    state: dict[Tensor, dict[str, Tensor]] = {}
    for (name, weight), into in zip(model.named_parameters(), full.parameters(), strict=True):
        assert weight.numel() == into.numel(), name
        into.data.copy_(full_tensor(weight.detach()))
        moments = optimizer.state.get(weight, {})
        state[into] = {key: full_tensor(torch.as_tensor(value)).cpu() for key, value in moments.items()}
    return full, SimpleNamespace(state=state)


def full_tensor(tensor: Tensor) -> Tensor:
    """The full tensor of one that may be sharded. All ranks call this."""
    gather = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()
