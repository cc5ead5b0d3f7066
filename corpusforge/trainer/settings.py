"""What a training run is told.

Comes in: the recipe's sections. Goes out: `Settings`, plain values with 0 (-1 where 0 has a meaning) for "the preset's
own", which `course.chart` fills in. Decision: a step is a number of tokens, padding not counted (RoBERTa's fairseq
counts sequences; its short blocks would then make small batches).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corpusforge.instances.masking import MaskSettings
from corpusforge.loader.folder import mask_settings


@dataclass(frozen=True)
class Settings:
    """The settings of a run; fields named as in the recipe's [pretrain] mean what they mean there."""

    preset: str = "bert-base"
    seed: int = 0
    steps: int = 0
    batch_tokens: int = 0
    micro_batch_tokens: int = 16_384
    packing: bool = True
    optimizer: str = "auto"
    learning_rate: float = 0.0
    warmup_steps: int = -1
    decay: str = "linear"
    decay_share: float = 0.1
    budget: str = ""
    batch_ramp: float = 1.0
    batch_ramp_share: float = 0.25
    mask_rate_start: float = -1.0
    mask_rate_end: float = -1.0
    short_length: int = 128
    short_share: float = -1.0
    dropout: float = -1.0
    precision: str = "auto"
    device: str = "auto"
    compile: bool = False
    sharding: str = "none"
    checkpoint_steps: int = 1000
    keep_checkpoints: int = 3
    keep_best: bool = True
    on_spike: str = "ignore"
    spike_deviations: float = 6.0
    loader_threads: int = 1
    evaluate_steps: int = 500
    log_steps: int = 10
    tensorboard: bool = True
    wandb: str = ""
    allow_new_data: bool = False
    init: str = ""  # folder of a checkpoint to begin from
    init_shape: bool = False
    init_any_vocabulary: bool = False
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


def differences(then: dict[str, object], now: Settings) -> list[str]:
    """Names of settings that change the numbers of a run and differ from those a checkpoint was written with."""
    harmless = {
        *("checkpoint_steps", "keep_checkpoints", "evaluate_steps", "heldout_tokens", "log_steps", "tensorboard"),
        *("keep_best", "wandb", "on_spike", "loader_threads"),
        *("allow_new_data", "threads", "device", "sharding"),
    }
    mine = dataclasses.asdict(now)
    return sorted(k for k, v in mine.items() if k not in harmless and k in then and then[k] != v)
