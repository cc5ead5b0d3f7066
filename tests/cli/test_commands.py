"""The flags of every command, frozen: a flag is added on purpose, and none is lost."""

from __future__ import annotations

import click

from corpusforge.cli import cli

COMMON = "--set --seed --overwrite --quiet"
BEAM = "--workers --runner"
FLAGS = {
    "clean": f"""
        --output --dry-run --sample --rules --language --detector --min-language-probability --sentences
        --badwords --pii --pii-kinds --contamination --contamination-ngram --filter-errors --rejects --format
        --text-column --text-split --html --allow --block --block-substrings --duplicates
        --recipe {COMMON} {BEAM}
    """,
    "dedupe": f"""
        --output --dry-run --method --span-sentences --min-sentences --min-words
        --fold-numbers/--keep-numbers --sentences --keep --threshold --permutations --shingle-words --index
        --export-signatures/--no-signatures --memory-budget
        --recipe {COMMON} {BEAM}
    """,
    "train-vocab": f"""
        --output --model --size --unused --uncased/--cased --alphabet --normalization --coverage --min-count
        --min-pair --allow-any-size/--only-multiples-of-64 --from --sample
        --recipe {COMMON} {BEAM}
    """,
    "build-instances": f"""
        --vocab --output --format --length --long-sentences --masking --copies --copies-redraw --mask-unit
        --mask-lexicon --mask-segmenter --mask-rate --max-predictions --pair-sampling --short-probability
        --heldout --heldout-by
        --recipe {COMMON} {BEAM}
    """,
    "pretrain": f"""
        --output --resume/--no-resume --dry-run --preset --steps --batch-tokens --micro-batch-tokens
        --packing/--no-packing --optimizer --learning-rate --warmup-steps --decay --decay-share --budget
        --batch-ramp --batch-ramp-share --mask-rate-start --mask-rate-end --short-length --short-share
        --precision --device --compile/--no-compile --sharding --checkpoint-steps --keep-checkpoints
        --keep-best/--newest-only --on-spike --spike-deviations --evaluate-steps --log-steps --wandb --init
        --init-shape/--preset-shape --init-any-vocabulary/--init-same-vocabulary
        --allow-new-data/--same-data
        --recipe {COMMON}
    """,
    "evaluate": f"""
        --output --data --task --blimp-data --pairs --glue-data --glue-tasks --squad-data --squad-threshold
        --epochs --batch --learning-rate --layer-decay --seeds --max-length --train-examples
        --recipe {COMMON}
    """,
    "run": f"--output --until --input {COMMON} {BEAM}",
    "inspect": "--document --rows --skip",
    "report": "--output --against",
    "rules list": "",
    "rules show": "--toml",
    "rules diff": "",
    "rules fetch": "--from",
}
"""Yes and no of one flag as ``--yes/--no``."""


def flags_of(command: click.Command) -> list[str]:
    """The flags of a command in the order of its help, yes and no of one flag together."""
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    return ["/".join([*option.opts, *option.secondary_opts]) for option in options]


def test_every_command_has_its_flags() -> None:
    flags = {}
    for name, command in cli.commands.items():
        if isinstance(command, click.Group):
            flags |= {f"{name} {below}": flags_of(each) for below, each in command.commands.items()}
        else:
            flags[name] = flags_of(command)
    assert flags == {name: text.split() for name, text in FLAGS.items()}
