"""Read, check and resolve a recipe from a TOML file, flags and ``--set section.field=value``.

Precedence: default, recipe, flag, ``--set``. An unknown key is an error that names the nearest valid one. Relative
paths in a recipe are relative to the recipe's own folder.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpusforge import errors
from corpusforge.bundled import bundled
from corpusforge.sections import Recipe, output_settings, settings, warn_renamed


def build(values: Mapping[str, Any], *, where: str, base: Recipe | None = None) -> Recipe:
    """A checked Recipe from nested values over those of ``base``.

    Raises `errors.RecipeInvalid` naming ``where``, the key, and what would be right.
    """
    return _build(Recipe, values, where, "", base or Recipe())  # type: ignore[no-any-return]


def _build(kind: Any, values: Mapping[str, Any], where: str, prefix: str, base: Any) -> Any:
    fields = {f.name: f for f in dataclasses.fields(kind)}
    renamed = {f.metadata["was"]: f.name for f in fields.values() if f.metadata.get("was")}
    changes: dict[str, Any] = {}
    for given, value in values.items():
        key = renamed.get(given, given)
        if key != given:
            warn_renamed(f"{where}: {prefix}{given}", f"{prefix}{key}")
        if key in changes:
            what = f"both '{prefix}{key}' and its old name '{prefix}{given}'"
            raise errors.RecipeInvalid(where, what, f"leave one out: keep '{prefix}{key}'")
        if key not in fields:
            raise errors.RecipeInvalid(where, f"unknown key '{prefix}{key}'", _nearest(key, prefix, list(fields)))
        current = getattr(base, key)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise errors.RecipeInvalid(where, f"'{key}' is {value!r}", f"write it as a section: [{key}]")
            changes[key] = _build(type(current), value, where, f"{key}.", current)
        else:
            changes[key] = _checked(fields[key], _convert(value, current), type(current), where, prefix)
    return dataclasses.replace(base, **changes)


def _nearest(key: str, prefix: str, fields: list[str]) -> str:
    """The key that was probably meant: one of this section, else one of that name in another."""
    elsewhere = {full.rpartition(".")[2]: full for full in settings()}
    for cutoff, names in ((0.8, fields), (0.8, list(elsewhere)), (0.5, fields)):
        near = difflib.get_close_matches(key, names, 1, cutoff)
        if near:
            return f"did you mean '{prefix + near[0] if names is fields else elsewhere[near[0]]}'?"
    return f"valid keys: {', '.join(fields)}"


def _convert(value: Any, like: Any) -> Any:
    """Bring a TOML or command-line value to the type of the default, where that loses nothing."""
    if isinstance(value, str) and not isinstance(like, str):
        if isinstance(like, tuple):
            return tuple(v for v in value.split(",") if v)
        return _parse(value, like)
    if isinstance(like, tuple) and isinstance(value, list) and all(isinstance(v, str | int | float) for v in value):
        return tuple(str(v) for v in value)
    if isinstance(like, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _parse(value: str, like: Any) -> Any:
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(value.lower(), value)
    try:
        return type(like)(value.replace("_", ""))
    except ValueError:
        return value


def _checked(spec: dataclasses.Field[Any], value: Any, kind: type, where: str, prefix: str) -> Any:
    """The value. Raises `errors.RecipeInvalid` where it is of another type or does not pass the field's check."""
    if type(value) is not kind:
        kinds = {tuple: "a list", int: "a whole number", float: "a number", bool: "true or false"}
        what = f"{prefix}{spec.name} = {value!r} is not {kinds.get(kind, 'text')}"
        raise errors.RecipeInvalid(where, what, spec.metadata["help"])
    check = spec.metadata["check"]
    wrong = check(value) if check else None
    if wrong:
        raise errors.RecipeInvalid(where, f"{prefix}{spec.name} = {value!r}", f"it {wrong}")
    return value


