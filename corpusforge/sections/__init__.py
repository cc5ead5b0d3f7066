"""Every setting, defined once with its default, unit, check, flag and help.

A section is a frozen dataclass, `Recipe` holds them all. `corpusforge.recipe` reads them from TOML and flags,
`corpusforge.cli` derives its flags from them.
"""

from corpusforge.sections.corpus import INPUT_FORMATS, Clean, Dedupe, Input, InputFormat, Urls
from corpusforge.sections.fields import (
    Check,
    OneOf,
    all_of,
    at_least,
    between,
    option,
    output_settings,
    plain_name,
    some_of,
    warn_renamed,
)
from corpusforge.sections.instances import Instances
from corpusforge.sections.recipe import LINE, READS, Recipe, Setting, settings
from corpusforge.sections.training import TASKS, Evaluate, Pretrain
from corpusforge.sections.vocab import Vocab

__all__ = [
    "INPUT_FORMATS", "LINE", "READS", "TASKS", "Check", "Clean", "Dedupe", "Evaluate", "Input",
    "InputFormat", "Instances", "OneOf", "Pretrain", "Recipe", "Setting", "Urls", "Vocab", "all_of", "at_least",
    "between", "option", "output_settings", "plain_name", "settings", "some_of", "warn_renamed",
]  # fmt: skip
