"""Rule packs as data: what all kinds share, and how a pack is read from TOML.

A pack gives each value with its source, ``[min_words] value = 5 source = "..."``, and becomes a frozen dataclass with
one field per rule. Rules that it does not name are off, so a pack keeps working when its kind gets a new rule. A pack
is only data: its values are numbers, words and lists of words, checked against the fields of its kind; no name in it is
ever imported, called or opened.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from corpusforge import errors

P = TypeVar("P", bound="Pack")

# Limits far above those of real packs, against broken or hostile files.
_MOST_BYTES = 1 << 20
_MOST_ENTRIES = 1000
_LARGEST = 2**31 - 1


def rule(off: int | float | bool | tuple[()], help: str) -> Any:
    """A rule of a pack: a field that is ``off`` (0, false, empty) in packs that do not name it."""
    return dataclasses.field(default=off, metadata={"help": help})


@dataclass(frozen=True)
class Pack:
    """A rule pack. The fields of a subclass are its rules, made by `rule`, of the types in `_TYPES`.

    ``kind``: its name in a file. ``sources``: the source of each value that the pack states.
    """

    kind: ClassVar[str] = ""
    name: str
    title: str
    sources: dict[str, str]

    @classmethod
    def rules(cls) -> dict[str, dataclasses.Field[Any]]:
        """The fields of all rules by name, in order: each has a type, a default and a help text (``metadata``)."""
        return {field.name: field for field in dataclasses.fields(cls) if field.metadata}

    def values(self) -> dict[str, Any]:
        """All rules by name; lists as tuples."""
        return {key: getattr(self, key) for key in self.rules()}

    def recorded(self) -> dict[str, Any]:
        """The rules that the pack states or that are on, for manifests, so that a rule added later changes no digest.

        Where some are left out the kind is named too, as the other names may not determine it.
        """
        values = self.values()
        stated = {key: value for key, value in values.items() if value or key in self.sources}
        return stated if len(stated) == len(values) else {"kind": self.kind, **stated}

    def check(self, where: str) -> None:
        """Raises `errors.RecipeInvalid` if values do not fit together; for subclasses."""


@dataclass(frozen=True)
class PackStep:
    """The part that the steps of all packs share; a subclass adds `apply` and the type of its rules."""

    rules: Pack

    @property
    def name(self) -> str:
        """The name of the pack."""
        return self.rules.name

    def check(self) -> None:
        """Most packs need nothing: their values were checked when the pack was read."""

    def resources(self) -> dict[str, Any]:
        """The pack's own values."""
        return {"pack": self.rules.recorded()}


_TYPES = {
    "int": f"a whole number from 0 to {_LARGEST}",
    "float": "a number not below 0",
    "bool": "true or false",
    "tuple[str, ...]": f"a list of at most {_MOST_ENTRIES} non-empty strings",
}


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a pack's file. Raises `errors.RecipeInvalid` for a file that is not TOML, or far too large."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise errors.RecipeInvalid(str(path), "larger than 1 MiB", "a rule pack is a few kilobytes of TOML")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise errors.RecipeInvalid(str(path), "not a text file", "name the TOML file of a rule pack") from None
    except tomllib.TOMLDecodeError as error:
        raise errors.RecipeInvalid(str(path), f"not valid TOML ({error})", "fix the line it names") from None
    except RecursionError:
        raise errors.RecipeInvalid(str(path), "nested too deeply", "a pack is one level of tables") from None


def build_pack(kind: type[P], raw: Mapping[str, Any], path: Path) -> P:
    """A pack of a kind. Raises `errors.RecipeInvalid` for an invalid key or value."""
    where, known = str(path), kind.rules()
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, entry in raw.items():
        if key in ("title", "kind"):
            continue
        if key not in known:
            near = difflib.get_close_matches(key, known, 1, 0.5)
            mend = f"did you mean '{near[0]}'?" if near else f"valid rules: {', '.join(known)}"
            raise errors.RecipeInvalid(where, f"unknown rule '{_short(key)}'", mend)
        values[key], sources[key] = _checked(key, str(known[key].type), entry, where)
    if not isinstance(raw.get("title"), str):
        raise errors.RecipeInvalid(where, "the pack has no title", 'add a line: title = "..."')
    if not values:
        raise errors.RecipeInvalid(where, "the pack names no rule", f"name one: {', '.join(known)}")
    pack = kind(name=path.stem, title=raw["title"], sources=sources, **values)
    pack.check(where)
    return pack


def _checked(key: str, kind: str, entry: Any, where: str) -> tuple[Any, str]:
    if not isinstance(entry, Mapping) or set(entry) != {"value", "source"} or not isinstance(entry["source"], str):
        raise errors.RecipeInvalid(
            where,
            f"'{key}' is not given as value and source",
            f'write [{key}], then value = ... and source = "..." on lines of their own',
        )
    value = entry["value"]
    if kind == "int" and type(value) is int and 0 <= value <= _LARGEST:
        return value, entry["source"]
    if kind == "float" and type(value) in (int, float) and math.isfinite(value) and 0 <= value <= _LARGEST:
        return float(value), entry["source"]
    if kind == "bool" and type(value) is bool:
        return value, entry["source"]
    listed = isinstance(value, list) and len(value) <= _MOST_ENTRIES
    if kind == "tuple[str, ...]" and listed and all(isinstance(v, str) and v for v in value):
        return tuple(value), entry["source"]
    raise errors.RecipeInvalid(where, f"{key} = {_short(repr(value))}", f"it must be {_TYPES[kind]}")


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."
