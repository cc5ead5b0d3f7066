"""Ranks: the processes of one run, one for each GPU, as `torchrun` starts them.

Comes in: the environment that torchrun sets. Goes out: `Ranks`, what a rank has to ask the others for. Decision: a
step's micro-batches are numbered, and rank r of n takes numbers r, r + n, ...; every rank adds up what its own give,
and the gradient is summed over ranks once a step, behind the last micro-batch. Losses are divided by the masked
positions of all ranks before that, so the gradient is that of one process but for rounding. What only the host has to
know (counts, whether somebody was asked to stop) goes from host to host, and nobody waits for a device.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from corpusforge.trainer.batches import Batch
from corpusforge.trainer.signals import WATCHED

TIMEOUT = datetime.timedelta(minutes=60)
"""How long ranks wait for one that is busy: the first writes checkpoints alone."""

BUCKET = 64 << 20
"""Numbers of gradient summed in one call: 256 MiB of float32, which is far beyond what makes a call cheap."""


class Agreed(NamedTuple):
    """What all ranks know of a step before they compute it: sums over ranks."""

    masked: int  # positions to predict
    pairs: int
    tokens: int
    size: int  # tokens with padding
    stop: int  # number of the signal that some rank got, 0: none did


class Ranks:
    """One of the processes of a run. As it stands: the only one."""

    def __init__(self, number: int = 0, count: int = 1) -> None:
        self.number, self.count = number, count
        self.is_sharded = False  # weights and gradients lie in parts (`sharding`), and are summed as they come

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes and talks."""
        return self.number == 0

    def agree(self, batches: list[Batch], stop: int = 0) -> Agreed:
        """Count a step over all ranks. All ranks call this before every step."""
        mine = Agreed(
            masked=sum(batch.masked_count for batch in batches),
            pairs=sum(batch.pair_count for batch in batches),
            tokens=sum(batch.tokens for batch in batches),
            size=sum(batch.size for batch in batches),
            stop=stop,
        )
        if self.count == 1:
            return mine
        told = torch.tensor([*mine[:-1], *(int(stop == number) for number in WATCHED)])
        dist.all_reduce(told, group=_hosts())
        masked, pairs, tokens, size, *asked = told.tolist()
        signals = (int(number) for number, ranks in zip(WATCHED, asked, strict=True) if ranks)
        return Agreed(masked, pairs, tokens, size, next(signals, 0))

    def share(self, batches: list[Batch]) -> list[Batch]:
        """This rank's micro-batches; as many as every other rank's, the last one silent where there are too few."""
        mine = batches[self.number :: self.count]
        if len(mine) * self.count < len(batches) or not mine:
            mine.append(batches[self.number % len(batches)].silent())
        return mine

    def numbers(self, mine: int) -> range:
        """Numbers of this rank's micro-batches among those of the step."""
        return range(self.number, self.number + mine * self.count, self.count)

    def total(self, sums: Tensor) -> Tensor:
        """The sum over ranks."""
        if self.count > 1:
            dist.all_reduce(sums)
        return sums

    def sum_gradients(self, model: torch.nn.Module) -> None:
        """Sum gradients over ranks, so that all have that of the step."""
        if self.count == 1 or self.is_sharded:
            return
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        for weight in weights:  # a head may have had nothing to predict here
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
        held = [value]
        dist.broadcast_object_list(held, src=0, group=_hosts())
        return held[0]

    def wait(self) -> None:
        """Until every rank is here."""
        if self.count > 1:
            dist.barrier(group=_hosts())


def _buckets(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    held: list[Tensor] = []
    size = 0
    for gradient in gradients:
        if held and size + gradient.numel() > BUCKET:
            yield held
            held, size = [], 0
        held.append(gradient)
        size += gradient.numel()
    if held:
        yield held


_HOSTS: list[Any] = []


def _hosts() -> Any:
    """The group of host-side messages: gloo, whatever the devices use."""
    return _HOSTS[0]


def started() -> tuple[int, int]:
    """This process's number and how many there are, by the environment that torchrun sets.

    >>> started()
    (0, 1)
    """
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def local_device(device: torch.device) -> torch.device:
    """The device of this process: the GPU of its number on its machine."""
    if device.type == "cuda" and device.index is None and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return device


@contextlib.contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """The ranks of this run, connected while the block runs; one rank where torchrun did not start it.

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
