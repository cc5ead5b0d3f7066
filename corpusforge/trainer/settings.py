"""What a training run is told, and what it means once the preset has filled in what was left open.

Comes in: `Settings`, plain values with 0 (-1 where 0 has a meaning) for "the preset's own". Goes out: `Resolved`, with
every number decided and the run cut into its parts: the short part and the full-length one. Decision: a step is a
number of tokens, padding not counted (RoBERTa's fairseq counts sequences; its short blocks would then make small
batches).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corpusforge import errors
from corpusforge.instances.masking import MaskSettings
from corpusforge.loader.folder import mask_settings
from corpusforge.loader.order import Part
from corpusforge.trainer.presets import Preset, find_preset


@dataclass(frozen=True)
class Settings:
    """The settings of a run; fields named as in the recipe's [pretrain] mean what they mean there."""

    preset: str = "bert-base"
    seed: int = 0
    steps: int = 0
    batch_tokens: int = 0
    micro_batch_tokens: int = 16_384
    optimizer: str = "auto"
    learning_rate: float = 0.0
    warmup_steps: int = -1
    decay: str = "linear"
    short_length: int = 128
    short_share: float = -1.0
    dropout: float = -1.0
    precision: str = "auto"
    device: str = "auto"
    compile: bool = False
    checkpoint_steps: int = 1000
    keep_checkpoints: int = 3
    evaluate_steps: int = 500
    log_steps: int = 10
    tensorboard: bool = True
    allow_new_data: bool = False
    threads: int = 0  # of torch on the CPU; 0: torch's own choice (all cores)
    heldout_tokens: int = 131_072  # of the held-out shards read for each held-out loss while training
    masking: MaskSettings = field(default_factory=MaskSettings)  # of dynamic masks: what the instances were built with


def from_sections(pretrain: Mapping[str, Any], instances: Mapping[str, Any], seed: int) -> Settings:
    """Settings from the recipe's [pretrain] and [instances] sections as plain values; other keys are passed over.

    >>> from_sections({"preset": "bert-tiny", "steps": 5}, {"mask_rate": 0.2, "length": 64}, 7).masking.rate
    0.2
    """
    known = {f.name for f in dataclasses.fields(Settings)} - {"seed", "masking"}
    return Settings(**{k: v for k, v in pretrain.items() if k in known}, seed=seed, masking=mask_settings(instances))


@dataclass(frozen=True)
class Resolved:
    """A run with nothing left open."""

    preset: Preset
    steps: int
    optimizer: str
    learning_rate: float
    warmup_steps: int
    dropout: float
    parts: tuple[Part, ...]

    def part_of(self, step: int) -> int:
        """Number of the part that step ``step`` (from 0) belongs to."""
        return next(k for k, part in enumerate(self.parts) if step < part.stop)


def resolve(settings: Settings, longest: int) -> Resolved:
    """Fill in the preset's own numbers; ``longest``: tokens of the longest instance.

    Raises `errors.RecipeInvalid` where a batch would not hold one instance.
    """
    preset = find_preset(settings.preset)
    steps = settings.steps or preset.steps
    warmup = settings.warmup_steps if settings.warmup_steps >= 0 else round(preset.warmup_share * steps)
    share = settings.short_share if settings.short_share >= 0 else preset.short_share
    switch = round(share * steps) if longest > settings.short_length else 0
    parts = []
    for start, stop, length in ((0, switch, settings.short_length), (switch, steps, longest)):
        if stop > start:
            parts.append(Part(start, stop, length, settings.batch_tokens or preset.batch_sequences * length))
    for name in ("batch_tokens", "micro_batch_tokens"):
        given = getattr(settings, name)
        if given and given < parts[-1].length:
            what = f"{given} tokens do not hold one instance of {parts[-1].length}"
            raise errors.RecipeInvalid(f"pretrain.{name}", what, f"set it to {parts[-1].length} or more")
    rate = settings.learning_rate or preset.learning_rate
    dropout = settings.dropout if settings.dropout >= 0 else preset.dropout
    optimizer = preset.optimizer if settings.optimizer == "auto" else settings.optimizer
    return Resolved(preset, steps, optimizer, rate, min(warmup, steps), dropout, tuple(parts))


def differences(then: dict[str, object], now: Settings) -> list[str]:
    """Names of settings that change the numbers of a run and differ from those a checkpoint was written with."""
    harmless = {
        *("checkpoint_steps", "keep_checkpoints", "evaluate_steps", "heldout_tokens", "log_steps", "tensorboard"),
        *("allow_new_data", "threads", "device"),
    }
    mine = dataclasses.asdict(now)
    return sorted(k for k, v in mine.items() if k not in harmless and k in then and then[k] != v)
