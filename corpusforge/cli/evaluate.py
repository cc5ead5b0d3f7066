"""The command evaluate: its flags are settings of [evaluate], its help says which task is called how."""

from __future__ import annotations

from typing import Any

import click

from corpusforge.cli.options import common, flags, read_flags


@click.command("evaluate")
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option(
    "--output", default=None, metavar="DIR", help="For evaluation.json.  [default: CHECKPOINT-evaluation-TASK]"
)
@click.option(
    "--data",
    default=None,
    metavar="DIR",
    help="What the task reads: instances with a heldout/ part (mlm), a folder of tasks (glue), of questions (squad).",
)
@flags("evaluate")
@common(beam=False)
def evaluate_command(checkpoint: str, output: str | None, data: str | None, **given: Any) -> None:
    """Test a checkpoint: a run's folder, its model/, a checkpoint, or a Hugging Face directory.

    \b
    Below the line of word frequencies?  corpusforge evaluate model --task mlm --data instances
    Grammar, fast and in full:           corpusforge evaluate model --task blimp --blimp-data blimp/
                                         corpusforge evaluate model --task blimp --blimp-data blimp/ --pairs 0
    Fine-tuned, five seeds a task:       corpusforge evaluate model --task glue --data glue_data/
    A quick look at two tasks:           corpusforge evaluate model --task glue --data glue_data/ \\
                                             --glue-tasks RTE,CoLA --seeds 1 --train-examples 2000
    Questions on passages:               corpusforge evaluate model --task squad --data squad/

    The figures go to evaluation.json and the model card.
    """
    made, execution = read_flags(given)
    from corpusforge.stages import evaluate, summary

    summary.show_outcome(evaluate.evaluate(made, checkpoint, data, output, execution))