def load(name_or_path: str) -> Recipe:
    """A recipe by bare name (bundled) or by path, with its relative paths resolved against its folder."""
    path = find(name_or_path)
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise errors.RecipeInvalid(str(path), "not a text file", "name the TOML file of a recipe") from None
    except tomllib.TOMLDecodeError as error:
        raise errors.RecipeInvalid(str(path), f"not valid TOML ({error})", "mend the line it names") from None
    except RecursionError:
        raise errors.RecipeInvalid(str(path), "nested too deeply", "a recipe is sections of settings") from None
    if "title" in values:
        mend = f"give it to --rules, or see it with: corpusforge rules show {path}"
        raise errors.RecipeInvalid(str(path), "this is a rule pack, not a recipe", mend)
    recipe = build({"name": path.stem, **values}, where=str(path))
    return _resolve(recipe, path.parent)


def find(name_or_path: str) -> Path:
    """The file of a recipe. Raises `errors.InputMissing` with the names that exist."""
    path = Path(name_or_path)
    if path.suffix == ".toml" or "/" in name_or_path:
        if path.is_file():
            return path
        raise errors.InputMissing(name_or_path, "no such recipe file", "check the path")
    folder = bundled("pipelines")
    if (folder / f"{name_or_path}.toml").is_file():
        return folder / f"{name_or_path}.toml"
    names = sorted(p.stem for p in folder.glob("*.toml"))
    near = difflib.get_close_matches(name_or_path, names, 1, 0.5)
    mend = f"did you mean '{near[0]}'?" if near else f"bundled recipes: {', '.join(names)}"
    raise errors.InputMissing(name_or_path, "no bundled recipe of that name", mend)


def _resolve(recipe: Recipe, folder: Path) -> Recipe:
    def resolved(value: str, spec: dataclasses.Field[Any]) -> str:
        if spec.name in _LISTS:  # entries, or files named by @
            inner = value.removeprefix("@")
            absolute = inner == value or "://" in inner or Path(inner).is_absolute()
            return value if absolute else f"@{(folder / inner).resolve()}"
        if not value or "://" in value or Path(value).is_absolute() or value in _WORDS.get(spec.name, ()):
            return value
        if spec.name == "rules" and not value.endswith(".toml"):
            return value  # the name of a bundled pack
        return str((folder / value).resolve())

    def section(values: Any) -> Any:
        changes: dict[str, Any] = {}
        for spec in dataclasses.fields(values):
            value = getattr(values, spec.name)
            if dataclasses.is_dataclass(value):
                changes[spec.name] = section(value)
            elif spec.metadata.get("is_path") and not (spec.name == "paths" and values.format == "hub"):
                is_list = isinstance(value, tuple)
                changes[spec.name] = tuple(resolved(v, spec) for v in value) if is_list else resolved(value, spec)
        return dataclasses.replace(values, **changes)

    return section(recipe)  # type: ignore[no-any-return]


_WORDS = {"badwords": ("fetched", "off")}
_LISTS = ("allow", "block", "block_substrings")


def override(recipe: Recipe, settings: Mapping[str, Any], *, where: str = "--set") -> Recipe:
    """A recipe with the values of ``{"section.field": value}``; strings are parsed to the field's type."""
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, dot, name = key.partition(".")
        if dot:
            nested.setdefault(section, {})[name] = value
        else:
            nested[section] = value
    return build(nested, where=where, base=recipe)


def present_key(key: str) -> str:
    """The present dotted key of a setting, given that or its key before a rename."""
    old = {f"{k.rpartition('.')[0]}.{spec.was}": k for k, spec in settings().items() if spec.was}
    return old.get(key, key)


def digested(section: Any, **contents: Any) -> dict[str, Any]:
    """The settings of a section for a stage's digest: those that change its output.

    ``contents``: digests of the files that paths name, in place of the paths.
    """
    names = output_settings(section)
    return {key: value for key, value in as_dict(section).items() if key in names} | contents


def as_dict(recipe: Any) -> dict[str, Any]:
    """A recipe or a section as plain JSON values."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(recipe).items()}
