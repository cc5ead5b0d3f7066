"""Rule packs: which pages and lines stay, as data.

Comes in: the name of a bundled pack or the path of a TOML file. Goes out: a frozen `Rules`. A pack gives every value
with its source, ``[min_words] value = 5 source = "..."``, because every implementation calls itself C4 and no two
agree: the code reads no constant from anywhere else.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusforge import errors
from corpusforge.bundled import bundled


@dataclass(frozen=True)
class Rules:
    """A rule pack. Numbers of 0 and empty lists switch a rule off. ``sources``: where each value is from."""

    name: str
    title: str
    max_page_characters: int  # a page with more is dropped unread
    max_word_characters: int  # a line with a longer white-space word is dropped
    numbered_citations: bool  # delete "[12]" and "[]"
    citations: tuple[str, ...]  # delete these as they stand
    end_marks: tuple[str, ...]  # a line must end in one
    no_end_marks: tuple[str, ...]  # and must not end in one of these
    min_words: int  # white-space words of a line
    lorem_ipsum: tuple[str, ...]  # found in a lower-cased line: the page goes
    javascript: tuple[str, ...]  # found in a lower-cased line: the line goes
    curly_brace: tuple[str, ...]  # found in a line: the page goes
    policy: tuple[str, ...]  # found in a lower-cased line: the line goes
    min_sentences: int  # of a page, counted in its kept lines
    badword_substring_languages: tuple[str, ...]  # bad words need no word edges in these
    badwords_removed: tuple[str, ...]  # "language:entry" left out of the lists
    sources: dict[str, str]

    def values(self) -> dict[str, Any]:
        """The rules by name, without name, title and sources; lists as tuples."""
        return {key: getattr(self, key) for key in _RULES}


_OTHERS = ("name", "title", "sources")
_RULES = tuple(f.name for f in dataclasses.fields(Rules) if f.name not in _OTHERS)
_KINDS = {f.name: str(f.type) for f in dataclasses.fields(Rules)}


def list_rules() -> list[str]:
    """Names of the bundled packs, sorted."""
    return sorted(path.stem for path in bundled("rules").glob("*.toml"))


def load_rules(name_or_path: str) -> Rules:
    """A pack by bundled name or by path.

    Raises `errors.InputMissing` where there is none, `errors.RecipeInvalid` for a key or value that is not right.
    """
    path = _find(name_or_path)
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise errors.RecipeInvalid(str(path), f"not valid TOML ({error})", "mend the line it names") from None
    return _build(raw, path)


def diff_rules(a: Rules, b: Rules) -> list[tuple[str, Any, Any]]:
    """Where two packs differ: ``(rule, value in a, value in b)`` in the order of `Rules`."""
    left, right = a.values(), b.values()
    return [(key, left[key], right[key]) for key in left if left[key] != right[key]]


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml" and (path.is_file() or "/" in name_or_path):
        if path.is_file():
            return path
        raise errors.InputMissing(name_or_path, "no such rule pack", "check the path")
    names = list_rules()
    if name_or_path in names:
        return bundled("rules") / f"{name_or_path}.toml"
    near = difflib.get_close_matches(name_or_path, names, 1, 0.5)
    mend = f"did you mean '{near[0]}'?" if near else f"bundled packs: {', '.join(names)}, or a path to a .toml file"
    raise errors.InputMissing(name_or_path, "no rule pack of that name", mend)


def _build(raw: Mapping[str, Any], path: Path) -> Rules:
    where, values, sources = str(path), {}, {}
    for key, entry in raw.items():
        if key == "title":
            continue
        if key not in _RULES:
            near = difflib.get_close_matches(key, _RULES, 1, 0.5)
            mend = f"did you mean '{near[0]}'?" if near else f"valid rules: {', '.join(_RULES)}"
            raise errors.RecipeInvalid(where, f"unknown rule '{key}'", mend)
        values[key], sources[key] = _checked(key, entry, where)
    missing = [key for key in _RULES if key not in values]
    if missing or not isinstance(raw.get("title"), str):
        lacking = ", ".join(missing) or "title"
        raise errors.RecipeInvalid(where, f"the pack does not say: {lacking}", "a pack states every rule and a title")
    return Rules(name=path.stem, title=raw["title"], sources=sources, **values)


def _checked(key: str, entry: Any, where: str) -> tuple[Any, str]:
    if not isinstance(entry, Mapping) or set(entry) != {"value", "source"} or not isinstance(entry["source"], str):
        raise errors.RecipeInvalid(
            where, f"'{key}' is not given as value and source", f"[{key}] value = .. source = .."
        )
    value, kind = entry["value"], _KINDS[key]
    if kind == "int" and type(value) is int and value >= 0:
        return value, entry["source"]
    if kind == "bool" and type(value) is bool:
        return value, entry["source"]
    if kind == "tuple[str, ...]" and isinstance(value, list) and all(isinstance(v, str) and v for v in value):
        return tuple(value), entry["source"]
    meant = {"int": "a number not below 0", "bool": "true or false"}.get(kind, "a list of non-empty strings")
    raise errors.RecipeInvalid(where, f"{key} = {value!r}", f"it must be {meant}")
