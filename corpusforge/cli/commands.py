"""The commands, in the order of the line: each turns flags into a recipe, calls its stage, and shows what came out."""

from __future__ import annotations

from typing import Any

import click

from corpusforge import __version__, sections
from corpusforge.cli.evaluate import evaluate_command
from corpusforge.cli.looking import inspect_command, report_command
from corpusforge.cli.options import Ordered, common, flags, read_flags
from corpusforge.cli.rules import rules_group


@click.group(cls=Ordered, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="corpusforge")
def cli() -> None:
    """From raw web pages to a pretrained encoder.

    \b
    The whole line:      corpusforge run quickstart --output runs/first
    One stage at a time: corpusforge clean crawl/ --output clean
                         corpusforge dedupe clean --output dedupe
                         corpusforge train-vocab dedupe --output vocab --size 30528
                         corpusforge build-instances dedupe --vocab vocab --output instances
                         corpusforge pretrain instances --output model --preset bert-base
                         corpusforge evaluate model --task mlm --data instances
    """


@cli.command("clean")
@click.argument("inputs", nargs=-1, metavar="IN...")
@click.option(
    "--output", required=True, metavar="DIR", help="Folder or URL for documents/, rejects/ and manifest.json."
)
@click.option("--dry-run", is_flag=True, help="Clean a sample, print what would go and why, write nothing.")
@click.option("--sample", type=click.IntRange(1), default=None, help="Records of a dry run.  [default: 1000]")
@flags("clean", "input", "urls")
@common(beam=True)
def clean_command(inputs: tuple[str, ...], output: str, dry_run: bool, sample: int | None, **given: Any) -> None:
    """Read raw pages and keep what the rules let through.

    IN is any number of files, folders, globs or URLs: WARC, ARC, WET, JSONL, Parquet, text; or a dataset name with
    --format hub. Every dropped line and page is kept in rejects/ with its reason.
    """
    if sample and not dry_run:
        raise click.UsageError("--sample is for --dry-run; a run reads the whole input")
    made, execution = read_flags(given, **{"input.paths": list(inputs)})
    from corpusforge.stages import clean, preview, summary

    if dry_run:
        summary.show_preview(preview.clean(made, sample or 1000))
    else:
        summary.show_outcome(clean.clean(made, output, execution))


@cli.command("dedupe")
@click.argument("documents", metavar="DIR")
@click.option(
    "--output", required=True, metavar="DIR", help="Folder or URL for documents/, repeats/ and manifest.json."
)
@click.option("--dry-run", is_flag=True, help="Find repeats, print what would go, cut nothing.")
@flags("dedupe")
@common(beam=True)
def dedupe_command(documents: str, output: str, dry_run: bool, **given: Any) -> None:
    """Cut repeats from the cleaned documents in DIR; all but one copy of each goes."""
    made, execution = read_flags(given)
    from corpusforge.stages import dedupe, preview, summary

    if dry_run:
        summary.show_preview(preview.dedupe(made, documents, execution))
    else:
        summary.show_outcome(dedupe.dedupe(made, documents, output, execution))


@cli.command("train-vocab")
@click.argument("documents", metavar="DIR")
@click.option("--output", required=True, metavar="DIR", help="Folder or URL for the vocabulary.")
@flags("vocab")
@common(beam=True)
def train_vocab_command(documents: str, output: str, **given: Any) -> None:
    """Count the words of the documents in DIR and learn a vocabulary from the counts.

    The folder written loads with transformers.AutoTokenizer as it stands.
    """
    made, execution = read_flags(given)
    from corpusforge.stages import summary, train_vocab

    summary.show_outcome(train_vocab.train_vocab(made, documents, output, execution))


@cli.command("build-instances")
@click.argument("documents", metavar="DIR")
@click.option("--vocab", "vocab_folder", required=True, metavar="DIR", help="Folder written by train-vocab.")
@click.option("--output", required=True, metavar="DIR", help="Folder or URL for train/, heldout/ and manifest.json.")
@flags("instances")
@common(beam=True)
def build_instances_command(documents: str, vocab_folder: str, output: str, **given: Any) -> None:
    """Encode the documents in DIR and build training instances from them."""
    made, execution = read_flags(given)
    from corpusforge.stages import build_instances, summary

    summary.show_outcome(build_instances.build_instances(made, documents, vocab_folder, output, execution))


@cli.command("pretrain")
@click.argument("data", metavar="DIR")
@click.option("--output", required=True, metavar="DIR", help="Folder for checkpoints/, model/ and logs.")
@click.option("--resume/--no-resume", default=True, help="Go on from the newest valid checkpoint.  [default: --resume]")
@click.option("--dry-run", is_flag=True, help="Print parameters, FLOPs, memory and steps; train nothing.")
@flags("pretrain")
@common(beam=False)
def pretrain_command(data: str, output: str, resume: bool, dry_run: bool, **given: Any) -> None:
    """Train an encoder on the instances in DIR.

    \b
    What would it cost?          corpusforge pretrain instances --output model --preset bert-base --dry-run
    A small one, in steps:       corpusforge pretrain instances --output model --preset bert-mini --steps 20000
    As much as half an hour has: corpusforge pretrain instances --output model --preset bert-mini --budget 30m
    Eight GPUs:                  torchrun --nproc_per_node 8 -m corpusforge pretrain instances --output model
    From another model:          corpusforge pretrain instances --output model --init bert-base-uncased/

    The folder model/ loads in transformers as it stands. Ctrl-C and SIGTERM leave a checkpoint to go on from: the same
    command does. 'corpusforge report model' draws the losses, also while it runs.
    """
    made, execution = read_flags(given)
    from corpusforge.stages import pretrain, summary

    if dry_run:
        summary.show_plan(pretrain.plan(made, data))
    else:
        summary.show_outcome(pretrain.pretrain(made, data, output, execution, resume=resume))


cli.add_command(evaluate_command)


@cli.command("run")
@click.argument("name", metavar="RECIPE")
@click.option("--output", default=None, metavar="DIR", help="Folder of the run.  [default: runs/NAME]")
@click.option("--until", default=None, type=click.Choice(sections.LINE), help="Stop behind this stage.")
@click.option("--input", "inputs", multiple=True, metavar="IN", help="Read this instead of the recipe's input.")
@common(beam=True, from_recipe=False)
def run_command(name: str, output: str | None, until: str | None, inputs: tuple[str, ...], **given: Any) -> None:
    """Carry out the whole line of a RECIPE: a bundled name, or a TOML file.

    Stages that are done are skipped; a run that was killed goes on where it was.
    """
    given["recipe_name"] = name
    made, execution = read_flags(given, **{"input.paths": list(inputs)})
    from corpusforge.stages import run, summary

    summary.show_run(*run.run(made, output or f"runs/{made.name}", execution, until=until))


cli.add_command(inspect_command)
cli.add_command(report_command)
cli.add_command(rules_group)
