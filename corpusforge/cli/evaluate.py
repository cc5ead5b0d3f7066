"""The command evaluate: its flags are settings of [evaluate], its help says which task is called how."""

from __future__ import annotations

from typing import Any

import click

from corpusforge.cli.options import common, read_flags, setting, with_settings


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
@with_settings(
    setting("evaluate.tasks", "--task"),
    setting("evaluate.blimp_data", "--blimp-data"),
    setting("evaluate.blimp_pairs", "--pairs"),
    setting("evaluate.glue_data", "--glue-data"),
    setting("evaluate.glue_tasks", "--glue-tasks"),
    setting("evaluate.squad_data", "--squad-data"),
    setting("evaluate.squad_threshold", "--squad-threshold"),
    setting("evaluate.epochs", "--epochs"),
    setting("evaluate.batch", "--batch"),
    setting("evaluate.learning_rate", "--learning-rate"),
    setting("evaluate.layer_decay", "--layer-decay"),
    setting("evaluate.seeds", "--seeds"),
    setting("evaluate.max_length", "--max-length"),
    setting("evaluate.train_examples", "--train-examples"),
)
@common(beam=False)
def evaluate_command(checkpoint: str, output: str | None, data: str | None, **flags: Any) -> None:
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
    made, execution = read_flags(flags)
    from corpusforge.stages import evaluate, summary

    summary.show_outcome(evaluate.evaluate(made, checkpoint, data, output, execution))
