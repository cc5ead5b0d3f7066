"""The commands, in the order of the line: each turns flags into a recipe, calls its stage, and shows what came out."""

from __future__ import annotations

from typing import Any

import click

from corpusforge import __version__, sections
from corpusforge.cli.evaluate import evaluate_command
from corpusforge.cli.looking import inspect_command, report_command
from corpusforge.cli.options import Ordered, common, read_flags, setting, with_settings
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
@with_settings(
    setting("clean.rules", "--rules"),
    setting("clean.language", "--language"),
    setting("clean.detector", "--detector"),
    setting("clean.min_language_probability", "--min-language-probability"),
    setting("clean.sentences", "--sentences"),
    setting("clean.badwords", "--badwords"),
    setting("clean.pii", "--pii"),
    setting("clean.pii_kinds", "--pii-kinds"),
    setting("clean.contamination", "--contamination"),
    setting("clean.contamination_ngram", "--contamination-ngram"),
    setting("clean.rejects", "--rejects"),
    setting("input.format", "--format"),
    setting("input.text_column", "--text-column"),
    setting("input.text_split", "--text-split"),
    setting("input.html", "--html"),
    setting("urls.allow", "--allow"),
    setting("urls.block", "--block"),
    setting("urls.block_substrings", "--block-substrings"),
    setting("urls.duplicates", "--duplicates"),
)
@common(beam=True)
def clean_command(inputs: tuple[str, ...], output: str, dry_run: bool, sample: int | None, **flags: Any) -> None:
    """Read raw pages and keep what the rules let through.

    IN is any number of files, folders, globs or URLs: WARC, ARC, WET, JSONL, Parquet, text; or a dataset name with
    --format hub. Every dropped line and page is kept in rejects/ with its reason.
    """
    if sample and not dry_run:
        raise click.UsageError("--sample is for --dry-run; a run reads the whole input")
    made, execution = read_flags(flags, **{"input.paths": list(inputs)})
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
@with_settings(
    setting("dedupe.method", "--method"),
    setting("dedupe.span_sentences", "--span-sentences"),
    setting("dedupe.min_sentences", "--min-sentences"),
    setting("dedupe.min_words", "--min-words"),
    setting("dedupe.fold_numbers", flag=("--fold-numbers", "--keep-numbers")),
    setting("dedupe.sentences", "--sentences"),
    setting("dedupe.survivor", "--survivor"),
    setting("dedupe.threshold", "--threshold"),
    setting("dedupe.permutations", "--permutations"),
    setting("dedupe.shingle_words", "--shingle-words"),
    setting("dedupe.index", "--index"),
    setting("dedupe.export_signatures", flag=("--export-signatures", "--no-signatures")),
    setting("dedupe.memory_megabytes", "--memory-budget"),
)
@common(beam=True)
def dedupe_command(documents: str, output: str, dry_run: bool, **flags: Any) -> None:
    """Cut repeats from the cleaned documents in DIR; all but one copy of each goes."""
    made, execution = read_flags(flags)
    from corpusforge.stages import dedupe, preview, summary

    if dry_run:
        summary.show_preview(preview.dedupe(made, documents, execution))
    else:
        summary.show_outcome(dedupe.dedupe(made, documents, output, execution))


@cli.command("train-vocab")
@click.argument("documents", metavar="DIR")
@click.option("--output", required=True, metavar="DIR", help="Folder or URL for the vocabulary.")
@with_settings(
    setting("vocab.model", "--model"),
    setting("vocab.size", "--size"),
    setting("vocab.unused", "--unused"),
    setting("vocab.lowercase", flag=("--uncased", "--cased")),
    setting("vocab.alphabet", "--alphabet"),
    setting("vocab.normalization", "--normalization"),
    setting("vocab.coverage", "--coverage"),
    setting("vocab.min_count", "--min-count"),
    setting("vocab.min_pair", "--min-pair"),
    setting("vocab.allow_any_size", flag=("--allow-any-size", "--only-multiples-of-64")),
    setting("vocab.adopt", "--from"),
    setting("vocab.sample", "--sample"),
)
@common(beam=True)
def train_vocab_command(documents: str, output: str, **flags: Any) -> None:
    """Count the words of the documents in DIR and learn a vocabulary from the counts.

    The folder written loads with transformers.AutoTokenizer as it stands.
    """
    made, execution = read_flags(flags)
    from corpusforge.stages import summary, train_vocab

    summary.show_outcome(train_vocab.train_vocab(made, documents, output, execution))


