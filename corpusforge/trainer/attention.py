"""Self-attention: every token of an instance looks at every token of it, and at nothing else.

Comes in: hidden states [B, T, D]. Goes out: the same shape, mixed. One block of the encoder (Vaswani et al. 2017,
section 3.2), with its residual and LayerNorm behind it.

Axes: B rows, T positions, D width, H heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from corpusforge.trainer.model import Architecture


class Attention(nn.Module):
    """Self-attention over real keys, output projection, residual, LayerNorm."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.heads, self.dropout = shape.heads, shape.dropout
        self.projections = nn.Linear(shape.width, 3 * shape.width)  # query, key, value under each other
        self.output = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)

    def forward(self, x: Tensor, is_real: Tensor | None) -> Tensor:
        """``x`` [B, T, D]; ``is_real`` [B, 1, 1, T] marks keys that are no padding (None: all are)."""
        B, T, D = x.shape
        query, key, value = self.projections(x).view(B, T, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=is_real, dropout_p=dropout)
        mixed = self.output(mixed.transpose(1, 2).reshape(B, T, D))
        out: Tensor = self.norm(x + F.dropout(mixed, self.dropout, self.training))
        return out
