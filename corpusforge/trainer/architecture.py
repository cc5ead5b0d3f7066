"""The shape of a model: everything that decides its weights and what is computed from them.

The encoder is built from an `Architecture`, the cost of a run is computed from one, and a Hugging Face ``config.json``
is written from and read into one (`hf_names`). The size of the vocabulary and the number of positions come from the
data, everything else from the preset.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge.sections.presets import Preset

POSITIONS = 512
"""Positions of the published models. A model has more if the longest row of its data, padded, is longer."""

SPAN_POSITIONS, SPAN_POSITION_WIDTH = 15, 200
"""Tokens of a span that its boundaries predict (facebookresearch/SpanBERT, pretraining/README.md, --max-pair-targets),
and width of their position embeddings (SpanBERT, section 4.2)."""


@dataclass(frozen=True)
class Architecture:
    """Everything that decides the shapes of the weights and what is computed from them."""

    family: str  # "bert", "roberta" or "albert"
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
    embedding: int = 0  # E: width of token, position and segment vectors; 0: as wide as the layers
    activation: str = "gelu"  # exact, with erf; "gelu_new": approximated by tanh (ALBERT)
    is_shared: bool = False  # all layers share their weights (ALBERT)
    span_positions: int = 0  # tokens of a span that its boundaries predict; 0: no span boundary head (SpanBERT)

    @property
    def embedding_width(self) -> int:
        """Embedding width E; defaults to D."""
        return self.embedding or self.width

    @property
    def first_position(self) -> int:
        """Row of the position table used by the first token; RoBERTa's follows the row of padding."""
        return self.padding_id + 1 if self.family == "roberta" else 0

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence the model takes."""
        return self.positions - self.first_position


def preset_architecture(
    preset: Preset, *, vocabulary: int, padding_id: int, longest: int, pairs: bool, dropout: float
) -> Architecture:
    """The architecture of a preset on given data.

    ``longest``: positions of the longest row, padded; ``pairs``: whether the data have labels of segment pairs.
    """
    is_roberta = preset.family == "roberta"
    return Architecture(
        family=preset.family,
        layers=preset.layers,
        width=preset.width,
        heads=preset.heads,
        inner=preset.inner,
        vocabulary=vocabulary,
        # RoBERTa's table begins with rows that no token uses, up to and including the padding's.
        positions=max(POSITIONS, longest) + (padding_id + 1 if is_roberta else 0),
        segments=1 if is_roberta else 2,
        epsilon=preset.epsilon,
        dropout=dropout,
        padding_id=padding_id,
        pairs=pairs and not is_roberta and not preset.has_boundary_head,
        embedding=preset.embedding,
        activation=preset.activation,
        is_shared=preset.is_shared,
        span_positions=SPAN_POSITIONS if preset.has_boundary_head else 0,
    )
