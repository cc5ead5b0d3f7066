"""The command line of a pipeline program: flags of settings, and the runner with its options.

The programs in ``pipelines/`` are short because the flags, checks and defaults of settings are those of
`corpusforge.sections`, as for the commands.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from corpusforge import errors, recipe
from corpusforge.beam.engine import BeamEngine
from corpusforge.sections import Recipe, Setting, settings


def parser_of(description: str) -> argparse.ArgumentParser:
    """A parser that shows the description as it is written, with the flag ``--runner``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", default="local", help="a Beam runner; its options may follow")
    return parser


def parse(
    parser: argparse.ArgumentParser, arguments: list[str] | None, *keys: str
) -> tuple[argparse.Namespace, Recipe, BeamEngine]:
    """Parse the parser's own flags and those of the settings with these keys; the rest are options of the runner.

    Raises `errors.RecipeInvalid` for a value that its setting does not accept, `errors.RunnerRefused` for the runner.
    """
    for key in keys:
        _add_flag(parser, settings()[key])
    own, options = parser.parse_known_args(arguments)
    values = {key: value for key in keys if (value := getattr(own, key)) is not None}
    engine = BeamEngine(runner=own.runner, options=tuple(options))
    engine.check(shuffles=True)
    return own, recipe.override(Recipe(), values, where="flags"), engine


def _add_flag(parser: argparse.ArgumentParser, spec: Setting) -> None:
    name = spec.key.rpartition(".")[2]
    yes, _, no = (spec.flag or f"--{name.replace('_', '-')}").partition("/")
    help = f"{spec.help} (default: {spec.shown_default})".replace("%", "%%")
    if no:
        parser.add_argument(yes, dest=spec.key, action="store_const", const=True, help=help)
        parser.add_argument(no, dest=spec.key, action="store_const", const=False, help=f"the opposite of {yes}")
    else:
        metavar = None if spec.choices else spec.metavar or name.upper()
        parser.add_argument(yes, dest=spec.key, choices=spec.choices or None, metavar=metavar, help=help)


def run_main(main: Callable[[], Any]) -> None:
    """Run a program; an error of ours is one line and exit status 1."""
    try:
        main()
    except errors.CorpusForgeError as error:
        sys.exit(f"error: {error}")
