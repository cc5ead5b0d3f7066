"""Architectures by name, with the hyper-parameters they were published with.

Sources: BERT, Devlin et al. 2019 (arXiv 1810.04805), section 3.1 and appendix A.2, and google-research/bert
`run_pretraining.py` and `optimization.py` (epsilon 1e-6); RoBERTa, Liu et al. 2019 (arXiv 1907.11692), table 9, and
section 3.1 ("only with full-length sequences"); the small BERTs, Turc et al. 2019 (arXiv 1908.08962), table 1, which
publish shapes only and train like BERT-base.
The size of the vocabulary is never part of a preset: it comes from the vocabulary.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass

from corpusforge import errors


@dataclass(frozen=True)
class Preset:
    """A shape and how it was trained. ``batch_sequences`` x length of the part of training = tokens of a step."""

    family: str  # "bert" or "roberta": names of the weights, position ids, segments
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
    short_share: float  # of the steps, at Settings.short_length (BERT, appendix A.2: 90 %)
    decays_from_peak: bool  # see `schedule`
    beta_1: float = 0.9
    adam_epsilon: float = 1e-6
    weight_decay: float = 0.01  # not on biases and LayerNorm
    optimizer: str = "adamw"  # or bert-adam, lamb: see `optimizers`


def _bert(layers: int, width: int) -> Preset:
    return Preset(
        *("bert", layers, width, width // 64, 4 * width, 1e-12, 0.1),
        *(1e-4, 0.01, 1_000_000, 256, 0.999, 1.0),
        short_share=0.9,
        decays_from_peak=False,
    )


def _roberta(layers: int, width: int, rate: float, warmup_share: float) -> Preset:
    return Preset(
        *("roberta", layers, width, width // 64, 4 * width, 1e-5, 0.1),
        *(rate, warmup_share, 500_000, 8192, 0.98, 0.0),
        short_share=0.0,
        decays_from_peak=True,
    )


PRESETS: dict[str, Preset] = {
    "bert-tiny": _bert(2, 128),
    "bert-mini": _bert(4, 256),
    "bert-small": _bert(4, 512),
    "bert-medium": _bert(8, 512),
    "bert-base": _bert(12, 768),
    "bert-large": _bert(24, 1024),
    # No such model was published: RoBERTa-base's recipe on Turc's tiny shape, for trials on small machines.
    "roberta-tiny": dataclasses.replace(_roberta(2, 128, 6e-4, 0.048), batch_sequences=256),
    "roberta-base": _roberta(12, 768, 6e-4, 0.048),
    "roberta-large": _roberta(24, 1024, 4e-4, 0.06),
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
