"""What the site generates: the settings of every section, the commands, and the API from docstrings.

A page names it by a comment ``<!-- generated: NAME -->``, where NAME is one of `PARTS`. What stands between that and
``<!-- end -->`` is for readers of the source. Nothing of it is in the repository, so nothing of it can be out of date.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from sphinx.util.inspect import stringify_signature

from corpusforge import sections
from corpusforge.cli import cli
from corpusforge.sections import Recipe, Setting

COMMENT = re.compile(r"<!-- generated: ([a-z]+) -->.*?<!-- end -->", re.DOTALL)

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {"README": "index", "CHANGELOG": "changelog", "CONTRIBUTING": "contributing", "SECURITY": "security"}
"""Pages beside this folder, and the pages of the site that have their text."""


def fill(app: Any, page: str, source: list[str]) -> None:
    """Replace the comments of a page by what they name, and links to pages outside by those to the site's own."""
    text = COMMENT.sub(lambda match: PARTS[match[1]](), source[0])
    for name, own in OUTSIDE.items():
        text = text.replace(f"(../{name}.md", f"({own}.md").replace(f"(../../{name}.md", f"(../{own}.md")
    source[0] = text + _toctrees(text) if page == "index" else text


def _toctrees(text: str) -> str:
    """The sidebar from the lists of the first page: a part for each heading, an entry for each link."""
    parts = []
    for caption, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE):
        entries = re.findall(r"^- \[.*\]\((.+)\.(?:md|ipynb)\)", body, re.MULTILINE)
        parts += ["\n```{toctree}\n:hidden:\n:caption: " + caption + "\n", *entries, "```\n"]
    return "\n".join(parts)


_SETTING = re.compile(r"^ +(\w+): (.*?)  \[(.*)\]$", re.MULTILINE)
"""A setting at the end of a function's docstring (`corpusforge.api.keywords.settings_text`)."""


def tidy_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Mark indented examples as code, and make a list of the settings at the end, whose help is no markup."""
    for n, line in reversed(list(enumerate(lines))):
        begins = n > 1 and not lines[n - 1] and not lines[n - 2].startswith(" ")
        if line.startswith("    ") and begins and not _SETTING.fullmatch(line):
            lines[n - 1 : n - 1] = ["", "::"]
    for n, line in enumerate(lines):
        if match := _SETTING.fullmatch(line):
            key, text, default = match.groups()
            text = re.sub(r"([*`|_\\])", r"\\\1", text)
            lines[n] = f"- ``{key}``: {text} (default: ``{default}``)"
            if not lines[n - 1].startswith("- "):
                lines[n] = f"\n{lines[n]}"
    lines[:] = "\n".join(lines).split("\n")


def skip_fields(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the docstring of the class describes."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field") else None


def shorten_signature(app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returns: str) -> Any:
    """Leave out the settings, which are listed below the docstring."""
    names = {match[1] for match in _SETTING.finditer(inspect.getdoc(obj) or "")} if what == "function" else set()
    if not names:
        return None
    whole = inspect.signature(obj)
    kept = [parameter for name, parameter in whole.parameters.items() if name not in names]
    kept.append(inspect.Parameter("settings_below", inspect.Parameter.VAR_KEYWORD))
    return stringify_signature(whole.replace(parameters=kept)), returns


def _outside(name: str) -> str:
    """A page beside this folder without its title."""
    text = (ROOT / f"{name}.md").read_text("utf-8").partition("\n")[2]
    return re.sub(r"\]\((?!https?:|docs/|#)", "](../", text).replace("](docs/", "](")


# Settings.


def settings() -> str:
    """A heading and a table for each section of a recipe."""
    every = sections.settings()
    parts = ["## The recipe\n", *_settings_table(s for key, s in every.items() if "." not in key)]
    for field in dataclasses.fields(Recipe):
        of_section = [setting for key, setting in every.items() if key.startswith(f"{field.name}.")]
        if of_section:
            about = (type(getattr(Recipe(), field.name)).__doc__ or "").split("\n")[0]
            readers = [f"`{command}`" for command, read in sections.READS.items() if field.name in read]
            parts += [f"\n## `[{field.name}]`\n", f"{about} Read by {' and '.join(readers)}.\n"]
            parts += _settings_table(of_section)
    return "\n".join(parts)


def _settings_table(settings: Iterable[Setting]) -> list[str]:
    """A row for each setting; columns that none of them fills are left out."""
    head = ("key", "flag", "default", "unit", "allowed values", "meaning")
    rows = [head, *map(_row, settings)]
    filled = [n for n in range(len(head)) if any(row[n] for row in rows[1:])]
    lines = [f"| {' | '.join(_cell(row[n]) for n in filled)} |" for row in rows]
    return [lines[0], "|---" * len(filled) + "|", *lines[1:]]


def _row(setting: Setting) -> tuple[str, ...]:
    flag = " ".join(f"`{name}`" for name in setting.flag.split("/") if name and "." in setting.key)
    return f"`{_name(setting.key)}`", flag, _default(setting.default), setting.unit, _allowed(setting), _help(setting)


def _name(key: str) -> str:
    return key.rpartition(".")[2]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{entry}`" for entry in value) or "none"
    return f"`{value}`" if value != "" else "none"


_TYPES = {bool: "`true`, `false`", int: "a whole number", float: "a number", str: "text", tuple: "a list"}


def _allowed(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    return _plain(setting.allowed) or _TYPES[type(setting.default)]


def _help(setting: Setting) -> str:
    conditions = [f"`{_name(key)}` is {' or '.join(map(_default, v))}" for key, v in setting.only_with.items()]
    conditions += [
        f"`{_name(key)}` is not {_default(value)}" if value not in ("", ()) else f"`{_name(key)}` is given"
        for key, value in setting.unless.items()
    ]
    text = setting.help
    if len(setting.only_with) == 1:  # the help begins with the values, which the condition says in full
        text = text.partition(": ")[2]
    return _plain(text) + (f" (only if {' and '.join(conditions)})" if conditions else "")


def _plain(text: str) -> str:
    """Text in which Markdown sees no markup."""
    return re.sub(r"([*_`<>\[\]\\@~])", r"\\\1", text)


# Commands.


def commands() -> str:
    """A heading, the usage, and a table of flags for each command."""
    return "\n".join(line for name, command in cli.commands.items() for line in _command(name, command))


def _command(name: str, command: click.Command) -> Iterable[str]:
    with click.Context(command, info_name=f"corpusforge {name}") as context:
        usage = " ".join(context.command_path.split() + command.collect_usage_pieces(context))
    yield f"\n## `corpusforge {name}`\n\n```text\n{usage}\n```\n"
    yield from _command_help(command.help or "")
    if isinstance(command, click.Group):
        for below, part in command.commands.items():
            yield from _command(f"{name} {below}", part)
        return
    flags = [flag for flag in command.params if isinstance(flag, click.Option) and not flag.hidden]
    if flags:
        yield "\n| flag | |\n|---|---|"
        yield from (f"| {_cell(_flag(flag))} | {_cell(_plain(flag.help or ''))} |" for flag in flags)


def _command_help(text: str) -> Iterable[str]:
    """The paragraphs of a help text; those after ``\\b`` as they stand."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            yield "\n```text\n" + "\n".join(lines[1:]) + "\n```\n"
        else:
            yield "\n" + _plain(paragraph) + "\n"


