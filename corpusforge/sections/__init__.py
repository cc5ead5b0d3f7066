"""Every setting of a run: its default, unit, check and meaning; one frozen dataclass a section, `Recipe` over them.

`corpusforge.recipe` reads them from TOML and flags.
"""

from corpusforge.sections.corpus import Clean, Dedupe
from corpusforge.sections.examples import Instances, Vocab
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
from corpusforge.sections.line import LINE, Recipe, Setting, settings
from corpusforge.sections.pages import Input, Urls
from corpusforge.sections.training import Evaluate, Pretrain

__all__ = [
    "LINE", "Check", "Clean", "Dedupe", "Evaluate", "Input", "Instances", "OneOf", "Pretrain", "Recipe", "Setting",
    "Urls", "Vocab", "all_of", "at_least", "between", "option", "plain_name", "settings", "some_of",
    "warn_renamed",
]  # fmt: skip