@cli.command("build-instances")
@click.argument("documents", metavar="DIR")
@click.option("--vocab", "vocab_folder", required=True, metavar="DIR", help="Folder written by train-vocab.")
@click.option("--output", required=True, metavar="DIR", help="Folder or URL for train/, heldout/ and manifest.json.")
@with_settings(
    setting("instances.format", "--format"),
    setting("instances.length", "--length"),
    setting("instances.long_sentences", "--long-sentences"),
    setting("instances.masking", "--masking"),
    setting("instances.copies", "--copies"),
    setting("instances.copies_redraw", "--copies-redraw"),
    setting("instances.mask_unit", "--mask-unit"),
    setting("instances.mask_lexicon", "--mask-lexicon"),
    setting("instances.mask_segmenter", "--mask-segmenter"),
    setting("instances.mask_rate", "--mask-rate"),
    setting("instances.max_predictions", "--max-predictions"),
    setting("instances.pair_sampling", "--pair-sampling"),
    setting("instances.short_probability", "--short-probability"),
    setting("instances.heldout", "--heldout"),
    setting("instances.heldout_by", "--heldout-by"),
)
@common(beam=True)
def build_instances_command(documents: str, vocab_folder: str, output: str, **flags: Any) -> None:
    """Encode the documents in DIR and build training instances from them."""
    made, execution = read_flags(flags)
    from corpusforge.stages import build_instances, summary

    summary.show_outcome(build_instances.build_instances(made, documents, vocab_folder, output, execution))


@cli.command("pretrain")
@click.argument("data", metavar="DIR")
@click.option("--output", required=True, metavar="DIR", help="Folder for checkpoints/, model/ and logs.")
@click.option("--resume/--no-resume", default=True, help="Go on from the newest valid checkpoint.  [default: --resume]")
@click.option("--dry-run", is_flag=True, help="Print parameters, FLOPs, memory and steps; train nothing.")
@with_settings(
    setting("pretrain.preset", "--preset", metavar="NAME"),
    setting("pretrain.steps", "--steps"),
    setting("pretrain.batch_tokens", "--batch-tokens"),
    setting("pretrain.micro_batch_tokens", "--micro-batch-tokens"),
    setting("pretrain.packing", flag=("--packing", "--no-packing")),
    setting("pretrain.optimizer", "--optimizer"),
    setting("pretrain.learning_rate", "--learning-rate"),
    setting("pretrain.warmup_steps", "--warmup-steps"),
    setting("pretrain.decay", "--decay"),
    setting("pretrain.decay_share", "--decay-share"),
    setting("pretrain.budget", "--budget", metavar="TIME"),
    setting("pretrain.batch_ramp", "--batch-ramp"),
    setting("pretrain.batch_ramp_share", "--batch-ramp-share"),
    setting("pretrain.mask_rate_start", "--mask-rate-start"),
    setting("pretrain.mask_rate_end", "--mask-rate-end"),
    setting("pretrain.short_length", "--short-length"),
    setting("pretrain.short_share", "--short-share"),
    setting("pretrain.precision", "--precision"),
    setting("pretrain.device", "--device"),
    setting("pretrain.compile", flag=("--compile", "--no-compile")),
    setting("pretrain.sharding", "--sharding"),
    setting("pretrain.checkpoint_steps", "--checkpoint-steps"),
    setting("pretrain.keep_checkpoints", "--keep-checkpoints"),
    setting("pretrain.keep_best", flag=("--keep-best", "--newest-only")),
    setting("pretrain.on_spike", "--on-spike"),
    setting("pretrain.spike_deviations", "--spike-deviations"),
    setting("pretrain.evaluate_steps", "--evaluate-steps"),
    setting("pretrain.log_steps", "--log-steps"),
    setting("pretrain.wandb", "--wandb", metavar="PROJECT"),
    setting("pretrain.init", "--init", metavar="DIR"),
    setting("pretrain.init_shape", flag=("--init-shape", "--preset-shape")),
    setting("pretrain.init_any_vocabulary", flag=("--init-any-vocabulary", "--init-same-vocabulary")),
    setting("pretrain.allow_new_data", flag=("--allow-new-data", "--same-data")),
)
@common(beam=False)
def pretrain_command(data: str, output: str, resume: bool, dry_run: bool, **flags: Any) -> None:
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
    made, execution = read_flags(flags)
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
def run_command(name: str, output: str | None, until: str | None, inputs: tuple[str, ...], **flags: Any) -> None:
    """Carry out the whole line of a RECIPE: a bundled name, or a TOML file.

    Stages that are done are skipped; a run that was killed goes on where it was.
    """
    flags["recipe_name"] = name
    made, execution = read_flags(flags, **{"input.paths": list(inputs)})
    from corpusforge.stages import run, summary

    summary.show_run(*run.run(made, output or f"runs/{made.name}", execution, until=until))


cli.add_command(inspect_command)
cli.add_command(report_command)
cli.add_command(rules_group)
