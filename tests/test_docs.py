"""The docs name only what exists, and all of it: commands, flags, recipes, packs, reasons, benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from corpusforge import recipe, sections
from corpusforge.cli import cli
from tests.docs.pages import PAGES

ROOT = Path(__file__).resolve().parent.parent
TEXT = {page.removeprefix("docs/"): text for page, text in PAGES.items()}


def _commands(group: click.Group, prefix: str = "corpusforge") -> dict[str, click.Command]:
    commands = {}
    for name, command in group.commands.items():
        commands[f"{prefix} {name}"] = command
        if isinstance(command, click.Group):
            commands |= _commands(command, f"{prefix} {name}")
    return commands


COMMANDS = _commands(cli)


@pytest.mark.parametrize("name", [n for n in COMMANDS if n.count(" ") == 1])
def test_every_command_is_in_the_docs(name: str) -> None:
    assert f"`{name}" in TEXT["commands.md"]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_and_flag_has_help(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert all(o.help for o in command.params if isinstance(o, click.Option))


@pytest.mark.parametrize("page", TEXT)
def test_commands_and_flags_in_the_docs_exist(page: str) -> None:
    for line in re.findall(r"^ *(corpusforge .+(?:\\\n.+)*)", TEXT[page], re.MULTILINE):
        words = line.replace("\\\n", " ").split(" -- ")[0].split("#")[0].split()
        name = " ".join(words[:3]) if " ".join(words[:3]) in COMMANDS else " ".join(words[:2])
        if name.startswith("corpusforge --"):
            continue
        assert name in COMMANDS, line
        known = {flag for o in COMMANDS[name].params for flag in (*o.opts, *o.secondary_opts)} | {"--help"}
        assert {w for w in words if w.startswith("--")} <= known, line


@pytest.mark.parametrize("page", TEXT)
def test_settings_recipes_and_links_in_the_docs_exist(page: str) -> None:
    text = TEXT[page]
    for key in re.findall(r"--set ([a-z_]+\.[a-z_]+)=", text):
        assert key in sections.settings() or key == "section.field", key
    for name in re.findall(r"corpusforge run ([a-z][a-z0-9-]+)", text):
        recipe.load(name)
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / page).parent / link).exists() or (ROOT / "docs" / page).parent.joinpath(link).exists(), link
    for alternative in re.findall(r"!\[(.*?)\]\(", text):
        assert alternative.strip(), "a picture without alternative text"
    for script in re.findall(r"python ((?:benchmarks|pipelines|sample_data)/\w+\.py)", text):
        assert (ROOT / script).is_file(), script


def test_every_recipe_and_benchmark_is_in_the_docs() -> None:
    everything = "".join(TEXT.values())
    for path in (ROOT / "pipelines").glob("*.toml"):
        assert f"`{path.stem}`" in everything, path.name
    for path in (ROOT / "benchmarks").glob("*.py"):
        assert f"benchmarks/{path.name}" in everything, path.name


def test_every_pack_is_in_the_docs() -> None:
    for path in (ROOT / "rules").glob("*.toml"):
        assert f"`{path.stem}`" in TEXT["cleaning.md"], path.name


def test_every_reason_is_in_the_docs() -> None:
    """Reasons are string literals in the package; docs/commands.md explains each."""
    used = set()
    for path in (ROOT / "corpusforge").rglob("*.py"):
        used |= set(re.findall(r'"((?:record|page|line|span):[a-z-]{2,})"', path.read_text("utf-8")))
    missing = sorted(reason for reason in used if reason not in TEXT["commands.md"])
    assert not missing, missing
