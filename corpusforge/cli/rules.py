"""The command rules: list, show and compare rule packs, and fetch what they need."""

from __future__ import annotations

import sys
from typing import Any

import click

from corpusforge.cli.options import Ordered


@click.group("rules", cls=Ordered)
def rules_group() -> None:
    """Rule packs: list them, show their rules, compare them."""


@rules_group.command("list")
def rules_list() -> None:
    """The bundled rule packs."""
    show_list()


@rules_group.command("show")
@click.argument("pack")
@click.option(
    "--toml", is_flag=True, help="Print the pack's TOML file, the default where the output is not a terminal."
)
def rules_show(pack: str, toml: bool) -> None:
    """Every value of a pack with its source.

    \b
    A pack of your own, from a bundled one:
        corpusforge rules show c4-tfds-3.1 > my.toml
        corpusforge clean crawl/ --output clean --rules my.toml
    """
    if toml or not sys.stdout.isatty():
        click.echo(text_of(pack), nl=False)
    else:
        show_pack(pack)


@rules_group.command("diff")
@click.argument("a")
@click.argument("b")
def rules_diff(a: str, b: str) -> None:
    """Where two packs differ."""
    show_diff(a, b)


@rules_group.command("fetch")
@click.argument("what", type=click.Choice(["badwords", "punkt"]))
@click.option("--from", "source", default=None, metavar="DIR", help="Take the files from a local folder instead.")
def rules_fetch(what: str, source: str | None) -> None:
    """Download the bad-word lists or the Punkt model into the user's cache, checked by SHA-256."""
    click.echo(fetch(what, source))


def show_list() -> None:
    """The bundled packs, one row each."""
    from corpusforge import terminal
    from corpusforge.clean.packs import list_packs, load_pack

    packs = [load_pack(name) for name in list_packs()]
    rows = [[pack.name, pack.kind, _visible(pack.title)] for pack in packs]
    terminal.show(terminal.table("Rule packs", ["pack", "kind", "claims"], rows, words=True))


def show_pack(name: str) -> None:
    """Every value of a pack with its source."""
    from corpusforge import terminal
    from corpusforge.clean.packs import load_pack

    pack = load_pack(name)
    values = pack.values()
    rows = [
        [key, _value(values[key]), rule.metadata["help"], _visible(pack.sources.get(key, ""))]
        for key, rule in pack.rules().items()
    ]
    title = _visible(f"{pack.name} (kind {pack.kind}): {pack.title}")
    terminal.show(terminal.table(title, ["rule", "value", "meaning", "source"], rows, words=True))


def text_of(name: str) -> str:
    """The TOML file of a pack with its comments. Raises what `load_pack` raises."""
    from corpusforge.clean.packs import find_pack, load_pack

    load_pack(name)
    return find_pack(name).read_text("utf-8")


def show_diff(a: str, b: str) -> None:
    """Where two packs differ; packs of two kinds have few rules in common or none."""
    from corpusforge import terminal
    from corpusforge.clean.packs import diff_packs, load_pack

    left, right = load_pack(a), load_pack(b)
    rows = [[key, _value(x), _value(y)] for key, x, y in diff_packs(left, right)]
    if not rows:
        terminal.show(f"{a} and {b} do not differ.")
        return
    terminal.show(terminal.table(f"{a} against {b}", ["rule", a, b], rows, words=True))
    if type(left) is not type(right):
        terminal.show(
            f"{a} is of the kind {left.kind}, {b} of the kind {right.kind}: they check different things, and "
            "'-' is a rule that the kind does not have. To compare them on the same pages: corpusforge clean with "
            "each, then corpusforge report A --against B."
        )


def _value(value: Any) -> str:
    """A value as it is shown: "off" where it switches its rule off.

    >>> _value(0), _value(("a", "b")), _value(None), _value(0.5)
    ('off', 'a | b', '-', '0.5')
    """
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return _visible(" | ".join(value)) or "off"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if value and isinstance(value, float) else str(value) if value else "off"


def _visible(text: str) -> str:
    r"""Text without control characters: a pack may list some, and none may reach the terminal.

    >>> _visible("a\x1b[2J é")
    'a\\x1b[2J é'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def fetch(what: str, source: str | None) -> str:
    """Fetch a resource into the user's cache; returns a line that says where it is."""
    from corpusforge.clean import fetch as fetching

    folder, files = fetching.fetch(what, source)
    return f"{what}: {files} files in {folder}"
