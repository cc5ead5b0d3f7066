"""The keywords of the functions: the fields of the sections, and how to run.

A dataclass that inherits from the sections of a stage is how a type checker learns its keywords; nothing lists them a
second time. The command line resolves its flags here too.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from corpusforge import errors, recipe, sections
from corpusforge.progress import Progress, Silent
from corpusforge.sections import Recipe
from corpusforge.stages.stage import Execution
from corpusforge.stages.unused_settings import check_given, check_read

Path = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class How:
    """How to run, and where settings come from besides keywords.

    ``output``: folder or URL; None: a temporary folder that is removed with the result. ``settings``: any setting of a
    recipe by its dotted key, over all others. ``overwrite``: replace what another run left in the folder. ``progress``:
    draw bars with an ETA.
    """

    output: Path | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    overwrite: bool = False
    progress: bool = True


@dataclass(frozen=True, kw_only=True)
class FromRecipe(How):
    """Of single stages. ``recipe``: takes settings from a recipe, by bundled name or path."""

    recipe: Path | None = None


@dataclass(frozen=True, kw_only=True)
class OnWorkers(How):
    """Of stages that run work units. ``workers``: processes of the local runner, 0: all cores.

    ``runner``: "local", or a Beam runner by name; ``beam_options``: its options, as on a command line.
    """

    workers: int = 0
    runner: str = "local"
    beam_options: Sequence[str] = ()


@dataclass(frozen=True)
class Call:
    """The resolved keywords of a call. ``output``: "" where none was given."""

    recipe: Recipe
    execution: Execution
    output: str
    extra: Mapping[str, Any]


WRITTEN: ContextVar[Mapping[str, str] | None] = ContextVar("written", default=None)
"""How settings were written by dotted key, for errors: the command line puts its flags here."""


@contextmanager
def written_as(names: Mapping[str, str]) -> Iterator[None]:
    """Inside, errors call settings by these names."""
    token = WRITTEN.set(names)
    try:
        yield
    finally:
        WRITTEN.reset(token)


@functools.cache
def setting_keys(kind: type) -> dict[str, str]:
    """``{keyword: dotted key}`` of a function's settings: names of fields, and of flags that differ from them."""
    of_section = {type(value): name for name, value in vars(Recipe()).items()}
    keys: dict[str, str] = {}
    specs = sections.settings()
    for base in kind.__mro__:
        for field in dataclasses.fields(base) if base in of_section else ():
            key = f"{of_section[base]}.{field.name}"
            keys[field.name] = key
            flag = specs[key].flag.partition("/")[0].removeprefix("--").replace("-", "_")
            keys |= {name: key for name in (flag, specs[key].was) if name and name not in keys}
    keys.pop("paths", None)  # the first argument
    return keys


def call_of(command: str, kind: type, given: Mapping[str, Any]) -> Call:
    """Check and resolve the keywords of a call. Raises `errors.KeywordInvalid` and `errors.RecipeInvalid`."""
    keys = setting_keys(kind)
    others = {field.name: field for field in dataclasses.fields(kind) if field.name not in (*keys, "paths")}
    names = _checked_names(command, given, keys, others)
    how = {name: given.get(name, _default(field)) for name, field in others.items()}
    with written_as(WRITTEN.get() or names):
        values = {key: _plain(given[name]) for key, name in names.items()}
        made = resolve(command, given.get("recipe"), values, how["settings"], seed=given.get("seed"))
    output = os.fspath(how["output"]) if how["output"] is not None else ""
    common = {field.name for base in (OnWorkers, FromRecipe) for field in dataclasses.fields(base)}
    return Call(made, _execution(how), output, {name: how[name] for name in others if name not in common})


def _checked_names(
    command: str, given: Mapping[str, Any], keys: Mapping[str, str], others: Mapping[str, dataclasses.Field[Any]]
) -> dict[str, str]:
    """``{dotted key: keyword}`` of the settings that are given, once all keywords of a call are known to be right."""
    where = f"{command.replace('-', '_')}()"
    known, names = [*keys, *others, "recipe"], dict[str, str]()
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.6)
            mend = f"did you mean '{near[0]}'?" if near else "help() of the function lists its keywords"
            raise errors.KeywordInvalid(where, f"no keyword '{name}'", mend)
        if name in keys and (other := names.setdefault(keys[name], name)) != name:
            raise errors.KeywordInvalid(where, f"'{name}' and '{other}' are two names of one setting", "leave one out")
    _check_types(where, given)
    for name, field in others.items():
        if _is_required(field) and given.get(name) is None:
            raise errors.KeywordInvalid(where, f"needs the keyword '{name}'", f"pass {name}=...")
    sets = {recipe.present_key(key) for key in given.get("settings", {})}
    if WRITTEN.get() is None and (twice := sets & set(names)):  # on the command line --set is stronger than a flag
        name = names[min(twice)]
        raise errors.KeywordInvalid(where, f"'{name}' is also in settings", "leave one out")
    return names


