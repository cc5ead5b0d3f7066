"""The commands about rule packs: list, show, diff, fetch."""

from __future__ import annotations

import sys

import click

from corpusforge.cli.options import Ordered


@click.group("rules", cls=Ordered)
def rules_group() -> None:
    """Rule packs: what they are, what is in them, where they differ."""


@rules_group.command("list")
def rules_list() -> None:
    """The bundled rule packs."""
    from corpusforge.stages import packs

    packs.show_list()


@rules_group.command("show")
@click.argument("pack")
@click.option("--toml", is_flag=True, help="The pack's file as it stands, as always where the output is no terminal.")
def rules_show(pack: str, toml: bool) -> None:
    """Every value of a pack with its source.

    \b
    A pack of your own, from a bundled one:
        corpusforge rules show c4-tfds-3.1 > my.toml
        corpusforge clean crawl/ --output clean --rules my.toml
    """
    from corpusforge.stages import packs

    if toml or not sys.stdout.isatty():
        click.echo(packs.text_of(pack), nl=False)
    else:
        packs.show_pack(pack)


@rules_group.command("diff")
@click.argument("a")
@click.argument("b")
def rules_diff(a: str, b: str) -> None:
    """Where two packs differ."""
    from corpusforge.stages import packs

    packs.show_diff(a, b)


@rules_group.command("fetch")
@click.argument("what", type=click.Choice(["badwords", "punkt"]))
@click.option("--from", "source", default=None, metavar="DIR", help="Take the files from a local folder instead.")
def rules_fetch(what: str, source: str | None) -> None:
    """Download the bad-word lists or the Punkt model into the user's cache, checked by SHA-256."""
    from corpusforge.stages import packs

    click.echo(packs.fetch(what, source))
