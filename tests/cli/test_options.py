"""Flags bound to settings: old names of renamed ones."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from corpusforge import sections
from corpusforge.cli import options


@pytest.fixture
def keep_command() -> click.Command:
    """A command with the flag ``--keep``, which was ``--survivor`` in the last release."""
    sections.warn_renamed.cache_clear()
    choices = ("hash", "newest")
    spec = sections.Setting("dedupe.keep", "hash", "which copy stays", "", choices, flag="--keep", was="survivor")

    @click.command()
    @options.setting(spec)
    @click.pass_context
    def command(context: click.Context) -> None:
        click.echo(context.ensure_object(dict))

    return command


def test_an_old_flag_works_warns_and_is_hidden(keep_command: click.Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--survivor" not in CliRunner().invoke(keep_command, ["--help"]).output
    new = CliRunner().invoke(keep_command, ["--keep", "newest"])
    assert "renamed" not in new.stderr
    old = CliRunner().invoke(keep_command, ["--survivor", "newest"])
    assert old.stdout == new.stdout == "{'settings': {'dedupe.keep': 'newest'}, 'flags': {'dedupe.keep': '--keep'}}\n"
    assert old.stderr == "corpusforge: --survivor was renamed: use --keep\n"
    wrong = CliRunner().invoke(keep_command, ["--survivor", "oldest"])
    assert wrong.exit_code == 2


def test_a_setting_records_its_old_name() -> None:
    assert sections.settings()["dedupe.keep"].was == "survivor"