def _flag(flag: click.Option) -> str:
    choices = "|".join(flag.type.choices) if isinstance(flag.type, click.Choice) else ""
    names = " ".join(f"`{name}`" for name in (*flag.opts, *flag.secondary_opts))
    return f"{names} {_plain(flag.metavar or choices)}".strip()


# The API.


def api() -> str:
    """Functions and classes of the public modules: the names that they export."""
    import apache_beam

    import corpusforge
    from corpusforge import beam, errors, loader

    transforms = [name for name in beam.__all__ if issubclass(getattr(beam, name), apache_beam.PTransform)]
    causes = [name for name, value in vars(errors).items() if isinstance(value, type)]
    return "\n".join(
        [
            *_module(corpusforge, corpusforge.__all__, "One function a command, and what they return."),
            *_module(beam, transforms, "Transforms on Arrow RecordBatches, for [pipelines of your own](../beam.md)."),
            *_module(loader, loader.__all__, "Batches of [instances](../instances.md#loading) as NumPy arrays."),
            *_module(errors, causes, "Every error a person can cause; each has `where`, `what` and `mend`."),
        ]
    )


def _module(module: Any, names: Iterable[str], about: str) -> Iterable[str]:
    yield f"\n## `{module.__name__}`\n\n{about}\n\n```{{eval-rst}}\n.. py:module:: {module.__name__}\n"
    for name in sorted(names, key=_order):
        value = getattr(module, name)
        if not isinstance(value, type):
            yield f".. autofunction:: {module.__name__}.{name}\n"
        elif issubclass(value, Exception):
            yield f".. autoexception:: {module.__name__}.{name}\n"
        else:
            yield f".. autoclass:: {module.__name__}.{name}\n   :members:\n"
    yield "```\n"


def _order(name: str) -> int:
    """Functions of commands in the order of the stages, then the others as they are."""
    every = list(cli.commands)
    return every.index(name.replace("_", "-")) if name.replace("_", "-") in every else len(every)


PARTS = {
    "settings": settings,
    "commands": commands,
    "api": api,
    "changelog": lambda: _outside("CHANGELOG"),
    "contributing": lambda: _outside("CONTRIBUTING"),
    "security": lambda: _outside("SECURITY"),
}
