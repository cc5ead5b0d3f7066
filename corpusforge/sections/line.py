"""The stages in their order, the recipe of a whole line, and all its settings by their dotted keys.

`Recipe` holds one frozen dataclass a section; `settings` is what the command line and the docs show of them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from corpusforge.sections.corpus import Clean, Dedupe, Input, Urls
from corpusforge.sections.fields import OneOf, all_of, between, option, plain_name
from corpusforge.sections.instances import Instances
from corpusforge.sections.training import Evaluate, Pretrain
from corpusforge.sections.vocab import Vocab

LINE = ("clean", "dedupe", "train-vocab", "build-instances", "pretrain", "evaluate", "report")
"""The stages in their order."""


@dataclass(frozen=True)
class Recipe:
    """The whole line. ``stages``: which sections `corpusforge run` carries out, in the order of the line."""

    name: str = option("run", "what the run is called in reports and the model card", check=plain_name)
    seed: int = option(0, "seed of everything random", check=between(0, 2**63 - 1))
    stages: tuple[str, ...] = option(
        LINE,
        "stages to run",
        check=all_of(*LINE),
    )
    input: Input = field(default_factory=Input)
    urls: Urls = field(default_factory=Urls)
    clean: Clean = field(default_factory=Clean)
    dedupe: Dedupe = field(default_factory=Dedupe)
    vocab: Vocab = field(default_factory=Vocab)
    instances: Instances = field(default_factory=Instances)
    pretrain: Pretrain = field(default_factory=Pretrain)
    evaluate: Evaluate = field(default_factory=Evaluate)


@dataclass(frozen=True)
class Setting:
    """One field of a recipe as the command line and the docs show it."""

    key: str
    default: Any
    help: str
    unit: str
    choices: tuple[str, ...]
    methods: tuple[str, ...] = ()  # of deduplication, where it is not for all of them
    was: str = ""  # its name before a rename


def settings(recipe: Any = None) -> dict[str, Setting]:
    """Every setting by its dotted key, in the recipe's order."""
    found: dict[str, Setting] = {}

    def collect(values: Any, prefix: str) -> None:
        for spec in dataclasses.fields(values):
            value, key = getattr(values, spec.name), f"{prefix}{spec.name}"
            if dataclasses.is_dataclass(value):
                collect(value, f"{key}.")
            else:
                check = spec.metadata["check"]
                choices = check.values if isinstance(check, OneOf) else ()
                shown = {name: spec.metadata[name] for name in ("help", "unit", "methods", "was")}
                found[key] = Setting(key=key, default=value, choices=choices, **shown)

    collect(recipe or Recipe(), "")
    return found
