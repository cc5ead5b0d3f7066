"""A rule pack as data: what every kind of pack has, and how one is read from TOML.

Comes in: the path of a TOML file that gives every value with its source, ``[min_words] value = 5 source = "..."``.
Goes out: a frozen dataclass with one field a rule. A pack is data and nothing else: its values are numbers, words and
lists of words, checked against the fields of its kind; no name in it is ever imported, called or opened.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from corpusforge import errors

P = TypeVar("P", bound="Pack")

# Limits of what a pack may say, far above what packs say; they keep a broken or hostile file from taking the machine.
_MOST_BYTES = 1 << 20
_MOST_ENTRIES = 1000
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Pack:
    """What packs of every kind have. The fields of a subclass are its rules; 0, false and empty switch a rule off.

    ``sources``: where each value is from. Fields of rules are of the types in `_MEANT`.
    """

    name: str
    title: str
    sources: dict[str, str]

    @classmethod
    def rules(cls) -> dict[str, str]:
        """The type of every rule by its name, in order."""
        return {f.name: str(f.type) for f in dataclasses.fields(cls) if f.name not in _NOT_RULES}

    def values(self) -> dict[str, Any]:
        """The rules by name, without name, title and sources; lists as tuples."""
        return {key: getattr(self, key) for key in self.rules()}

    def check(self, where: str) -> None:
        """Raises `errors.RecipeInvalid` where values do not fit together; subclasses say more."""


_NOT_RULES = ("name", "title", "sources")
_MEANT = {
    "int": f"a whole number from 0 to {_LARGEST}",
    "float": "a number not below 0",
    "bool": "true or false",
    "tuple[str, ...]": f"a list of at most {_MOST_ENTRIES} non-empty strings",
}


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a pack's file. Raises `errors.RecipeInvalid` for what is no TOML, or far too large."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise errors.RecipeInvalid(str(path), "larger than 1 MiB", "a rule pack is a few kilobytes of TOML")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise errors.RecipeInvalid(str(path), "not a text file", "name the TOML file of a rule pack") from None
    except tomllib.TOMLDecodeError as error:
        raise errors.RecipeInvalid(str(path), f"not valid TOML ({error})", "mend the line it names") from None
    except RecursionError:
        raise errors.RecipeInvalid(str(path), "nested too deeply", "a pack is one level of tables") from None


def build_pack(kind: type[P], raw: Mapping[str, Any], path: Path) -> P:
    """A pack of a kind. Raises `errors.RecipeInvalid` for a key or value that is not right."""
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
        values[key], sources[key] = _checked(key, known[key], entry, where)
    missing = [key for key in known if key not in values]
    if missing or not isinstance(raw.get("title"), str):
        lacking = ", ".join(missing) or "title"
        raise errors.RecipeInvalid(where, f"the pack does not say: {lacking}", "a pack states every rule and a title")
    made = kind(name=path.stem, title=raw["title"], sources=sources, **values)
    made.check(where)
    return made


def _checked(key: str, kind: str, entry: Any, where: str) -> tuple[Any, str]:
    if not isinstance(entry, Mapping) or set(entry) != {"value", "source"} or not isinstance(entry["source"], str):
        raise errors.RecipeInvalid(
            where, f"'{key}' is not given as value and source", f"[{key}] value = .. source = .."
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
    raise errors.RecipeInvalid(where, f"{key} = {_short(repr(value))}", f"it must be {_MEANT[kind]}")


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."
