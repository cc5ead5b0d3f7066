"""Attention inside packed instances: the kernels available on the CPU, forward and backward, on the same tensors.

    python benchmarks/attention.py --tokens 8192 --heads 4 --rounds 5 --threads 1

Lengths are those of sentences (`DECILES` of benchmarks/trainer.py). Alternatives to the trainer's own kernels: SDPA on
rows padded to multiples of 8 with a mask, and SDPA under block masks on rows of at most 512 tokens. Milliseconds are
medians; every kernel's output is compared with the first one's.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from trainer import DECILES  # type: ignore[import-not-found]

from corpusforge.arrays import offsets_of
from corpusforge.trainer.attention import Packed, grouped, has_flash, jagged

ROW = 512
"""Tokens of a row under a block mask."""


def pack(sizes: np.ndarray) -> Packed:  # type: ignore[type-arg]
    """Instances of these sizes, equal ones side by side."""
    lengths, counts = np.unique(sizes, return_counts=True)
    runs = tuple(zip(counts.tolist(), lengths.tolist(), strict=True))
    bounds = torch.from_numpy(offsets_of(np.sort(sizes)).astype(np.int32))
    positions = torch.zeros(1, int(sizes.sum()), dtype=torch.int64)
    return Packed(positions, bounds[:-1].long(), bounds, int(sizes.max()), runs)


def padded(projected: Tensor, packed: Packed) -> Tensor:
    """Rows of equal padded length, in groups."""
    sizes = np.diff(packed.bounds.numpy())
    begins, widths, mixed = packed.bounds.numpy()[:-1], -(-sizes // 8) * 8, []
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        within = np.arange(width)[None]
        positions = torch.from_numpy(begins[rows, None] + np.minimum(within, sizes[rows, None] - 1))
        is_real = torch.from_numpy(within < sizes[rows, None])
        query, key, value = projected[positions].permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=is_real[:, None, None])
        mixed.append(attended.transpose(1, 2)[is_real].flatten(1))
    return torch.cat(mixed)


def block_masks(projected: Tensor, packed: Packed) -> Tensor:
    """Rows of several instances, each under a mask that separates them."""
    bounds = packed.bounds.numpy()
    owner = torch.from_numpy(np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)))
    cuts, mixed = [0], []
    for end, next_end in pairwise([*bounds[1:].tolist(), np.inf]):
        if next_end - cuts[-1] > ROW:
            cuts.append(int(end))
    for begin, end in pairwise(cuts):
        mask = owner[begin:end, None] == owner[None, begin:end]
        query, key, value = projected[begin:end].permute(1, 2, 0, 3)
        mixed.append(F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(0, 1).flatten(1))
    return torch.cat(mixed)


def main() -> None:
    """Measure and print one line per kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads or torch.get_num_threads())
    rng = np.random.default_rng(0)
    sizes = np.interp(rng.random(arguments.tokens) * 10, np.arange(11), DECILES["sentences"]).round().astype(np.int64)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), arguments.tokens))]
    packed = pack(sizes)
    projected = torch.randn(int(sizes.sum()), 3, arguments.heads, 64)
    kernels: dict[str, Callable[[Tensor, Packed], Tensor]] = {
        "grouped": lambda x, packed: grouped(x, packed, 0.0),
        "padded to 8": padded,
        "block masks": block_masks,
        "jagged": lambda x, packed: jagged(x, packed, 0.0),
    }
    times: dict[str, list[float]] = {name: [] for name in kernels}
    expected = kernels["grouped"](projected, packed)
    for _ in range(arguments.rounds):
        for name, kernel in kernels.items():
            x = projected.clone().requires_grad_()
            began = time.perf_counter()
            mixed = kernel(x, packed)
            mixed.sum().backward()  # type: ignore[no-untyped-call]
            times[name].append(1000 * (time.perf_counter() - began))
            assert torch.allclose(mixed, expected, atol=1e-4), name
    print(f"{len(sizes)} instances of {sizes.mean():.1f} tokens, {len(packed.runs)} lengths")
    for name, milliseconds in times.items():
        print(f"{name:<12} {statistics.median(milliseconds):9.1f} ms")
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    flash = has_flash(torch.device("cuda")) if torch.cuda.is_available() else False
    print(platform.machine(), load, "torch", importlib.metadata.version("torch"), "flash attention:", flash)


if __name__ == "__main__":
    main()
