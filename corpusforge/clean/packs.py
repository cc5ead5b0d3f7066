"""The rule packs: bundled ones by name, a user's own by path, and the step that each kind of pack makes.

A pack names its kind, one of `KINDS` (``kind = "c4"`` by default).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from corpusforge import errors
from corpusforge.bundled import bundled
from corpusforge.clean.c4 import C4Step
from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.fineweb import FinewebRules, FinewebStep
from corpusforge.clean.gopher import GopherRules, GopherStep
from corpusforge.clean.pack import Pack, build_pack, read_toml
from corpusforge.clean.patterns import Patterns, PatternsStep
from corpusforge.clean.step import Step
from corpusforge.sections import Clean


class Kind(NamedTuple):
    """``rules``: the dataclass that a pack is read into. ``step``: makes the step of a pack for a run's settings."""

    rules: type[Pack]
    step: Callable[[Any, Clean], Step]


KINDS = {
    kind.rules.kind: kind
    for kind in (
        Kind(Rules, lambda rules, section: C4Step(rules, section.sentences, section.badwords)),
        Kind(GopherRules, lambda rules, _: GopherStep(rules)),
        Kind(FinewebRules, lambda rules, _: FinewebStep(rules)),
        Kind(Patterns, lambda rules, _: PatternsStep(rules)),
    )
}
"""Every kind of pack, by its name in files."""


def list_packs() -> list[str]:
    """Names of the bundled packs, sorted."""
    return sorted(path.stem for path in bundled("rules").glob("*.toml"))


def load_pack(name_or_path: str) -> Pack:
    """A pack by bundled name or by path.

    Raises `errors.InputMissing` if there is none, `errors.RecipeInvalid` for an invalid key or value.
    """
    path = find_pack(name_or_path)
    raw = read_toml(path)
    kind = raw.get("kind", "c4")
    if not isinstance(kind, str) or kind not in KINDS:
        raise errors.RecipeInvalid(str(path), f"kind = {str(kind)[:100]!r}", f"kinds of packs: {', '.join(KINDS)}")
    return build_pack(KINDS[kind].rules, raw, path)


def load_rules(name_or_path: str) -> Rules:
    """A pack of the kind "c4". Raises as `load_pack`, and `errors.RecipeInvalid` for another kind."""
    pack = load_pack(name_or_path)
    if not isinstance(pack, Rules):
        raise errors.RecipeInvalid(name_or_path, f"a pack of the kind '{pack.kind}'", "name one of the kind 'c4'")
    return pack


def recorded_pack(name: str, values: Mapping[str, Any]) -> Pack | None:
    """A pack from its values in a manifest (`Step.resources`); None if they are of no known kind."""
    lists = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    named = KINDS.get(str(lists.pop("kind", "")))
    kinds = [kind.rules for kind in ([named] if named else KINDS.values()) if kind.rules.rules().keys() >= lists.keys()]
    if not kinds:
        return None
    closest = min(kinds, key=lambda rules: len(rules.rules()))  # manifests of full packs do not name the kind
    return closest(name=name, title="", sources=dict.fromkeys(lists, ""), **lists)


def step_of(pack: Pack, section: Clean) -> Step:
    """The step that applies a pack with the settings of a run."""
    return KINDS[pack.kind].step(pack, section)


def diff_packs(a: Pack, b: Pack) -> list[tuple[str, Any, Any]]:
    """The rules in which two packs differ: ``(rule, value in a, value in b)``; None for a rule that a kind does not
    have.

    Packs of two kinds differ in the kind, which is the first row, and share the rules of equal name.
    """
    left, right = a.values(), b.values()
    rows: list[tuple[str, Any, Any]] = []
    if type(a) is not type(b):
        rows = [("kind", a.kind, b.kind)]
    names = [*left, *(key for key in right if key not in left)]
    return rows + [(key, left.get(key), right.get(key)) for key in names if left.get(key) != right.get(key)]


def find_pack(name_or_path: str) -> Path:
    """The path of a pack. Raises `errors.InputMissing` with the names that exist."""
    path = Path(name_or_path)
    if path.suffix == ".toml" and os.path.isfile(name_or_path):  # noqa: PTH113 (false also for names that cannot be)
        return path
    if path.suffix == ".toml" and "/" in name_or_path:
        raise errors.InputMissing(name_or_path[:200], "no such rule pack", "check the path")
    names = list_packs()
    if name_or_path in names:
        return bundled("rules") / f"{name_or_path}.toml"
    near = _meant(name_or_path.lower(), names)
    mend = f"did you mean {near}?" if near else f"bundled packs: {', '.join(names)}, or a path to a .toml file"
    raise errors.InputMissing(name_or_path[:200], "no rule pack of that name", mend)


def _meant(word: str, names: list[str]) -> str:
    """The packs that a user may have meant, or "": by a part of the name, else its spelling, else a word of the title.

    >>> _meant("goper", ["gopher", "mc4"]), _meant("mc4-en", ["gopher", "mc4"])
    ("'gopher'", "'mc4'")
    """
    meant = [name for name in names if len(word) > 1 and (word in name or word.startswith(name))]
    meant = meant or difflib.get_close_matches(word, names, 1, 0.7)
    meant = meant or [name for name in names if word in re.findall(r"[a-z]{4,}", load_pack(name).title.lower())]
    return " or ".join(f"'{name}'" for name in meant)
