"""The encoder: BERT and RoBERTa, one file, from token ids to the logits at masked positions.

Post-LN transformer encoder (Devlin et al. 2019; Vaswani et al. 2017, section 3.1), gelu with erf, learned positions,
decoder tied to the token embeddings, a bias of its own. Decision: the MLM head sees masked positions only; the rest
of its output would be thrown away (18 % of BERT-base's FLOPs at length 128), and it is the largest activation.

Axes: B sequences, T positions, D width, H heads, V vocabulary, M masked positions of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpusforge import seeds


@dataclass(frozen=True)
class Architecture:
    """All that decides the shapes of the weights and what is computed from them."""

    family: str  # "bert" or "roberta"
    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    positions: int  # rows of the position table
    segments: int  # rows of the segment table
    epsilon: float
    dropout: float
    padding_id: int
    pairs: bool  # whether there is a pooler and a head for segment pairs

    @property
    def first_position(self) -> int:
        """Row of the position table used by the first token: behind the padding's own row for RoBERTa."""
        return self.padding_id + 1 if self.family == "roberta" else 0

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence the model takes."""
        return self.positions - self.first_position


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


class Layer(nn.Module):
    """Attention, then the feed-forward network."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.dropout = shape.dropout
        self.attention = Attention(shape)
        self.inner = nn.Linear(shape.width, shape.inner)
        self.output = nn.Linear(shape.inner, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)

    def forward(self, x: Tensor, is_real: Tensor | None) -> Tensor:
        """``x`` [B, T, D] -> [B, T, D]."""
        x = self.attention(x, is_real)
        out: Tensor = self.norm(x + F.dropout(self.output(F.gelu(self.inner(x))), self.dropout, self.training))
        return out


class Encoder(nn.Module):
    """Token ids in; logits at masked positions, and at [CLS] for segment pairs, out."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.segments = nn.Embedding(shape.segments, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.transform = nn.Linear(shape.width, shape.width)
        self.transform_norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.pooler = nn.Linear(shape.width, shape.width) if shape.pairs else None
        self.pair = nn.Linear(shape.width, 2) if shape.pairs else None

    def encode(self, input_ids: Tensor, segment_ids: Tensor, is_real: Tensor | None) -> Tensor:
        """``input_ids``, ``segment_ids`` [B, T] int64; ``is_real`` [B, T] bool, None where nothing is padding.

        Returns [B, T, D]; rows of padding hold numbers without a meaning.
        """
        T = input_ids.shape[1]
        position_ids = torch.arange(T, device=input_ids.device) + self.shape.first_position
        if is_real is not None and self.shape.family == "roberta":
            # As fairseq and transformers have it: padding (always behind the text) sits in its own row.
            position_ids = torch.where(is_real, position_ids, self.shape.padding_id)
        x: Tensor = self.tokens(input_ids) + self.segments(segment_ids) + self.positions(position_ids)
        x = F.dropout(self.norm(x), self.shape.dropout, self.training)
        keys = None if is_real is None else is_real[:, None, None, :]
        for layer in self.layers:
            x = layer(x, keys)
        return x

    def predict(self, hidden: Tensor) -> Tensor:
        """Vocabulary logits [M, V] of hidden states [M, D]: dense, gelu, LayerNorm, tied decoder."""
        transformed = self.transform_norm(F.gelu(self.transform(hidden)))
        return F.linear(transformed, self.tokens.weight, self.bias)

    def forward(
        self, input_ids: Tensor, segment_ids: Tensor, is_real: Tensor | None, masked: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """As `encode`, with ``masked`` [M]: masked positions counted through the flattened batch (b * T + t).

        Returns MLM logits [M, V], and pair logits [B, 2] where the model has the head for them.
        """
        hidden = self.encode(input_ids, segment_ids, is_real)
        logits = self.predict(hidden.flatten(0, 1).index_select(0, masked))
        if self.pooler is None or self.pair is None:
            return logits, None
        return logits, self.pair(torch.tanh(self.pooler(hidden[:, 0])))


def initialise(model: Encoder, seed: int, deviation: float = 0.02) -> None:
    """Truncated normal weights (at two deviations, as TensorFlow's), zero biases, LayerNorm at one.

    Every weight has a generator of its own, keyed by its name: adding a head changes no other weight.
    """
    for name, weight in model.named_parameters():
        if weight.dim() >= 2:
            generator = torch.Generator().manual_seed(seeds.stage_key(seed, f"init/{name}") >> 1)
            values = torch.empty(weight.shape)
            nn.init.trunc_normal_(values, 0.0, deviation, -2 * deviation, 2 * deviation, generator=generator)
            weight.data.copy_(values)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
        else:
            nn.init.ones_(weight)


def decays(weight: Tensor) -> bool:
    """Whether weight decay applies: not to biases and LayerNorm (google-research/bert `optimization.py`)."""
    return weight.dim() >= 2
