"""One setting of a recipe: its default, help, unit, check and flag.

A setting is defined once, by `option` in the dataclass of its section. Recipe files, flags, ``--set``, the digests of
stages and the docs are derived from it. A check returns what is wrong with a value, so that files and flags complain in
the same words.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any

Check = Callable[[Any], str | None]
"""Returns what is wrong with a value, or None."""


class Allowing:
    """A check with a text for the reference: the values that it allows."""

    def __init__(self, allowed: str, check: Check) -> None:
        self.allowed, self._check = allowed, check

    def __call__(self, value: Any) -> str | None:
        return self._check(value)


def allows(allowed: str) -> Callable[[Check], Check]:
    """Give a check the text that describes the values it allows."""
    return lambda check: Allowing(allowed, check)


class OneOf:
    """Check that a value is one of these words; the command line offers them as choices."""

    def __init__(self, *values: str) -> None:
        self.values, self.allowed = values, ", ".join(values)

    def __call__(self, value: Any) -> str | None:
        return None if value in self.values else f"must be one of {', '.join(self.values)}"


def all_of(*values: str) -> Check:
    """Check that every member of a list is one of these words."""

    @allows(f"any of {', '.join(values)}")
    def check(given: tuple[str, ...]) -> str | None:
        wrong = [v for v in given if v not in values]
        return f"names {wrong[0]!r}, which is none of {', '.join(values)}" if wrong else None

    return check


def some_of(*values: str) -> Check:
    """As `all_of`, with at least one member and no word twice."""

    @allows(f"one or several of {', '.join(values)}")
    def check(given: tuple[str, ...]) -> str | None:
        if not given or len(set(given)) < len(given):
            return f"must name one or several of {', '.join(values)}, each once"
        return all_of(*values)(given)

    return check


@allows("a name without slashes")
def plain_name(value: str) -> str | None:
    """Check that the value may name a folder, so that a recipe from elsewhere cannot choose where it is."""
    plain = value and not value.startswith(".") and not any(c in "/\\" or not c.isprintable() for c in value)
    return None if plain else "must be a name without slashes that begins with no dot"


def at_least(low: float) -> Check:
    """Check that a number is not below ``low``."""
    return Allowing(f"at least {low:,}", lambda v: None if v >= low else f"must be at least {low:g}")


def between(low: float, high: float) -> Check:
    """Check that a number is in [low, high]."""
    wrong = f"must lie between {low:g} and {high:g}"
    return Allowing(f"{low:,} to {high:,}", lambda v: None if low <= v <= high else wrong)


def seconds_of(text: str) -> float | None:
    """A duration in seconds, or None where the text is not one.

    >>> [seconds_of(text) for text in ("30m", "1h30m", "90s", "1.5h", "30", "")]
    [1800.0, 5400.0, 90.0, 5400.0, None, None]
    """
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?", text)
    if not match or not any(match.groups()):
        return None
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


@allows("empty, or a time such as 1h30m")
def duration(value: str) -> str | None:
    """Check that the value is empty or a duration such as ``1h30m``."""
    return None if not value or seconds_of(value) else "must be a time above 0 with units, as 30m, 1h30m or 90s"


def option(
    default: Any,
    help: str,
    *,
    unit: str = "",
    check: Check | None = None,
    is_path: bool = False,
    only_with: Mapping[str, tuple[str, ...]] | None = None,
    unless: Mapping[str, Any] | None = None,
    flag: str = "",
    metavar: str | None = None,
    advanced: bool = False,
    changes_output: bool = True,
    was: str = "",
) -> Any:
    """A field of a recipe section.

    ``is_path``: a relative value is relative to the recipe's folder, and a stage's digest holds the content, not the
    path. ``only_with``: values of other settings of the section without which this one has no effect; ``unless``: the
    value of another setting with which it has none. ``flag``: the flag where it is not ``--field-name``; of a switch
    both, ``"--yes/--no"``. ``advanced``: no flag, ``--set`` only. ``changes_output``: False for a setting that says how
    to run; it is not part of a stage's digest. ``was``: the key before a rename, which works for one release with a
    warning.
    """
    conditions = dict(only_with or {})
    if len(conditions) == 1:
        help = f"{', '.join(*conditions.values())}: {help}"
    metadata = {
        "help": help,
        "unit": unit,
        "check": check,
        "is_path": is_path,
        "only_with": conditions,
        "unless": unless or {},
        "flag": flag,
        "metavar": metavar,
        "advanced": advanced,
        "changes_output": changes_output,
        "was": was,
    }
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@functools.cache  # one warning a name and process
def warn_renamed(old: str, new: str) -> None:
    """Print one line on stderr: an old key or flag still works, and what to write instead."""
    sys.stderr.write(f"corpusforge: {old} was renamed: use {new}\n")


def output_settings(section: Any) -> set[str]:
    """Names of the settings of a section (a dataclass or an instance of it) that decide what its stage writes.

    Paths are not among them: what they name is in a stage's digest by its content.
    """
    return {spec.name for spec in fields(section) if spec.metadata["changes_output"] and not spec.metadata["is_path"]}
