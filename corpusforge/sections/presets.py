"""Architectures by name, with the hyper-parameters they were published with.

Sources: BERT, Devlin et al. 2019 (arXiv 1810.04805), section 3.1 and appendix A.2, and google-research/bert
`run_pretraining.py` and `optimization.py` (epsilon 1e-6); RoBERTa, Liu et al. 2019 (arXiv 1907.11692), table 9, and
section 3.1 ("only with full-length sequences"); ALBERT, Lan et al. 2020 (arXiv 1909.11942), tables 1 and 11 and section
4.1, and google-research/albert `run_pretraining.py`, `optimization.py` and README (version 2: no dropout); SpanBERT,
Joshi et al. 2020 (arXiv 1907.10529), section 4.2; the small BERTs, Turc et al. 2019 (arXiv 1908.08962), table 1, which
publish shapes only and train like BERT-base. `trainer.deviations` lists where a run differs from them.
The size of the vocabulary is never part of a preset.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass

from corpusforge import errors


@dataclass(frozen=True)
class Preset:
    """A shape and how it was trained. ``batch_sequences`` x length of the part of training = tokens of a step."""

    paper: str
    family: str  # "bert", "roberta" or "albert": names of the weights, position ids, segments
    layers: int
    width: int  # D
    heads: int
    inner: int  # width of the feed-forward layer
    epsilon: float  # of LayerNorm
    dropout: float
    learning_rate: float  # peak
    warmup_share: float  # of all steps
    steps: int
    batch_sequences: int
    beta_2: float
    clip: float  # largest gradient norm; 0: not clipped
    short_share: float  # of the steps, at pretrain.short_length (BERT, appendix A.2: 90 %)
    decays_from_peak: bool  # see `trainer.training_plan.learning_rate`
    mask_unit: str = "token"  # as its authors mask
    beta_1: float = 0.9
    adam_epsilon: float = 1e-6
    weight_decay: float = 0.01  # not on biases and LayerNorm
    optimizer: str = "adamw"  # or bert-adam, lamb: see `trainer.optimizers`
    embedding: int = 0  # E; 0: D
    activation: str = "gelu"
    is_shared: bool = False  # all layers share their weights
    has_boundary_head: bool = False  # also predicts tokens from span boundaries; no pair head
    notes: tuple[str, ...] = ()  # where the preset itself differs from its paper
    is_own: bool = False  # no such model was published


_HEAD_WIDTH = 64
"""D / H of BERT, and of all but ALBERT-xlarge."""


def _bert(layers: int, width: int, paper: str = "Turc et al. 2019") -> Preset:
    return Preset(
        paper=paper,
        family="bert",
        layers=layers,
        width=width,
        heads=width // _HEAD_WIDTH,
        inner=4 * width,
        epsilon=1e-12,
        dropout=0.1,
        learning_rate=1e-4,
        warmup_share=0.01,
        steps=1_000_000,
        batch_sequences=256,
        beta_2=0.999,
        clip=1.0,
        short_share=0.9,
        decays_from_peak=False,
    )


def _roberta(layers: int, width: int, rate: float, warmup_share: float) -> Preset:
    return dataclasses.replace(
        _bert(layers, width, "Liu et al. 2019"),
        family="roberta",
        epsilon=1e-5,
        learning_rate=rate,
        warmup_share=warmup_share,
        steps=500_000,
        batch_sequences=8192,
        beta_2=0.98,
        clip=0.0,
        short_share=0.0,
        decays_from_peak=True,
    )


def _albert(layers: int, width: int, heads: int) -> Preset:
    return dataclasses.replace(
        _bert(layers, width, "Lan et al. 2020"),
        family="albert",
        heads=heads,
        dropout=0.0,
        learning_rate=0.00176,
        warmup_share=0.025,
        steps=125_000,
        batch_sequences=4096,
        short_share=0.0,
        mask_unit="ngram",
        optimizer="lamb",
        embedding=128,
        activation="gelu_new",
        is_shared=True,
        notes=(
            "no dropout, as in version 2 of the models (the paper's have 0.1)",
            "gelu by tanh, as google-research/albert computes it and transformers calls gelu_new",
        ),
    )


def _spanbert(layers: int, width: int) -> Preset:
    return dataclasses.replace(
        _bert(layers, width, "Joshi et al. 2020"),
        warmup_share=10_000 / 2_400_000,
        steps=2_400_000,
        weight_decay=0.1,
        adam_epsilon=1e-8,
        short_share=0.0,
        decays_from_peak=True,
        mask_unit="span",
        has_boundary_head=True,
        notes=("weight decay 0.1, as the paper has it (the authors' command line has 0.01)",),
    )


def _tiny(preset: Preset, **changes: float) -> Preset:
    """For trials on small machines; nobody published such a model."""
    return dataclasses.replace(preset, batch_sequences=256, is_own=True, **changes)  # type: ignore[arg-type]


PRESETS: dict[str, Preset] = {
    "bert-tiny": _bert(2, 128),
    "bert-mini": _bert(4, 256),
    "bert-small": _bert(4, 512),
    "bert-medium": _bert(8, 512),
    "bert-base": _bert(12, 768, "Devlin et al. 2019"),
    "bert-large": _bert(24, 1024, "Devlin et al. 2019"),
    "roberta-tiny": _tiny(_roberta(2, 128, 6e-4, 0.048)),
    "roberta-base": _roberta(12, 768, 6e-4, 0.048),
    "roberta-large": _roberta(24, 1024, 4e-4, 0.06),
    # The learning rate for a sixteenth of the batch: LAMB's scales with its square root (You et al. 2020, section 4.1).
    "albert-tiny": _tiny(_albert(2, 256, 4), learning_rate=0.00044),
    "albert-base": _albert(12, 768, 12),
    "albert-large": _albert(24, 1024, 16),
    "albert-xlarge": _albert(24, 2048, 16),
    "albert-xxlarge": _albert(12, 4096, 64),
    "spanbert-tiny": _tiny(_spanbert(2, 128)),
    "spanbert-base": _spanbert(12, 768),
    "spanbert-large": _spanbert(24, 1024),
}


def find_preset(name: str) -> Preset:
    """A preset by name.

    >>> find_preset("bert-base").heads
    12

    Raises `errors.RecipeInvalid` naming the nearest valid name.
    """
    if name in PRESETS:
        return PRESETS[name]
    near = difflib.get_close_matches(name, PRESETS, 1, 0.4)
    mend = f"did you mean '{near[0]}'?" if near else f"presets: {', '.join(PRESETS)}"
    raise errors.RecipeInvalid("pretrain.preset", f"unknown preset '{name}'", mend)
