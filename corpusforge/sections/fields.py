"""What a setting of a recipe is made of: its default, unit, meaning and check.

Comes in: a default with its help. Goes out: a dataclass field that carries them; a check says what is wrong with a
value, or None, so that files and flags complain in the same words.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any

Check = Callable[[Any], str | None]
"""Returns what is wrong with a value, or None."""


class OneOf:
    """Check that a value is one of these words; the command line offers them as choices."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def __call__(self, value: Any) -> str | None:
        return None if value in self.values else f"must be one of {', '.join(self.values)}"


def all_of(*values: str) -> Check:
    """Every member of a list is one of these words."""

    def check(given: tuple[str, ...]) -> str | None:
        wrong = [v for v in given if v not in values]
        return f"names {wrong[0]!r}, which is none of {', '.join(values)}" if wrong else None

    return check


def some_of(*values: str) -> Check:
    """As `all_of`, at least one, and each once."""

    def check(given: tuple[str, ...]) -> str | None:
        if not given or len(set(given)) < len(given):
            return f"must name one or several of {', '.join(values)}, each once"
        return all_of(*values)(given)

    return check


def plain_name(value: str) -> str | None:
    """The value may name a folder: a recipe of somebody else's must not choose where it lies."""
    plain = value and not value.startswith(".") and not any(c in "/\\" or not c.isprintable() for c in value)
    return None if plain else "must be a name without slashes that begins with no dot"


def at_least(low: float) -> Check:
    """The value is a number not below ``low``."""
    return lambda v: None if v >= low else f"must be at least {low:g}"


def between(low: float, high: float) -> Check:
    """The value lies in [low, high]."""
    return lambda v: None if low <= v <= high else f"must lie between {low:g} and {high:g}"


def seconds_of(text: str) -> float | None:
    """A duration in seconds, None where the text is none.

    >>> [seconds_of(text) for text in ("30m", "1h30m", "90s", "1.5h", "30", "")]
    [1800.0, 5400.0, 90.0, 5400.0, None, None]
    """
    number = r"(\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?", text)
    if not found or not any(found.groups()):
        return None
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds


def duration(value: str) -> str | None:
    """The value is a time as people write it, or empty."""
    return None if not value or seconds_of(value) else "must be a time above 0 with units, as 30m, 1h30m or 90s"


def option(
    default: Any,
    help: str,
    *,
    unit: str = "",
    check: Check | None = None,
    is_path: bool = False,
    methods: tuple[str, ...] = (),
    was: str = "",
    changes_output: bool = True,
) -> Any:
    """A field of a recipe section.

    ``is_path``: relative values are relative to the recipe's folder. ``methods``: the only deduplication methods that
    use it. ``was``: the key before a rename, accepted for one release with a warning. ``changes_output``: False for a
    setting that says how to run, and no part of a stage's digest.
    """
    help = f"{', '.join(methods)}: {help}" if methods else help
    metadata = {"help": help, "unit": unit, "check": check, "is_path": is_path, "methods": methods}
    metadata |= {"was": was, "changes_output": changes_output}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@functools.cache  # one warning a name and process
def warn_renamed(old: str, new: str) -> None:
    """Print one line on stderr: an old key or flag still works, and what to write instead."""
    sys.stderr.write(f"corpusforge: {old} was renamed: use {new}\n")
