"""The commands about rule packs: list, show, diff, fetch."""

from __future__ import annotations

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
def rules_show(pack: str) -> None:
    """Every value of a pack with its source."""
    from corpusforge.stages import packs

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
