"""A compiled model: the same numbers but for rounding, from fused kernels.

Packed micro-batches of a compiled run have fixed shapes (`packed.filled_up`), so each of the few shapes is compiled
once, for itself; padded ones have as many shapes as lengths and are compiled for any. Kernels of attention on the CPU
stay outside what is compiled: their calls differ from batch to batch.
"""

from __future__ import annotations

from typing import Any

import torch

SHAPES = 64
"""Shapes compiled before torch gives up and runs uncompiled: its own 8 are too few for two lengths of training."""


def compiled(model: torch.nn.Module, *, fixed: bool, backend: str = "inductor") -> Any:
    """``torch.compile(model)``; ``fixed``: batches have few shapes."""
    import torch._dynamo  # not with torch itself: it takes seconds

    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, SHAPES)
    return torch.compile(model, dynamic=not fixed, backend=backend)
