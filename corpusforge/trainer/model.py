"""The encoder of BERT, RoBERTa, ALBERT and SpanBERT, from token ids to the logits at masked positions.

A post-LN transformer encoder (Devlin et al. 2019; Vaswani et al. 2017, section 3.1) with learned positions and a
decoder tied to the token embeddings. ALBERT (Lan et al. 2020, section 3.1) embeds in fewer dimensions than its layers
have, and its layers share their weights. SpanBERT (Joshi et al. 2020, section 3.2) is BERT with another head. The MLM
head sees masked positions only: the rest of its output would be discarded (18 % of BERT-base's FLOPs at length 128),
and it is the largest activation.

Axes: B sequences, T positions, E width of embeddings, D width, H heads, V vocabulary, M masked positions of the batch,
S of these that the span boundary head predicts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpusforge import seeds
from corpusforge.trainer.architecture import SPAN_POSITION_WIDTH, Architecture
from corpusforge.trainer.attention import Attention, Packed


class Logits(NamedTuple):
    """Logits of the heads: masked tokens [M, V], segment pairs [B, 2], tokens from their span boundaries [S, V]."""

    masked: Tensor
    pairs: Tensor | None
    spans: Tensor | None


class Layer(nn.Module):
    """Attention, then the feed-forward network."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.dropout, self.activation = shape.dropout, shape.activation
        self.attention = Attention(shape)
        self.inner = nn.Linear(shape.width, shape.inner)
        self.output = nn.Linear(shape.inner, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)

    def forward(self, x: Tensor, keys: Tensor | Packed | None) -> Tensor:
        """``x`` [B, T, D] -> [B, T, D]; ``keys`` as in `Attention.forward`."""
        x = self.attention(x, keys)
        inner = self.output(activate(self.inner(x), self.activation))
        out: Tensor = self.norm(x + F.dropout(inner, self.dropout, self.training))
        return out


def activate(x: Tensor, kind: str) -> Tensor:
    """Gelu (Hendrycks and Gimpel 2016), exact for "gelu", approximated by tanh for "gelu_new"."""
    return F.gelu(x, approximate="tanh" if kind == "gelu_new" else "none")


class SpanBoundary(nn.Module):
    """SpanBERT's head: predicts a token of a span from the span's boundary tokens and its position in the span."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.activation = shape.activation
        self.positions = nn.Embedding(shape.span_positions, SPAN_POSITION_WIDTH)
        self.first = nn.Linear(2 * shape.width + SPAN_POSITION_WIDTH, shape.width)
        self.first_norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.second = nn.Linear(shape.width, shape.embedding_width)
        self.second_norm = nn.LayerNorm(shape.embedding_width, eps=shape.epsilon)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))

    def forward(self, hidden: Tensor, spans: Tensor, decoder: Tensor) -> Tensor:
        """``hidden`` [B T, D]; ``spans`` [S, 3], see `Encoder.forward`; ``decoder`` [V, E]. Returns logits [S, V]."""
        left, right, nth = spans.unbind(1)
        x = torch.cat([hidden.index_select(0, left), hidden.index_select(0, right), self.positions(nth)], -1)
        x = self.first_norm(activate(self.first(x), self.activation))
        x = self.second_norm(activate(self.second(x), self.activation))
        return F.linear(x, decoder, self.bias)


class Encoder(nn.Module):
    """From token ids to logits at masked positions, at [CLS] for segment pairs, and from span boundaries."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        E, D = shape.embedding_width, shape.width
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, E)
        self.positions = nn.Embedding(shape.positions, E)
        self.segments = nn.Embedding(shape.segments, E)
        self.norm = nn.LayerNorm(E, eps=shape.epsilon)
        self.widen = nn.Linear(E, D) if shape.family == "albert" else None  # even if E equals D
        self.layers = nn.ModuleList(Layer(shape) for _ in range(1 if shape.is_shared else shape.layers))
        self.transform = nn.Linear(D, E)
        self.transform_norm = nn.LayerNorm(E, eps=shape.epsilon)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.pooler = nn.Linear(D, D) if shape.pairs else None
        self.pair = nn.Linear(D, 2) if shape.pairs else None
        self.boundary = SpanBoundary(shape) if shape.span_positions else None

    def encode(self, input_ids: Tensor, segment_ids: Tensor, real: Tensor | Packed | None) -> Tensor:
        """``input_ids``, ``segment_ids`` [B, T] int64; ``real``: False on padding [B, T] bool, None without padding,
        or the layout of packed rows.

        Returns [B, T, D]; the vectors of padding are meaningless.
        """
        keys: Tensor | Packed | None
        if isinstance(real, Packed):
            position_ids, keys = real.positions + self.shape.first_position, real
        else:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device) + self.shape.first_position
            keys = None if real is None else real[:, None, None, :]
            if real is not None and self.shape.family == "roberta":
                # As in fairseq and transformers, padding (always after the text) has its own row.
                position_ids = torch.where(real, position_ids, self.shape.padding_id)
        x: Tensor = self.tokens(input_ids) + self.segments(segment_ids) + self.positions(position_ids)
        x = F.dropout(self.norm(x), self.shape.dropout, self.training)
        if self.widen is not None:
            x = self.widen(x)
        for number in range(self.shape.layers):
            x = self.layers[0 if self.shape.is_shared else number](x, keys)
        return x

    def predict(self, hidden: Tensor) -> Tensor:
        """Vocabulary logits [M, V] of hidden states [M, D]: dense, gelu, LayerNorm, tied decoder."""
        transformed = self.transform_norm(activate(self.transform(hidden), self.shape.activation))
        return F.linear(transformed, self.tokens.weight, self.bias)

    def forward(
        self,
        input_ids: Tensor,
        segment_ids: Tensor,
        real: Tensor | Packed | None,
        masked: Tensor,
        spans: Tensor | None = None,
    ) -> Logits:
        """As `encode`, then the logits of every head of the model. Positions are counted through the flattened batch.

        ``masked`` [M]: masked positions (b * T + t). ``spans`` [S, 3]: for tokens of masked spans the position before
        the span, the position after it, and which token of the span it is, from 0.
        """
        hidden = self.encode(input_ids, segment_ids, real)
        flat = hidden.flatten(0, 1)
        firsts = flat.index_select(0, real.begins) if isinstance(real, Packed) else hidden[:, 0]
        pairs = tokens = None
        if self.pooler is not None and self.pair is not None:
            pairs = self.pair(torch.tanh(self.pooler(firsts)))
        if self.boundary is not None and spans is not None:
            tokens = self.boundary(flat, spans, self.tokens.weight)
        return Logits(self.predict(flat.index_select(0, masked)), pairs, tokens)


def initialize(model: Encoder, seed: int, deviation: float = 0.02) -> None:
    """Draw truncated normal weights (at two deviations, as TensorFlow does), zero biases, LayerNorm at one.

    Every weight has its own generator, keyed by its name: adding a head changes no other weight.
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
