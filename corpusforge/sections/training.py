"""Settings of training and of evaluation.

Zero or -1 stands for the value that the authors of a preset published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpusforge.sections.fields import OneOf, all_of, at_least, between, duration, option
from corpusforge.sections.presets import PRESETS

TASKS = ("mlm", "blimp", "glue", "squad")
"""Tasks of an evaluation."""

_BLIMP, _GLUE, _SQUAD = ({"tasks": (task,)} for task in TASKS[1:])
_TUNED = {"tasks": ("glue", "squad")}
"""The tasks that a setting is for."""


@dataclass(frozen=True, kw_only=True)
class Pretrain:
    """Model, optimizer and schedule."""

    preset: str = option(
        "bert-base", f"architecture and published hyper-parameters: {', '.join(PRESETS)}", metavar="NAME"
    )
    steps: int = option(0, "optimizer steps; 0: as the preset", unit="steps", check=at_least(0))
    batch_tokens: int = option(
        0, "tokens of one optimizer step, without padding; 0: as the preset", unit="tokens", check=at_least(0)
    )
    micro_batch_tokens: int = option(
        16_384, "tokens, with padding, that pass through the model at once", unit="tokens", check=at_least(64)
    )
    packing: bool = option(
        True, "lay instances end to end without padding, attention within each", flag="--packing/--no-packing"
    )
    optimizer: str = option(
        "auto",
        "auto: as the preset; adamw; bert-adam: as google-research/bert, without bias correction; lamb",
        check=OneOf("auto", "adamw", "bert-adam", "lamb"),
    )
    learning_rate: float = option(0.0, "peak learning rate; 0: as the preset", check=at_least(0))
    warmup_steps: int = option(-1, "-1: the preset's share of the steps", unit="steps", check=at_least(-1))
    decay: str = option(
        "linear",
        "learning rate after warm-up; linear: as the preset's authors; linear-bert: over all steps, replaced during "
        "warm-up; linear-hf: from the peak; wsd: constant, then 1 - sqrt",
        check=OneOf("linear", "linear-bert", "linear-hf", "cosine", "one-cycle", "wsd", "constant"),
    )
    decay_share: float = option(
        0.1, "share of the steps in which the rate decays", check=between(0, 1), only_with={"decay": ("wsd",)}
    )
    budget: str = option(
        "",
        "wall-clock time in place of steps, as 30m or 1h30m: steps are planned from the measured speed",
        check=duration,
        metavar="TIME",
    )
    batch_ramp: float = option(1.0, "first step's share of the full batch; 1: no ramp", check=between(0.001, 1))
    batch_ramp_share: float = option(
        0.25, "share of the steps over which the batch grows", check=between(0, 1), unless={"batch_ramp": 1.0}
    )
    mask_rate_start: float = option(
        -1.0, "rate of dynamic masks at the first step; -1: as the instances were built", check=between(-1, 0.9)
    )
    mask_rate_end: float = option(
        -1.0, "rate of dynamic masks at the last step, linear between; -1: as the instances", check=between(-1, 0.9)
    )
    short_length: int = option(
        128,
        "length of the first part of training (BERT: 128)",
        unit="tokens",
        check=at_least(8),
        unless={"short_share": 0.0},
    )
    short_share: float = option(
        -1.0,
        "share of the steps at short_length, the rest at the instances' own; -1: as the preset (BERT 0.9, RoBERTa 0)",
        check=between(-1, 1),
    )
    dropout: float = option(-1.0, "-1: as the preset", check=between(-1, 0.9), advanced=True)
    precision: str = option(
        "auto", "auto: bf16 autocast on a GPU that has it, else fp32", check=OneOf("auto", "fp32", "bf16")
    )
    device: str = option(
        "auto", "where to train; auto: a GPU if there is one", check=OneOf("auto", "cpu", "cuda"), changes_output=False
    )
    compile: bool = option(False, "torch.compile the model", flag="--compile/--no-compile")
    sharding: str = option(
        "none",
        "weights and moments over ranks; none: each rank has all; fsdp",
        check=OneOf("none", "fsdp"),
        changes_output=False,
    )
    threads: int = option(
        0,
        "threads of torch on a CPU, 0: all cores; the same number gives the same bits",
        check=at_least(0),
        advanced=True,
        changes_output=False,
    )
    checkpoint_steps: int = option(
        1000, "steps between checkpoints", unit="steps", check=at_least(1), changes_output=False
    )
    keep_checkpoints: int = option(3, "newest checkpoints kept", check=at_least(1), changes_output=False)
    keep_best: bool = option(
        True,
        "also keep the checkpoint with the lowest held-out loss",
        flag="--keep-best/--newest-only",
        changes_output=False,
    )
    on_spike: str = option(
        "ignore",
        "on a loss spike or a loss that is not finite: skip the step, or stop; ignore: stop only if it is not finite",
        check=OneOf("ignore", "skip", "stop"),
        changes_output=False,
    )
    spike_deviations: float = option(
        6.0,
        "running deviations above the running mean that make a spike",
        check=at_least(1),
        unless={"on_spike": "ignore"},
    )
    evaluate_steps: int = option(
        500, "steps between held-out losses", unit="steps", check=at_least(1), changes_output=False
    )
    log_steps: int = option(10, "steps between log lines", unit="steps", check=at_least(1), changes_output=False)
    tensorboard: bool = option(
        True, "write TensorBoard events where it is installed", advanced=True, changes_output=False
    )
    wandb: str = option(
        "", "project of Weights & Biases to log to; empty: none", metavar="PROJECT", changes_output=False
    )
    loader_threads: int = option(
        1,
        "threads that make batches ahead; their number changes no batch",
        check=at_least(1),
        advanced=True,
        changes_output=False,
    )
    init: str = option(
        "",
        "a BERT, RoBERTa or ALBERT in Hugging Face's format whose weights to begin from",
        is_path=True,
        metavar="DIR",
    )
    init_shape: bool = option(
        False,
        "take the shape from init, and only the training from the preset",
        unless={"init": ""},
        flag="--init-shape/--preset-shape",
    )
    init_any_vocabulary: bool = option(
        False,
        "accept an init whose tokenizer differs from the vocabulary of the data",
        unless={"init": ""},
        flag="--init-any-vocabulary/--init-same-vocabulary",
    )
    allow_new_data: bool = option(
        False,
        "resume a checkpoint on data it was not trained on",
        flag="--allow-new-data/--same-data",
        changes_output=False,
    )


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """What a checkpoint is tested on."""

    tasks: Sequence[str] = option(
        ("mlm",),
        "mlm (held-out loss against the unigram loss), blimp (minimal pairs), glue (fine-tuning on labelled TSV "
        "files), squad (fine-tuning on questions)",
        check=all_of(*TASKS),
        flag="--task",
    )
    blimp_data: str = option("", "folder of .jsonl paradigms, or its .tar.gz", is_path=True, only_with=_BLIMP)
    blimp_pairs: int = option(
        100, "pairs a paradigm: 100 is fast, 0 is all", check=at_least(0), only_with=_BLIMP, flag="--pairs"
    )
    glue_data: str = option(
        "",
        "folder of task folders with train.tsv and dev.tsv, or one of them; empty: --data",
        is_path=True,
        only_with=_GLUE,
    )
    glue_tasks: Sequence[str] = option((), "only these tasks (CoLA,RTE); empty: all in the folder", only_with=_GLUE)
    squad_data: str = option("", "folder with train*.json and dev*.json; empty: --data", is_path=True, only_with=_SQUAD)
    squad_threshold: float = option(
        0.0,
        "(version 2) answer 'no answer' where it scores this much above the best text",
        check=between(-1000, 1000),
        only_with=_SQUAD,
    )
    epochs: int = option(
        0, "epochs of fine-tuning; 0: as published (glue: BERT 3, RoBERTa 10)", check=at_least(0), only_with=_TUNED
    )
    batch: int = option(
        0, "examples of a step of fine-tuning; 0: as published (32)", check=at_least(0), only_with=_TUNED
    )
    learning_rate: float = option(
        0.0,
        "peak learning rate of fine-tuning; 0: as published (glue: BERT 3e-5, RoBERTa 2e-5)",
        check=at_least(0),
        only_with=_TUNED,
    )
    layer_decay: float = option(
        1.0,
        "factor of the learning rate from each layer to the one below (ELECTRA: 0.8, large 0.9)",
        check=between(0.01, 1),
        only_with=_TUNED,
    )
    seeds: int = option(
        5,
        "runs of fine-tuning, of which the median is reported (RoBERTa: 5)",
        check=between(1, 100),
        only_with=_TUNED,
    )
    max_length: int = option(
        0,
        "tokens of an example; 0: as published (glue 128, squad 384)",
        unit="tokens",
        check=at_least(0),
        only_with=_TUNED,
    )
    train_examples: int = option(
        0,
        "training examples used, a sample for a quick look; 0: all",
        unit="examples",
        check=at_least(0),
        only_with=_TUNED,
    )
    batch_tokens: int = option(
        16_384,
        "tokens, with padding, in one forward pass",
        unit="tokens",
        check=at_least(64),
        advanced=True,
        changes_output=False,
    )
