"""Self-attention: every token of an instance attends to every token of that instance, and to nothing else.

One attention block of the encoder (Vaswani et al. 2017, section 3.2) with its residual and LayerNorm. Attention is
kept inside instances in one of two ways: rows hold one instance each, and padding keys are masked; or rows hold
instances end to end (`Packed`), and a variable-length kernel runs over their boundaries, so nothing is spent on
padding. Device and dtype alone choose the kernel (`kernel_of`), and all of them agree up to rounding:

- ``varlen``: variable-length flash attention (`torch.nn.attention.varlen`), on GPUs; it has no dropout;
- ``jagged``: SDPA on jagged nested tensors, on GPUs, where attention has dropout or float32;
- ``grouped``: on the CPU; instances of equal length lie side by side, so each run of them is a rectangle, a view of the
  packed row, and one SDPA without a mask. On lengths of sentences that takes half the time of padding to multiples of
  8, a quarter of that of block masks, a tenth of that of nested tensors (`benchmarks/attention.py`).

Axes: B rows, T positions, D width, H heads, K width of a head, N all positions of a packed batch, S instances.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpusforge.trainer.architecture import Architecture

FLASH_CAPABILITY = (8, 0)
"""GPUs with flash attention, by their compute capability (pytorch/pytorch, sdp_utils.cpp: SM80 and above)."""


class Packed(NamedTuple):
    """Layout of the instances in a packed batch; positions are counted through the flattened batch."""

    positions: Tensor  # [B, T] int64, from 0 in every instance
    begins: Tensor  # [S] int64, position of each instance's first token
    bounds: Tensor  # [S' + 1] int32, from 0 to N; between two bounds is an instance or padding
    longest: int  # the most tokens between two bounds
    runs: tuple[tuple[int, int], ...]  # the same bounds as (count, tokens of each)
    flash: bool = False  # whether the device has flash attention; determined outside compiled code


class Attention(nn.Module):
    """Self-attention inside instances, output projection, residual, LayerNorm."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.heads, self.dropout = shape.heads, shape.dropout
        self.projections = nn.Linear(shape.width, 3 * shape.width)  # query, key and value, stacked
        self.output = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)

    def forward(self, x: Tensor, keys: Tensor | Packed | None) -> Tensor:
        """``x`` [B, T, D]; ``keys`` [B, 1, 1, T]: False on padding (None: no padding), or `Packed`."""
        B, T, D = x.shape
        projected = self.projections(x).view(B, T, 3, self.heads, D // self.heads)
        dropout = self.dropout if self.training else 0.0
        if isinstance(keys, Packed):
            mixed = attend(projected.flatten(0, 1), keys, dropout).view(B, T, D)
        else:
            query, key, value = projected.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=keys, dropout_p=dropout)
            mixed = mixed.transpose(1, 2).reshape(B, T, D)
        out: Tensor = self.norm(x + F.dropout(self.output(mixed), self.dropout, self.training))
        return out


def has_flash(device: torch.device) -> bool:
    """Whether a device has flash attention."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= FLASH_CAPABILITY


def kernel_of(device: torch.device, dtype: torch.dtype | None, dropout: float, *, flash: bool) -> str:
    """Name of the kernel for packed instances; ``dtype``: of autocast, None for float32; ``flash``: see `has_flash`.

    >>> kernel_of(torch.device("cpu"), None, 0.1, flash=False)
    'grouped'
    >>> [kernel_of(torch.device("cuda"), torch.bfloat16, dropout, flash=True) for dropout in (0.0, 0.1)]
    ['varlen', 'jagged']
    """
    if device.type != "cuda":
        return "grouped"
    is_half = dtype == torch.bfloat16 or dtype == torch.float16
    return "varlen" if is_half and flash and not dropout else "jagged"


def attend(projected: Tensor, packed: Packed, dropout: float) -> Tensor:
    """Attention inside the instances of ``projected`` [N, 3, H, K]: query, key, value. Returns [N, H K]."""
    kernel = kernel_of(projected.device, projected.dtype, dropout, flash=packed.flash)
    if kernel == "varlen":
        return varlen_of(projected, packed)
    mixed: Tensor = (jagged if kernel == "jagged" else grouped)(projected, packed, dropout)
    return mixed


def varlen_of(projected: Tensor, packed: Packed) -> Tensor:
    """As `attend`, by variable-length flash attention."""
    from torch.nn.attention.varlen import varlen_attn  # torch 2.10 and later

    query, key, value = projected.unbind(1)
    bounds, longest = packed.bounds, packed.longest
    mixed: Tensor = varlen_attn(query, key, value, bounds, bounds, longest, longest)  # type: ignore[assignment]
    return mixed.flatten(1)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def jagged(projected: Tensor, packed: Packed, dropout: float) -> Tensor:
    """As `attend`, by nested tensors; flash or memory-efficient, as torch chooses."""
    nested = torch.nested.nested_tensor_from_jagged
    query, key, value = (
        nested(part.contiguous(), packed.bounds, min_seqlen=1, max_seqlen=packed.longest).transpose(1, 2)
        for part in projected.unbind(1)
    )
    mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    return mixed.transpose(1, 2).values().flatten(1)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def grouped(projected: Tensor, packed: Packed, dropout: float) -> Tensor:
    """As `attend`, one run of equally long instances at a time."""
    _, _, H, K = projected.shape
    mixed = []
    parts = torch.split(projected, [count * length for count, length in packed.runs])
    for part, (count, length) in zip(parts, packed.runs, strict=True):  # one run for each distinct length
        query, key, value = part.view(count, length, 3, H, K).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
        mixed.append(attended.transpose(1, 2).reshape(count * length, H * K))
    return torch.cat(mixed)
