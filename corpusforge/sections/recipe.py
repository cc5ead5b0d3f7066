"""The stages in order, the recipe of a whole run, and the list of its settings by dotted key.

`Recipe` holds one frozen dataclass a section; `settings` is what the command line and the docs show of them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpusforge.sections.corpus import Clean, Dedupe, Input, Urls
from corpusforge.sections.fields import OneOf, all_of, between, option, plain_name
from corpusforge.sections.instances import Instances
from corpusforge.sections.training import Evaluate, Pretrain
from corpusforge.sections.vocab import Vocab

LINE = ("clean", "dedupe", "train-vocab", "build-instances", "pretrain", "evaluate", "report")
"""The stages in their order."""

READS: Mapping[str, tuple[str, ...]] = {
    "clean": ("clean", "input", "urls"),
    "dedupe": ("dedupe",),
    "train-vocab": ("vocab",),
    "build-instances": ("instances",),
    "pretrain": ("pretrain",),
    "evaluate": ("evaluate", "pretrain"),  # pretrain: device and threads
}
"""Sections that each stage reads, its own first."""


@dataclass(frozen=True)
class Recipe:
    """All settings. ``stages``: what `corpusforge run` runs, in the order of `LINE`."""

    name: str = option("run", "name of the run in reports and the model card", check=plain_name)
    seed: int = option(0, "seed of everything random", check=between(0, 2**63 - 1))
    stages: Sequence[str] = option(LINE, "stages to run", check=all_of(*LINE))
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
    """One field of a recipe by its dotted key; the rest as in `corpusforge.sections.option`."""

    key: str
    default: Any
    help: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # dotted keys of the same section
    unless: Mapping[str, Any] = field(default_factory=dict)  # the same
    flag: str = ""  # "--yes/--no" for a switch; "" if there is none
    metavar: str | None = None
    was: str = ""
    allowed: str = ""  # the values that its check allows, for the reference; "": any of its type

    @property
    def shown_default(self) -> str:
        """The default as it is typed: of a switch the flag, of a list its entries by commas.

        >>> settings()["pretrain.packing"].shown_default, settings()["clean.pii_kinds"].shown_default
        ('--packing', 'email,ip,phone')
        """
        yes, _, no = self.flag.partition("/")
        if no:
            return yes if self.default else no
        return ",".join(self.default) if isinstance(self.default, tuple) else str(self.default)


@functools.cache
def settings() -> dict[str, Setting]:
    """Every setting by its dotted key, in the order of the sections.

    >>> settings()["dedupe.memory_megabytes"].flag, settings()["clean.min_language_probability"].flag
    ('--memory-budget', '--min-language-probability')
    """
    listed: dict[str, Setting] = {}

    def collect(values: Any, prefix: str) -> None:
        for spec in dataclasses.fields(values):
            value, key, more = getattr(values, spec.name), f"{prefix}{spec.name}", spec.metadata
            if dataclasses.is_dataclass(value):
                collect(value, f"{key}.")
                continue
            check, flag = more["check"], more["flag"] or f"--{spec.name.replace('_', '-')}"
            listed[key] = Setting(
                key,
                value,
                more["help"],
                more["unit"],
                check.values if isinstance(check, OneOf) else (),
                {f"{prefix}{name}": values for name, values in more["only_with"].items()},
                {f"{prefix}{name}": value for name, value in more["unless"].items()},
                "" if more["advanced"] else flag,
                more["metavar"],
                more["was"],
                getattr(check, "allowed", ""),
            )

    collect(Recipe(), "")
    return listed
