"""The commands of the stages, in their order: each turns flags into a recipe, runs its stage and shows the outcome.

What a command needs is imported in it, and what shows its outcome after it has run, so that a mistake is reported at
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import corpusforge as cf
from corpusforge import recipe, sections
from corpusforge.cli.looking import inspect_command, report_command
from corpusforge.cli.options import Ordered, call, common, filters_of, flags
from corpusforge.cli.rules import rules_group

if TYPE_CHECKING:
    from corpusforge.api.result import Result


@click.group(cls=Ordered, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(cf.__version__, prog_name="corpusforge")
def cli() -> None:
    """From raw web pages to a pretrained encoder.

    \b
    All stages:          corpusforge run quickstart --output runs/first
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
@click.option("--dry-run", is_flag=True, help="Clean a sample, print what would be dropped and why, write nothing.")
@click.option("--sample", type=click.IntRange(1), default=None, help="Records of a dry run.  [default: 1000]")
@flags("clean", "input", "urls")
@common(beam=True)
def clean_command(inputs: tuple[str, ...], output: str, dry_run: bool, sample: int | None, **given: Any) -> None:
    """Read raw pages and keep what passes the rules.

    IN is any number of files, folders, globs or URLs: WARC, ARC, WET, JSONL, Parquet, text; or a dataset name with
    --format hub. Every dropped line and page is in rejects/ with its reason.
    """
    if sample and not dry_run:
        raise click.UsageError("--sample is for --dry-run; a run reads the whole input")
    how = {"output": output, "dry_run": dry_run, "sample": sample, "filters": filters_of("clean.rules")}
    _show(call(cf.clean, list(inputs), given, **how))


@cli.command("dedupe")
@click.argument("documents", metavar="DIR")
@click.option(
    "--output", required=True, metavar="DIR", help="Folder or URL for documents/, repeats/ and manifest.json."
)
@click.option("--dry-run", is_flag=True, help="Find duplicates, print what would be dropped, remove nothing.")
@flags("dedupe")
@common(beam=True)
def dedupe_command(documents: str, output: str, dry_run: bool, **given: Any) -> None:
    """Remove duplicates from the cleaned documents in DIR; one copy of each is kept."""
    _show(call(cf.dedupe, documents, given, output=output, dry_run=dry_run))


@cli.command("train-vocab")
@click.argument("documents", metavar="DIR")
@click.option("--output", required=True, metavar="DIR", help="Folder or URL for the vocabulary.")
@flags("vocab")
@common(beam=True)
def train_vocab_command(documents: str, output: str, **given: Any) -> None:
    """Count the words of the documents in DIR and learn a vocabulary from the counts.

    The output folder loads in transformers.AutoTokenizer as it is.
    """
    _show(call(cf.train_vocab, documents, given, output=output))


@cli.command("build-instances")
@click.argument("documents", metavar="DIR")
@click.option("--vocab", "vocab_folder", required=True, metavar="DIR", help="Folder written by train-vocab.")
@click.option("--output", required=True, metavar="DIR", help="Folder or URL for train/, heldout/ and manifest.json.")
@flags("instances")
@common(beam=True)
def build_instances_command(documents: str, vocab_folder: str, output: str, **given: Any) -> None:
    """Encode the documents in DIR and build training instances from them."""
    _show(call(cf.build_instances, documents, given, output=output, vocab=vocab_folder))


@cli.command("pretrain")
@click.argument("data", metavar="DIR")
@click.option("--output", required=True, metavar="DIR", help="Folder for checkpoints/, model/ and logs.")
@click.option(
    "--resume/--no-resume", default=True, help="Resume from the newest valid checkpoint.  [default: --resume]"
)
@click.option("--dry-run", is_flag=True, help="Print parameters, FLOPs, memory and steps; train nothing.")
@flags("pretrain")
@common(beam=False)
def pretrain_command(data: str, output: str, resume: bool, dry_run: bool, **given: Any) -> None:
    """Train an encoder on the instances in DIR.

    \b
    What would it cost?          corpusforge pretrain instances --output model --preset bert-base --dry-run
    A small one, in steps:       corpusforge pretrain instances --output model --preset bert-mini --steps 20000
    As much as fits in 30 min:   corpusforge pretrain instances --output model --preset bert-mini --budget 30m
    Eight GPUs:                  torchrun --nproc_per_node 8 -m corpusforge pretrain instances --output model
    From another model:          corpusforge pretrain instances --output model --init bert-base-uncased/

    The folder model/ loads in transformers as it is. Ctrl-C and SIGTERM leave a checkpoint; the same command resumes
    from it. 'corpusforge report model' draws the losses, also during training.
    """
    _show(call(cf.pretrain, data, given, output=output, resume=resume, dry_run=dry_run))


@cli.command("evaluate")
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option(
    "--output", default=None, metavar="DIR", help="For evaluation.json.  [default: CHECKPOINT-evaluation-TASK]"
)
@click.option(
    "--data",
    default=None,
    metavar="DIR",
    help="Input of the task: instances with a heldout/ part (mlm), a folder of tasks (glue) or of questions (squad).",
)
@flags("evaluate")
@common(beam=False)
def evaluate_command(checkpoint: str, output: str | None, data: str | None, **given: Any) -> None:
    """Test a checkpoint: a run's folder, its model/, a checkpoint, or a Hugging Face directory.

    \b
    Below the unigram loss?              corpusforge evaluate model --task mlm --data instances
    Grammar, fast and in full:           corpusforge evaluate model --task blimp --blimp-data blimp/
                                         corpusforge evaluate model --task blimp --blimp-data blimp/ --pairs 0
    Fine-tuned, five seeds a task:       corpusforge evaluate model --task glue --data glue_data/
    A quick look at two tasks:           corpusforge evaluate model --task glue --data glue_data/ \\
                                             --glue-tasks RTE,CoLA --seeds 1 --train-examples 2000
    Questions on passages:               corpusforge evaluate model --task squad --data squad/

    The results go to evaluation.json and the model card.
    """
    _show(call(cf.evaluate, checkpoint, given, output=output, data=data))


@cli.command("run")
@click.argument("name", metavar="RECIPE")
@click.option("--output", default=None, metavar="DIR", help="Folder of the run.  [default: runs/NAME]")
@click.option("--until", default=None, type=click.Choice(sections.LINE), help="Stop after this stage.")
@click.option("--input", "inputs", multiple=True, metavar="IN", help="Read this instead of the recipe's input.")
@common(beam=True, from_recipe=False)
def run_command(name: str, output: str | None, until: str | None, inputs: tuple[str, ...], **given: Any) -> None:
    """Run all stages of a RECIPE: a bundled name, or a TOML file.

    Finished stages are skipped; a run that was killed resumes where it was.
    """
    folder = output or f"runs/{recipe.load(name).name}"
    done = call(cf.run, name, given, output=folder, until=until, inputs=inputs)
    from corpusforge.stages import summary

    summary.show_run([(stage, result.outcome) for stage, result in done.stages.items()], done.report)


def _show(result: Result) -> None:
    from corpusforge.stages import summary

    if result.plan is not None:
        summary.show_plan(result.plan)
    elif result.preview is not None:
        summary.show_preview(result.preview)
    else:
        summary.show_outcome(result.outcome)


cli.add_command(inspect_command)
cli.add_command(report_command)
cli.add_command(rules_group)
