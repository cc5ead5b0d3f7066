"""Flags bound to settings: help, default and choices come from the recipe's sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from corpusforge import errors, recipe, sections
from corpusforge.stages.unused_settings import check_given, check_read

if TYPE_CHECKING:
    from corpusforge.sections import Recipe
    from corpusforge.stages.stage import Execution

F = TypeVar("F", bound=Callable[..., Any])
SETTINGS = sections.settings()


class Ordered(click.Group):
    """Lists the commands in the order of the line, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def setting(key: str, *names: str, flag: tuple[str, str] | None = None, metavar: str | None = None) -> Callable[[F], F]:
    """A flag bound to a recipe field: help, default and choices come from the recipe. ``flag``: yes and no.

    A field that was renamed keeps its old flag, hidden and with a warning.
    """
    spec = SETTINGS[key]
    old = f"--{spec.was.replace('_', '-')}"

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None and value != ():
            if parameter.opts == [old]:
                sections.warn_renamed(old, names[0])
            kept = ",".join(value) if isinstance(value, tuple) else value
            ctx.ensure_object(dict).setdefault("settings", {})[key] = kept
            ctx.ensure_object(dict).setdefault("flags", {})[key] = flag[value is False] if flag else names[0]

    default = ",".join(spec.default) if isinstance(spec.default, tuple) else spec.default
    if flag:
        default = flag[spec.default is False]
    shown = "" if default == "" else f"  [default: {default}{' ' + spec.unit if spec.unit else ''}]"
    kind: Any = click.Choice(list(spec.choices)) if spec.choices else type(spec.default)
    many = isinstance(spec.default, tuple)  # given by commas, by the flag more than once, or both
    if many:
        kind = str
    names = (f"{flag[0]}/{flag[1]}",) if flag else names
    if flag:
        kind = None
    shown = f"{spec.help}{shown}"
    given = {"type": kind, "multiple": many, "metavar": metavar, "default": None, "callback": keep}
    shown_flag = click.option(*names, expose_value=False, help=shown, **given)
    if not spec.was or flag:
        return shown_flag
    hidden_flag = click.option(old, expose_value=False, hidden=True, **given)
    return lambda command: shown_flag(hidden_flag(command))


def with_settings(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several `setting` flags, shown in the order given."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


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
            help="Replace what another run left in the output folder, or begin an unfinished one anew.",
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
    found = recipe.load(recipe_name) if recipe_name else sections.Recipe()
    flags = dict(click.get_current_context().ensure_object(dict).get("settings", {}))
    flags.update({k: v for k, v in extra.items() if v})
    if seed is not None:
        flags["seed"] = seed
    given = dict(click.get_current_context().ensure_object(dict).get("flags", {}))
    try:
        found = recipe.override(found, flags, where="command line")
    except errors.RecipeInvalid as error:  # say the flag, which was written, beside the setting, which was not
        flag = next((f for key, f in given.items() if error.what.startswith(f"{key} ")), error.where)
        raise errors.RecipeInvalid(flag, error.what, error.mend) from None
    pairs = {}
    for item in sets:
        key, equals, value = item.partition("=")
        if not equals:
            raise errors.RecipeInvalid("--set", f"'{item}' has no '='", "write --set section.field=value")
        pairs[key.strip()] = value.strip()
        given[recipe.present_key(key.strip())] = f"--set {key.strip()}"
    found = recipe.override(found, pairs, where="--set")
    check_read(str(click.get_current_context().info_name), given)
    check_given(found, given)
    return found


def _execution(*, overwrite: bool, quiet: bool, workers: int = 0, runner: str = "local") -> Execution:
    from corpusforge import terminal
    from corpusforge.stages.stage import Execution

    options = tuple(click.get_current_context().find_root().meta.get("beam_options", ()))
    return Execution(workers, runner, options, overwrite, terminal.progress(quiet=quiet))


def read_flags(flags: dict[str, Any], **extra: Any) -> tuple[Recipe, Execution]:
    """The recipe and the execution that a command's common flags describe."""
    names = ("overwrite", "quiet", "workers", "runner")
    how = {k: flags.pop(k) for k in names if k in flags}
    return _recipe(**flags, **extra), _execution(**how)
