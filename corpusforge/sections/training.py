"""Settings of training and of what a checkpoint is tested on.

Zero or -1 stands for what a preset's authors published.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge.sections.fields import OneOf, all_of, at_least, between, duration, option


@dataclass(frozen=True)
class Pretrain:
    """Model, optimiser and schedule."""

    preset: str = option(
        "bert-base",
        "architecture and published hyper-parameters: bert-tiny, bert-mini, bert-small, bert-medium, bert-base, "
        "bert-large, roberta-tiny, roberta-base, roberta-large, albert-tiny, albert-base, albert-large, albert-xlarge, "
        "albert-xxlarge, spanbert-tiny, spanbert-base, spanbert-large",
    )
    steps: int = option(0, "optimiser steps; 0: the preset's own number", unit="steps", check=at_least(0))
    batch_tokens: int = option(
        0,
        "tokens of one optimiser step, padding not counted; 0: the preset's own number",
        unit="tokens",
        check=at_least(0),
    )
    micro_batch_tokens: int = option(
        16_384, "tokens, padded, that pass through the model at once", unit="tokens", check=at_least(64)
    )
    packing: bool = option(True, "lay instances end to end without padding, attention inside each")
    optimizer: str = option(
        "auto",
        "auto: the preset's own; adamw; bert-adam: as google-research/bert, without bias correction; lamb",
        check=OneOf("auto", "adamw", "bert-adam", "lamb"),
    )
    learning_rate: float = option(0.0, "peak; 0: the preset's own", check=at_least(0))
    warmup_steps: int = option(-1, "-1: the preset's own share of the steps", unit="steps", check=at_least(-1))
    decay: str = option(
        "linear",
        "after warm-up; linear: as the preset's authors have it; linear-bert: over all steps, replaced while warming "
        "up; linear-hf: from the peak; wsd: constant, then 1 - sqrt",
        check=OneOf("linear", "linear-bert", "linear-hf", "cosine", "one-cycle", "wsd", "constant"),
    )
    decay_share: float = option(0.1, "of all steps, in which wsd decays", check=between(0, 1))
    budget: str = option(
        "",
        "wall-clock time in place of steps, as 30m or 1h30m: steps are planned from the speed that is measured",
        check=duration,
    )
    batch_ramp: float = option(1.0, "share of the batch that the first step has; 1: no ramp", check=between(0.001, 1))
    batch_ramp_share: float = option(0.25, "of all steps, over which the batch grows", check=between(0, 1))
    mask_rate_start: float = option(
        -1.0, "of dynamic masks at the first step; -1: as the instances were built for", check=between(-1, 0.9)
    )
    mask_rate_end: float = option(
        -1.0, "of dynamic masks at the last step, linear between; -1: as the instances", check=between(-1, 0.9)
    )
    short_length: int = option(
        128, "length of the first part of training (BERT: 128)", unit="tokens", check=at_least(8)
    )
    short_share: float = option(
        -1.0,
        "share of steps at short_length, the rest at the instances' own; -1: the preset's own (BERT 0.9, RoBERTa 0)",
        check=between(-1, 1),
    )
    dropout: float = option(-1.0, "-1: the preset's own", check=between(-1, 0.9))
    precision: str = option(
        "auto", "auto: bf16 autocast on a GPU that has it, else fp32", check=OneOf("auto", "fp32", "bf16")
    )
    device: str = option("auto", "auto, cpu, cuda", check=OneOf("auto", "cpu", "cuda"))
    compile: bool = option(False, "torch.compile the model")
    sharding: str = option(
        "none", "of weights and moments over ranks; none: each rank has all; fsdp", check=OneOf("none", "fsdp")
    )
    threads: int = option(
        0,
        "threads of torch on a CPU, 0: all cores; results are the same to the bit for the same number",
        check=at_least(0),
    )
    checkpoint_steps: int = option(1000, "steps between checkpoints", unit="steps", check=at_least(1))
    keep_checkpoints: int = option(3, "newest checkpoints kept", check=at_least(1))
    keep_best: bool = option(True, "keep also the checkpoint with the lowest held-out loss")
    on_spike: str = option(
        "ignore",
        "a loss that leaps, or is not finite: skip the step, or stop; ignore: stop for what is not finite only",
        check=OneOf("ignore", "skip", "stop"),
    )
    spike_deviations: float = option(
        6.0, "a leap: above the running mean by so many running deviations", check=at_least(1)
    )
    evaluate_steps: int = option(500, "steps between held-out losses", unit="steps", check=at_least(1))
    log_steps: int = option(10, "steps between log lines", unit="steps", check=at_least(1))
    tensorboard: bool = option(True, "write TensorBoard events where it is installed")
    wandb: str = option("", "project of Weights & Biases to log to; empty: none")
    loader_threads: int = option(1, "threads that make batches ahead; no number of them changes any", check=at_least(1))
    init: str = option(
        "", "a BERT, RoBERTa or ALBERT in Hugging Face's format whose weights to begin from", is_path=True
    )
    init_shape: bool = option(False, "take the shape from init and from the preset the training alone")
    init_any_vocabulary: bool = option(False, "let the tokenizer of init be another than the vocabulary of the data")
    allow_new_data: bool = option(False, "resume a checkpoint on data it was not trained on")


@dataclass(frozen=True)
class Evaluate:
    """What a checkpoint is tested on."""

    tasks: tuple[str, ...] = option(
        ("mlm",),
        "mlm (held-out loss against the unigram line), blimp (minimal pairs), glue (fine-tuning on labelled TSV "
        "files), squad (fine-tuning on questions)",
        check=all_of("mlm", "blimp", "glue", "squad"),
    )
    blimp_data: str = option("", "BLiMP: folder of .jsonl paradigms, or its .tar.gz", is_path=True)
    blimp_pairs: int = option(100, "pairs a paradigm: 100 is fast, 0 is all", check=at_least(0))
    glue_data: str = option(
        "", "glue: folder of task folders with train.tsv and dev.tsv, or one of them; none: --data", is_path=True
    )
    glue_tasks: tuple[str, ...] = option((), "glue: these tasks alone (CoLA,RTE); none: all in the folder")
    squad_data: str = option("", "squad: folder with train*.json and dev*.json; none: --data", is_path=True)
    squad_threshold: float = option(
        0.0, "squad 2: no answer is said where it scores so much above the best text", check=between(-1000, 1000)
    )
    epochs: int = option(0, "of fine-tuning; 0: as published (glue: BERT 3, RoBERTa 10)", check=at_least(0))
    batch: int = option(0, "examples of a step of fine-tuning; 0: as published (32)", check=at_least(0))
    learning_rate: float = option(
        0.0, "of fine-tuning; 0: as published (glue: BERT 3e-5, RoBERTa 2e-5)", check=at_least(0)
    )
    layer_decay: float = option(
        1.0,
        "rates fall by this factor a layer towards the embeddings (ELECTRA: 0.8, large 0.9)",
        check=between(0.01, 1),
    )
    seeds: int = option(5, "runs of fine-tuning, of which the median counts (RoBERTa: 5)", check=between(1, 100))
    max_length: int = option(
        0, "tokens of an example; 0: as published (glue 128, squad 384)", unit="tokens", check=at_least(0)
    )
    train_examples: int = option(
        0, "training examples that are used, a sample for a quick look; 0: all", unit="examples", check=at_least(0)
    )
    batch_tokens: int = option(16_384, "tokens, padded, in one forward pass", unit="tokens", check=at_least(64))
