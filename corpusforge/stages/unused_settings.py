"""Detect settings that have no effect.

Given on the command line, such a setting is a mistake and ends the run before it begins. A recipe may hold settings for
methods that are named another time, so there it is a line to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corpusforge import errors, sections
from corpusforge.sections import READS, Recipe

_SETTINGS = sections.settings()

USED_WITH_ADOPT = ("vocab.adopt", "vocab.sample")
"""Settings of the vocabulary that have an effect where one is adopted instead of learned."""


def check_read(command: str, given: Mapping[str, str]) -> None:
    """Raise `errors.RecipeInvalid` for a setting of a stage that the command does not run."""
    for key, flag in given.items():
        section, dot, _ = key.partition(".")
        if dot and command in READS and section not in READS[command]:
            reader = _or([name for name, sections in READS.items() if section in sections])
            what = f"{command} does not read [{section}], it is for {reader}"
            raise errors.RecipeInvalid(flag, what, f"give it to {reader}, or leave it out")


def check_given(made: Recipe, given: Mapping[str, str]) -> None:
    """Raise `errors.RecipeInvalid` for a setting that has no effect. ``given``: keys, and the flags they came by.

    Saying no to what is off anyway (``--no-signatures``) is not an error.
    """
    for key, flag in given.items():
        if made.vocab.adopt and key.startswith("vocab.") and key not in USED_WITH_ADOPT:
            what = "the vocabulary is adopted as it is (--from), nothing is learned"
            raise errors.RecipeInvalid(flag, what, "leave it out, or leave --from out")
    for key, flag in given.items():
        decider = _unmet(made, key)
        if not decider or _value(made, key) is False:
            continue
        name, values = decider.split(".")[1], _or(_SETTINGS[key].only_with[decider])
        if isinstance(_value(made, decider), tuple):
            mend = f"add {values} to {_SETTINGS[decider].flag}, or leave it out"
            raise errors.RecipeInvalid(flag, f"the {name} {_shown(made, decider)} does not use it", mend)
        what = f"the {name} {_shown(made, decider)} does not use it; it is for {values}"
        raise errors.RecipeInvalid(flag, what, f"choose that with {_SETTINGS[decider].flag}, or leave it out")


def unused_lines(made: Recipe, section: str) -> list[str]:
    """A line for each setting of a section of a recipe that is not the default and has no effect.

    Raises `errors.RecipeInvalid` for an index: a user who names one expects that what it holds is dropped.
    """
    if made.dedupe.index and section == "dedupe" and _unmet(made, "dedupe.index"):
        what = f"the method is {_shown(made, 'dedupe.method')}, which looks into no index"
        raise errors.RecipeInvalid("dedupe.index", what, "add documents to dedupe.method, or leave the index out")
    return [
        f"{key} is not used by {_shown(made, decider)}; it is for {_or(spec.only_with[decider])}"
        for key, spec in _SETTINGS.items()
        if key.startswith(f"{section}.") and (decider := _unmet(made, key)) and _value(made, key) != spec.default
    ]


def _unmet(made: Recipe, key: str) -> str:
    """The key of the first setting whose value gives this one no effect, or ""."""
    for decider, values in _SETTINGS[key].only_with.items() if key in _SETTINGS else ():
        chosen = _value(made, decider)
        if not set(values).intersection(chosen if isinstance(chosen, tuple) else (chosen,)):
            return decider
    return ""


def _value(made: Recipe, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(made, section), name)


def _shown(made: Recipe, key: str) -> str:
    value = _value(made, key)
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _or(names: Sequence[str]) -> str:
    """
    >>> _or(["lines"]), _or(["lines", "exact-spans", "near-spans"])
    ('lines', 'lines, exact-spans or near-spans')
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
