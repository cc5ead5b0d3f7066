"""Flags of the commands: those of settings are derived from `corpusforge.sections`; and the common ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from corpusforge import errors, recipe, sections
from corpusforge.stages.unused_settings import check_given, check_read

if TYPE_CHECKING:
    from corpusforge.progress import Progress
    from corpusforge.sections import Recipe, Setting
    from corpusforge.stages.stage import Execution

F = TypeVar("F", bound=Callable[..., Any])
SETTINGS = sections.settings()


class Ordered(click.Group):
    """Lists the commands in the order of the stages, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def flags(*names: str) -> Callable[[F], F]:
    """The flags of all settings of these sections that have one, in the order of their fields."""
    specs = [spec for name in names for key, spec in SETTINGS.items() if key.startswith(f"{name}.") and spec.flag]

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


def _recipe(recipe_name: str | None, sets: tuple[str, ...], seed: int | None, **extra: Any) -> Recipe:
    """Default < recipe < flag < --set."""
    settings = recipe.load(recipe_name) if recipe_name else sections.Recipe()
    flags = dict(click.get_current_context().ensure_object(dict).get("settings", {}))
    flags.update({k: v for k, v in extra.items() if v})
    if seed is not None:
        flags["seed"] = seed
    given = dict(click.get_current_context().ensure_object(dict).get("flags", {}))
    try:
        settings = recipe.override(settings, flags, where="command line")
    except errors.RecipeInvalid as error:  # name the flag that was typed instead of "command line"
        flag = next((f for key, f in given.items() if error.what.startswith(f"{key} ")), error.where)
        raise errors.RecipeInvalid(flag, error.what, error.mend) from None
    pairs = {}
    for item in sets:
        key, equals, value = item.partition("=")
        if not equals:
            raise errors.RecipeInvalid("--set", f"'{item}' has no '='", "write --set section.field=value")
        pairs[key.strip()] = value.strip()
        given[recipe.present_key(key.strip())] = f"--set {key.strip()}"
    settings = recipe.override(settings, pairs, where="--set")
    check_read(str(click.get_current_context().info_name), given)
    check_given(settings, given)
    return settings


def _execution(*, overwrite: bool, quiet: bool, workers: int = 0, runner: str = "local") -> Execution:
    from corpusforge.progress import Silent
    from corpusforge.stages.stage import Execution

    options = tuple(click.get_current_context().find_root().meta.get("beam_options", ()))
    return Execution(workers, runner, options, overwrite, Silent() if quiet else cast("Progress", _Bars()))


class _Bars:
    """Progress bars that import `rich` when the first one is drawn, so that an earlier error is reported sooner."""

    @functools.cached_property
    def _bars(self) -> Progress:
        from corpusforge.terminal import Bars

        return Bars()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bars, name)


def read_flags(flags: dict[str, Any], **extra: Any) -> tuple[Recipe, Execution]:
    """The recipe and the execution that a command's common flags describe."""
    names = ("overwrite", "quiet", "workers", "runner")
    how = {k: flags.pop(k) for k in names if k in flags}
    settings = _recipe(**flags, **extra)
    if settings.input.format != "hub":  # the script of a hub dataset may use pandas
        from corpusforge.arrays import spare_pandas

        spare_pandas()
    return settings, _execution(**how)
