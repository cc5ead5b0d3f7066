"""The command line, the only room that imports click.

Heavy rooms are imported inside the commands, so that ``--help`` answers at once. Bad input is one line on stderr and
exit code 1.
"""

from __future__ import annotations

import sys

import click

from corpusforge import errors
from corpusforge.cli.commands import cli

EXTRAS = {
    "apache_beam": "beam",
    "torch": "train",
    "safetensors": "train",
    "tensorboard": "train",
    "datasets": "hub",
    "plotly": "report",
}
"""The extra that installs each optional module."""


def main(arguments: list[str] | None = None) -> None:
    """Entry point: errors of ours are one line and exit code 1, wrong usage 2, interrupts 130."""
    words = sys.argv[1:] if arguments is None else arguments
    end = words.index("--") if "--" in words else len(words)
    try:
        with cli.make_context("corpusforge", words[:end]) as context:
            context.meta["beam_options"] = tuple(words[end + 1 :])
            cli.invoke(context)
    except errors.CorpusForgeError as error:
        _die(str(error), 1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        extra = EXTRAS[module]
        _die(f"{module}: not installed; pip install 'corpusforge[{extra}]'", 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output was closed
        sys.exit(0)
    except OSError as error:
        _die(f"{error.filename or 'system'}: {error.strerror or error}; check path, permissions and space left", 1)
    except (KeyboardInterrupt, click.Abort):
        _die("interrupted; run the same command again to resume", 130)


def _die(line: str, code: int) -> None:
    click.echo(f"corpusforge: {' '.join(line.split())}", err=True)
    sys.exit(code)


__all__ = ["cli", "main"]
