"""Flags of the commands: those of settings are derived from `corpusforge.sections`; and the common ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from corpusforge import errors, recipe, sections

if TYPE_CHECKING:
    from corpusforge.sections import Setting

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


class Ordered(click.Group):
    """Lists the commands in the order of the stages, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def flags(*names: str) -> Callable[[F], F]:
    """The flags of all settings of these sections that have one, in the order of their fields."""
    specs = [
        spec for name in names for key, spec in sections.settings().items() if key.startswith(f"{name}.") and spec.flag
    ]

    def decorate(command: F) -> F:
        for spec in reversed(specs):
            command = setting(spec)(command)
        return command

    return decorate


def setting(spec: Setting) -> Callable[[F], F]:
    """The flag of a setting: its type, choices, help and default are those of the field in `corpusforge.sections`.

    A field that was renamed keeps its old flag, hidden and with a warning. A list is given by commas, by repeating the
    flag, or both.
    """
    yes, _, no = spec.flag.partition("/")
    is_list = isinstance(spec.default, tuple)
    old = f"--{spec.was.replace('_', '-')}"

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is None or value == ():
            return
        if parameter.opts == [old]:
            sections.warn_renamed(old, yes)
        given = ctx.ensure_object(dict)
        if spec.was and spec.key in given.get("settings", {}):
            raise click.UsageError(f"{old} is the old name of {yes}: leave it out")
        given.setdefault("settings", {})[spec.key] = ",".join(value) if is_list else value
        given.setdefault("flags", {})[spec.key] = no if value is False else yes

    default, unit = spec.shown_default, f" {spec.unit}" if spec.unit else ""
    shown = f"  [default: {default}{unit}]" if default else ""
    kind = click.Choice(list(spec.choices)) if spec.choices else None if no else str if is_list else type(spec.default)
    how: dict[str, Any] = {"type": kind, "multiple": is_list, "default": None, "expose_value": False, "callback": keep}
    flag = click.option(spec.flag, metavar=spec.metavar, help=f"{spec.help}{shown}", **how)
    if not spec.was or no:
        return flag
    old_flag = click.option(old, hidden=True, help=f"renamed: use {yes}", **how)
    return lambda command: flag(old_flag(command))


def common(*, beam: bool, from_recipe: bool = True) -> Callable[[F], F]:
    """The flags every stage has. ``from_recipe``: whether a flag may name a recipe to take settings from."""
    named = click.option(
        "--recipe", "recipe_name", default=None, metavar="RECIPE", help="Take settings from this recipe."
    )
    options = [
        *([named] if from_recipe else []),
        click.option("--set", "sets", multiple=True, metavar="SECTION.FIELD=VALUE", help="Any setting of the recipe."),
        click.option("--seed", type=int, default=None, help="Seed of everything random.  [default: 0]"),
        click.option(
            "--overwrite",
            is_flag=True,
            help="Replace what another run left in the output folder, or restart an unfinished one.",
        ),
        click.option("--quiet", is_flag=True, help="No progress bars."),
    ]
    if beam:
        options += [
            click.option(
                "--workers", type=click.IntRange(0), default=0, help="Processes of the local runner; 0: all cores."
            ),
            click.option("--runner", default="local", help="local, or any Beam runner by name; its options follow --."),
        ]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def filters_of(key: str) -> list[Any]:
    """The functions that a flag names as ``FILE.py:NAME``, loaded, and taken from the flag's values.

    This runs the files: only what the user writes on the command line may name code.
    """
    settings = click.get_current_context().ensure_object(dict).get("settings", {})
    values = settings.get(key, "").split(",")
    named = [value.rpartition(":") for value in values if ".py:" in value]
    if not named:
        return []
    from corpusforge.clean.filters import load_filter

    settings[key] = ",".join(value for value in values if ".py:" not in value)
    return [load_filter(path, name) for path, _, name in named]


def call(function: Callable[..., R], first: Any, given: Mapping[str, Any], **keywords: Any) -> R:
    """Call a function of `corpusforge` with what a command was given.

    ``given``: the common flags; the values of settings are in click's context. Errors name settings by their flags.
    """
    from corpusforge.api.keywords import written_as
    from corpusforge.arrays import spare_pandas

    context = click.get_current_context()
    settings, written = (context.ensure_object(dict).get(name, {}) for name in ("settings", "flags"))
    sets = dict(map(_pair, given["sets"]))
    keywords |= {key.partition(".")[2]: value for key, value in settings.items()}
    keywords |= {name: given[name] for name in ("overwrite", "workers", "runner") if name in given}
    keywords |= {"recipe": given["recipe_name"]} if given.get("recipe_name") else {}
    keywords |= {"seed": given["seed"]} if given["seed"] is not None else {}
    keywords |= {"beam_options": context.find_root().meta.get("beam_options", ())} if "runner" in given else {}
    if not _reads_hub(given, settings):  # a script of a hub dataset may make tables of pandas
        spare_pandas()
    by_set = {recipe.present_key(key): f"--set {key}" for key in sets}
    with written_as({**written, **by_set, "settings": "--set"}):
        return function(first, settings=sets, progress=not given["quiet"], **keywords)


def _reads_hub(given: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    name = given.get("recipe_name")
    form = settings.get("input.format") or dict(map(_pair, given["sets"])).get("input.format")
    return (form or (recipe.load(name).input.format if name else "")) == "hub"


def _pair(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals:
        raise errors.RecipeInvalid("--set", f"'{item}' has no '='", "write --set section.field=value")
    return key.strip(), value.strip()
