"""Detect settings that have no effect.

Given on the command line, such a setting is a mistake and ends the run before it begins. A recipe may hold settings for
methods that are named another time, so there it is a line to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def check_given(recipe: Recipe, given: Mapping[str, str], *, by_flags: bool = True) -> None:
    """Raise `errors.RecipeInvalid` for a setting that has no effect. ``given``: keys, and the flags they came by.

    ``by_flags``: whether the message names other settings by their flags, rather than by their keywords.

    Saying no to what is off anyway (``--no-signatures``) is not an error.
    """
    for key, flag in given.items():
        if recipe.vocab.adopt and key.startswith("vocab.") and key not in USED_WITH_ADOPT:
            what = "the vocabulary is adopted as it is (--from), nothing is learned"
            raise errors.RecipeInvalid(flag, what, "leave it out, or leave --from out")
    for key, flag in given.items():
        decider = _unmet(recipe, key)
        if not decider or _value(recipe, key) is False:
            continue
        values, value = _SETTINGS[key].only_with.get(decider), _value(recipe, decider)
        other = (_SETTINGS[decider].flag or decider) if by_flags else decider.partition(".")[2]
        what = f"it has no effect with {other} {_shown(value)}"
        if not values:
            what = what if value != _SETTINGS[decider].default else f"it has no effect without {other}"
            raise errors.RecipeInvalid(flag, what, f"set {other}, or leave it out")
        verb = "add" if isinstance(value, tuple) else "choose"
        raise errors.RecipeInvalid(flag, what, f"{verb} {_or(values)} with {other}, or leave it out")


def unused_lines(recipe: Recipe) -> list[str]:
    """A line for each setting of [dedupe] in a recipe that is not the default and has no effect.

    Raises `errors.RecipeInvalid` for an index: a user who names one expects that what it holds is dropped.
    """
    if recipe.dedupe.index and _unmet(recipe, "dedupe.index"):
        what = f"the method is {_shown(recipe.dedupe.method)}, which looks into no index"
        raise errors.RecipeInvalid("dedupe.index", what, "add documents to dedupe.method, or leave the index out")
    return [
        f"{key} is not used by {_shown(_value(recipe, decider))}; it is for {_or(spec.only_with[decider])}"
        for key, spec in _SETTINGS.items()
        if key.startswith("dedupe.") and (decider := _unmet(recipe, key)) and _value(recipe, key) != spec.default
    ]


def _unmet(recipe: Recipe, key: str) -> str:
    """The key of the first setting whose value gives this one no effect, or ""."""
    spec = _SETTINGS[key]
    for decider, values in spec.only_with.items():
        value = _value(recipe, decider)
        if not set(values).intersection(value if isinstance(value, tuple) else (value,)):
            return decider
    return next((decider for decider, value in spec.unless.items() if _value(recipe, decider) == value), "")


def _value(recipe: Recipe, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(recipe, section), name)


def _shown(value: Any) -> str:
    """
    >>> _shown(("lines", "documents")), _shown(""), _shown(0.0)
    ('lines,documents', "''", '0')
    """
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else value or "''"


def _or(names: Sequence[str]) -> str:
    """
    >>> _or(["lines"]), _or(["lines", "exact-spans", "near-spans"])
    ('lines', 'lines, exact-spans or near-spans')
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
