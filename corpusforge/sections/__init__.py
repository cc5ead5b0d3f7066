"""Every setting of a run: its default, unit, check and meaning; one frozen dataclass a section, `Recipe` over them.

`corpusforge.recipe` reads them from TOML and flags.
"""

from corpusforge.sections.corpus import Clean, Dedupe, Input, Urls
from corpusforge.sections.fields import (
    Check,
    OneOf,
    all_of,
    at_least,
    between,
    option,
    plain_name,
    some_of,
    warn_renamed,
)
from corpusforge.sections.instances import Instances
from corpusforge.sections.line import LINE, Recipe, Setting, settings
from corpusforge.sections.training import Evaluate, Pretrain
from corpusforge.sections.vocab import Vocab

__all__ = [
    "LINE", "Check", "Clean", "Dedupe", "Evaluate", "Input", "Instances", "OneOf", "Pretrain", "Recipe", "Setting",
    "Urls", "Vocab", "all_of", "at_least", "between", "option", "plain_name", "settings", "some_of",
    "warn_renamed",
]  # fmt: skip
