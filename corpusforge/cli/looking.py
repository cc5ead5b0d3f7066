"""The commands inspect and report, which read the output of the others and do not change it."""

from __future__ import annotations

import click


@click.command("inspect")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--document", default=None, metavar="ID", help="Show this document, or its instances: id, or beginning of it."
)
@click.option("--rows", type=click.IntRange(1), default=5, show_default=True, help="Rows to show.")
@click.option("--skip", type=click.IntRange(0), default=0, show_default=True, help="Rows to skip first.")
def inspect_command(paths: tuple[str, ...], document: str | None, rows: int, skip: int) -> None:
    """Show any manifest, shard, vocabulary, checkpoint, log, evaluation or recipe.

    A cleaned page is shown with each line marked by its reason, an instance with its masks. Several folders of
    evaluations are one table, a row for each checkpoint:

    \b
        corpusforge inspect runs/a-evaluation-mlm runs/b-evaluation-mlm runs/b-evaluation-glue
    """
    from corpusforge import terminal
    from corpusforge.report import evaluation, inspect

    if document and len(paths) > 1:
        raise click.UsageError("--document is for one PATH")
    if len(paths) == 1:
        terminal.show(*inspect.inspect(paths[0], document=document, rows=rows, skip=skip))
    else:
        terminal.show(*evaluation.show_side_by_side(paths))


@click.command("report")
@click.argument("run_dir", metavar="RUN_DIR")
@click.option("--output", default=None, metavar="FILE", help="[default: RUN_DIR/report.html, or comparison.html]")
@click.option(
    "--against",
    multiple=True,
    metavar="DIR",
    help="Compare two cleaned folders of the same input, or any number of trainings, instead.",
)
def report_command(run_dir: str, output: str | None, against: tuple[str, ...]) -> None:
    """Write the HTML report of a run, or of one stage: one self-contained page.

    \b
    The loss curve of a training, also while it runs; several in one figure:
        corpusforge report model
        corpusforge report model --against other --against third

    \b
    Two rule packs on the same input, document by document:
        corpusforge clean crawl/ --output a --rules c4-tfds-3.1
        corpusforge clean crawl/ --output b --rules c4-paper
        corpusforge report a --against b
    """
    from corpusforge.report import comparison, run_report, trainings

    folder = run_dir.rstrip("/")
    folders, target = [folder, *(other.rstrip("/") for other in against)], output or f"{folder}/comparison.html"
    if against and trainings.are_trainings(folders):
        click.echo(trainings.write_trainings(folders, target))
    elif len(against) > 1:
        raise click.UsageError("cleaned folders are compared two at a time: name one --against")
    elif against:
        click.echo(comparison.write_comparison(folder, folders[1], target))
    else:
        click.echo(run_report.write_report(run_dir, output or f"{folder}/report.html"))