def _check_types(where: str, given: Mapping[str, Any]) -> None:
    """Check the keywords that are no settings, which have checks of their own."""
    for name in ("overwrite", "resume", "dry_run"):
        if not isinstance(given.get(name, False), bool):
            raise errors.KeywordInvalid(where, f"{name}={given[name]!r}", "True or False")
    workers = given.get("workers", 0)
    if not isinstance(workers, int) or workers < 0:
        raise errors.KeywordInvalid(where, f"workers={workers!r}", "name a number of processes, or 0: all cores")
    if not isinstance(given.get("settings", {}), Mapping):
        mend = "pass a dict of dotted keys, as {'clean.language': 'de'}"
        raise errors.KeywordInvalid(where, f"settings={given['settings']!r}", mend)
    output = given.get("output")
    if output is not None and (not isinstance(output, str | os.PathLike) or not os.fspath(output)):
        raise errors.KeywordInvalid(where, f"output={output!r}", "name a folder or URL, or leave it out")


def _execution(how: Mapping[str, Any]) -> Execution:
    beam = {name: how[name] for name in ("workers", "runner") if name in how}
    options = tuple(how.get("beam_options", ()))
    return Execution(**beam, beam_options=options, overwrite=how["overwrite"], progress=progress_of(how["progress"]))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _plain(value: Any) -> Any:
    """A keyword's value as a recipe would have it: paths as text, lists of them as lists."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def paths_of(inputs: Any) -> list[str] | None:
    """The paths, globs or URLs that ``inputs`` names, or None where it is data."""
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    if not isinstance(paths, list | tuple) or not all(isinstance(item, str | os.PathLike) for item in paths):
        return None
    if "" in paths:
        raise errors.InputMissing("the input", "an empty path", "name a file, a folder, a glob or a URL")
    return [os.fspath(item) for item in paths]


def resolve(
    command: str, recipe_name: Path | None, values: Mapping[str, Any], sets: Mapping[str, Any], *, seed: int | None
) -> Recipe:
    """The recipe of a call: default < recipe < keyword or flag < ``settings`` or ``--set``.

    Raises `errors.RecipeInvalid` for a value that is wrong, has no effect, or is of a stage that does not run.
    """
    written = dict(WRITTEN.get() or {})
    made = recipe.load(os.fspath(recipe_name)) if recipe_name else Recipe()
    given = dict(values) | ({} if seed is None else {"seed": seed})
    try:
        made = recipe.override(made, given, where=command)
    except errors.RecipeInvalid as error:  # name what was written, a flag or a keyword, rather than the setting
        name = next((name for key, name in written.items() if error.what.startswith(f"{key} ")), error.where)
        raise errors.RecipeInvalid(name, error.what, error.mend) from None
    where = written.pop("settings", "settings")
    made = recipe.override(made, {key: _plain(value) for key, value in sets.items()}, where=where)
    by_key = {recipe.present_key(key): f"settings {key}" for key in sets} | written
    check_read(command, by_key)
    check_given(made, by_key, by_flags=where == "--set")
    return made


def progress_of(wanted: bool | Progress) -> Progress:
    """Bars of a notebook or a terminal, or none; a `Progress` stays as it is."""
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return Silent()
    from corpusforge.api.bars import LazyBars

    return LazyBars()


def signature_of(kind: type, first: inspect.Parameter) -> inspect.Signature:
    """The signature that ``help`` and notebooks show of a function with these keywords."""
    keys = setting_keys(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    own = [field for name, field in fields.items() if name not in keys and name != "paths"]
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=field.type,
            default=inspect.Parameter.empty if _is_required(field) else _default(field),
        )
        for field in [*own, *(fields[name] for name in keys if name in fields)]
    ]
    return inspect.Signature([first, *parameters])


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def settings_text(kind: type) -> str:
    """A line for each setting, for a docstring."""
    specs = sections.settings()
    lines = []
    for name, key in setting_keys(kind).items():
        if key.endswith(f".{name}"):
            spec = specs[key]
            unit = f" {spec.unit}" if spec.unit else ""
            lines.append(f"        {name}: {spec.help}  [{spec.default!r}{unit}]")
    return "\n".join(lines)
