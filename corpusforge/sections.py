"""Every setting of a run: its default, unit, check and meaning; one frozen dataclass a section, `Recipe` over them.

Defaults that come from a paper carry it in their help. `corpusforge.recipe` reads them from TOML and flags.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Check = Callable[[Any], str | None]
"""Returns what is wrong with a value, or None."""


LINE = ("clean", "dedupe", "train-vocab", "build-instances", "pretrain", "evaluate", "report")
"""The stages in their order."""


class OneOf:
    """Check that a value is one of these words; the command line offers them as choices."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def __call__(self, value: Any) -> str | None:
        return None if value in self.values else f"must be one of {', '.join(self.values)}"


def all_of(*values: str) -> Check:
    """Every member of a list is one of these words."""

    def check(given: tuple[str, ...]) -> str | None:
        wrong = [v for v in given if v not in values]
        return f"names {wrong[0]!r}, which is none of {', '.join(values)}" if wrong else None

    return check


def some_of(*values: str) -> Check:
    """As `all_of`, at least one, and each once."""

    def check(given: tuple[str, ...]) -> str | None:
        if not given or len(set(given)) < len(given):
            return f"must name one or several of {', '.join(values)}, each once"
        return all_of(*values)(given)

    return check


def plain_name(value: str) -> str | None:
    """The value may name a folder: a recipe of somebody else's must not choose where it lies."""
    plain = value and not value.startswith(".") and not any(c in "/\\" or not c.isprintable() for c in value)
    return None if plain else "must be a name without slashes that begins with no dot"


def at_least(low: float) -> Check:
    """The value is a number not below ``low``."""
    return lambda v: None if v >= low else f"must be at least {low:g}"


def between(low: float, high: float) -> Check:
    """The value lies in [low, high]."""
    return lambda v: None if low <= v <= high else f"must lie between {low:g} and {high:g}"


def option(default: Any, help: str, *, unit: str = "", check: Check | None = None, is_path: bool = False) -> Any:
    """A recipe field. ``is_path``: resolved against the recipe's folder."""
    metadata = {"help": help, "unit": unit, "check": check, "is_path": is_path}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Input:
    """Where raw pages come from."""

    paths: tuple[str, ...] = option(
        (), "files, folders, globs or URLs; for the hub: a name or a local folder", is_path=True
    )
    format: str = option(
        "auto", "how to read them", check=OneOf("auto", "warc", "wet", "jsonl", "parquet", "text", "hub")
    )
    text_column: str = option(
        "text", "column of JSONL, Parquet and hub rows that holds the text; several by commas: the first a file has"
    )
    url_column: str = option("url", "column that holds the URL, where there is one")
    timestamp_column: str = option("timestamp", "column that holds the time, where there is one")
    text_split: str = option(
        "file",
        "plain text: one document a file, or blank lines between documents",
        check=OneOf("file", "blank-line"),
    )
    html: str = option(
        "main",
        "text of HTML pages: the main content, all text, or the main content by trafilatura (slower, more precise)",
        check=OneOf("main", "all", "trafilatura"),
    )
    hub_config: str = option("", "configuration of a hub dataset")
    hub_split: str = option("train", "split of a hub dataset")
    unit_megabytes: int = option(
        64,
        "input bytes of a work unit: small files are grouped, large splittable ones cut",
        unit="MB",
        check=at_least(1),
    )
    max_record_megabytes: int = option(
        256, "a raw record above this is rejected as record:too-large", unit="MB", check=between(1, 1024)
    )


@dataclass(frozen=True)
class Urls:
    """Which pages stay by where they are from. In lists ``@PATH`` names a text file with one entry a line."""

    allow: tuple[str, ...] = option(
        (), "keep only pages of these domains and their sub-domains; @PATH: a file with one a line", is_path=True
    )
    block: tuple[str, ...] = option(
        (), "drop pages of these domains and their sub-domains; @PATH: a file with one a line", is_path=True
    )
    block_substrings: tuple[str, ...] = option(
        (), "drop pages whose URL holds one of these, in any case; @PATH: a file with one a line", is_path=True
    )
    duplicates: str = option(
        "keep",
        "newest: of pages with the same normalised URL only the newest is read (C4)",
        check=OneOf("keep", "newest"),
    )
    memory_megabytes: int = option(
        1024,
        "duplicates = newest: memory for comparing URLs; more of them are compared in rounds",
        unit="MB",
        check=at_least(64),
    )


@dataclass(frozen=True)
class Clean:
    """Which pages and lines stay."""

    rules: tuple[str, ...] = option(
        ("c4-tfds-3.1",),
        "rule packs in their order: names (corpusforge rules list) or TOML files, several by commas",
        is_path=True,
    )
    language: str = option("en", "keep documents of this language (ISO 639-1); empty: do not look")
    detector: str = option(
        "langdetect",
        "langdetect is exact C4; fast is resiliparse; cascade asks langdetect where resiliparse is not clear",
        check=OneOf("langdetect", "fast", "cascade"),
    )
    min_language_probability: float = option(0.99, "C4 3.1.0: 0.99 (answers of langdetect)", check=between(0, 1))
    sentences: str = option(
        "punkt",
        "who counts sentences: NLTK Punkt (exact C4) or the built-in splitter",
        check=OneOf("punkt", "builtin"),
    )
    badwords: str = option(
        "fetched", "bad-word lists: 'fetched', 'off', or a folder with one file a language", is_path=True
    )
    pii: str = option(
        "off", "personal data in cleaned text: mask it, or drop its pages", check=OneOf("off", "mask", "drop")
    )
    pii_kinds: tuple[str, ...] = option(
        ("email", "ip", "phone"), "which personal data, by commas", check=all_of("email", "ip", "phone")
    )
    contamination: tuple[str, ...] = option(
        (), "evaluation files or folders: documents that hold their text are dropped; several by commas", is_path=True
    )
    contamination_ngram: int = option(
        13,
        "so many words in a row are text of an evaluation file (GPT-3: 13, PaLM: 8)",
        unit="words",
        check=between(8, 13),
    )
    rejects: str = option(
        "all", "keep dropped text with reasons in rejects/, or only count it", check=OneOf("all", "none")
    )
    shard_megabytes: int = option(64, "text read for one output shard", unit="MB", check=at_least(1))


@dataclass(frozen=True)
class Dedupe:
    """Which repeats are cut."""

    method: tuple[str, ...] = option(
        ("exact-spans",),
        "what counts as a repeat: one or several of lines, exact-spans, near-spans, documents, in this order",
        check=some_of("lines", "exact-spans", "near-spans", "documents"),
    )
    span_sentences: int = option(3, "sentences of a span (T5 paper: 3)", unit="sentences", check=between(1, 64))
    min_sentences: int = option(
        3,
        "a document that lost text and has fewer left is dropped (C4: 3)",
        unit="sentences",
        check=at_least(0),
    )
    min_words: int = option(0, "the same in words", unit="words", check=at_least(0))
    sentences: str = option(
        "punkt",
        "who counts the sentences that lines leaves: NLTK Punkt (exact C4) or the built-in splitter",
        check=OneOf("punkt", "builtin"),
    )
    fold_numbers: bool = option(False, "treat all digits as equal")
    survivor: str = option(
        "hash",
        "which copy stays: by hash of the document's id (lines: of its URL), or of the newest or longest document",
        check=OneOf("hash", "newest", "longest"),
    )
    threshold: float = option(
        0.8, "near-spans, documents: how similar is a repeat, as Jaccard similarity of shingles", check=between(0.1, 1)
    )
    permutations: int = option(
        64,
        "near-spans, documents: values of a signature; four times as many estimate twice as well",
        check=between(16, 1024),
    )
    shingle_words: int = option(
        5,
        "near-spans, documents: words of a shingle (datatrove: 5)",
        unit="words",
        check=between(1, 32),
    )
    index: tuple[str, ...] = option(
        (), "documents: finished dedupe folders with signatures/; what they hold already is dropped", is_path=True
    )
    export_signatures: bool = option(
        False, "documents: write signatures/ of what stays, an index for later runs; always with an index"
    )
    memory_megabytes: int = option(
        4096,
        "budget of the whole stage on this machine: fewer workers, and comparison in rounds, where it asks for them",
        unit="MB",
        check=at_least(256),
    )


@dataclass(frozen=True)
class Vocab:
    """The vocabulary."""

    model: str = option("wordpiece", "family", check=OneOf("wordpiece"))
    size: int = option(30_528, "entries with specials and unused slots; a multiple of 64", check=at_least(64))
    unused: int = option(128, "[unusedN] slots inside the size, for users to claim later", check=at_least(0))
    lowercase: bool = option(True, "uncased: lower case, accents stripped")
    min_count: int = option(2, "words seen less often are not learned from", unit="occurrences", check=at_least(1))
    max_words: int = option(4_000_000, "distinct words the learner reads: the most frequent ones", check=at_least(1000))
    alphabet: int = option(1000, "distinct characters kept (HF and google default)", check=at_least(64))
    allow_any_size: bool = option(False, "accept a size that is no multiple of 64")
    adopt: str = option("", "a tokenizer folder to take over instead of learning", is_path=True)


@dataclass(frozen=True)
class Instances:
    """How token ids become training examples."""

    format: str = option(
        "doc-sentences", "input format (RoBERTa, section 4.2)", check=OneOf("doc-sentences", "segment-pair")
    )
    length: int = option(128, "longest instance with specials", unit="tokens", check=between(8, 65_535))
    masking: str = option("dynamic", "when masks are drawn", check=OneOf("static", "duplicated", "dynamic"))
    copies: int = option(
        10, "duplicated: copies of the corpus with masks of their own (BERT: 10)", check=between(1, 1000)
    )
    copies_redraw: str = option(
        "pairs",
        "duplicated segment-pair: copies redraw pairs and masks, or masks only",
        check=OneOf("pairs", "masks"),
    )
    mask_unit: str = option("token", "what is masked together", check=OneOf("token"))
    mask_rate: float = option(0.15, "share of tokens masked (BERT: 0.15)", check=between(0, 1))
    mask_share: float = option(0.8, "of these, replaced by [MASK] (BERT: 0.8)", check=between(0, 1))
    random_share: float = option(
        0.1, "of these, replaced by a random token (BERT: 0.1); the rest is kept", check=between(0, 1)
    )
    max_predictions: int = option(
        0,
        "most masked tokens an instance (BERT: 20 at 128, 76 at 512); 0: no cap",
        unit="tokens",
        check=at_least(0),
    )
    pair_sampling: str = option(
        "balanced",
        "segment-pair: exactly half random, or google-research/bert's own 53-57 %",
        check=OneOf("balanced", "original"),
    )
    short_probability: float = option(
        0.1, "share of documents with a shorter target length (BERT: 0.1)", check=between(0, 1)
    )
    heldout: float = option(0.01, "share of documents set aside for evaluation, by hash", check=between(0, 0.5))
    heldout_by: str = option(
        "id",
        "url: by the MD5 of the normalised URL, in thousandths (C4: 0.001); by id where there is none",
        check=OneOf("id", "url"),
    )
    donor_megabytes: int = option(
        256,
        "token ids kept in memory to draw random segments from: a uniform sample of the corpus",
        unit="MB",
        check=at_least(1),
    )


@dataclass(frozen=True)
class Pretrain:
    """Model, optimiser and schedule."""

    preset: str = option(
        "bert-base",
        "architecture and published hyper-parameters: bert-tiny, bert-mini, bert-small, bert-medium, bert-base, "
        "bert-large, roberta-tiny, roberta-base, roberta-large",
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
    learning_rate: float = option(0.0, "peak; 0: the preset's own", check=at_least(0))
    warmup_steps: int = option(-1, "-1: the preset's own share of the steps", unit="steps", check=at_least(-1))
    decay: str = option(
        "linear", "after warm-up; linear: as the preset's authors have it", check=OneOf("linear", "constant")
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
    threads: int = option(
        0,
        "threads of torch on a CPU, 0: all cores; results are the same to the bit for the same number",
        check=at_least(0),
    )
    checkpoint_steps: int = option(1000, "steps between checkpoints", unit="steps", check=at_least(1))
    keep_checkpoints: int = option(3, "newest checkpoints kept", check=at_least(1))
    evaluate_steps: int = option(500, "steps between held-out losses", unit="steps", check=at_least(1))
    log_steps: int = option(10, "steps between log lines", unit="steps", check=at_least(1))
    tensorboard: bool = option(True, "write TensorBoard events where it is installed")
    allow_new_data: bool = option(False, "resume a checkpoint on data it was not trained on")


@dataclass(frozen=True)
class Evaluate:
    """What a checkpoint is tested on."""

    tasks: tuple[str, ...] = option(
        ("mlm",), "mlm (held-out loss against the unigram line), blimp", check=all_of("mlm", "blimp")
    )
    blimp_data: str = option("", "BLiMP: folder of .jsonl paradigms, or its .tar.gz", is_path=True)
    blimp_pairs: int = option(100, "pairs a paradigm: 100 is fast, 0 is all", check=at_least(0))
    batch_tokens: int = option(16_384, "tokens, padded, in one forward pass", unit="tokens", check=at_least(64))


@dataclass(frozen=True)
class Recipe:
    """The whole line. ``stages``: which sections `corpusforge run` carries out, in the order of the line."""

    name: str = option("run", "what the run is called in reports and the model card", check=plain_name)
    seed: int = option(0, "seed of everything random", check=between(0, 2**63 - 1))
    stages: tuple[str, ...] = option(
        LINE,
        "stages to run",
        check=all_of(*LINE),
    )
    input: Input = field(default_factory=Input)
    urls: Urls = field(default_factory=Urls)
    clean: Clean = field(default_factory=Clean)
    dedupe: Dedupe = field(default_factory=Dedupe)
    vocab: Vocab = field(default_factory=Vocab)
    instances: Instances = field(default_factory=Instances)
    pretrain: Pretrain = field(default_factory=Pretrain)
    evaluate: Evaluate = field(default_factory=Evaluate)


@dataclass(frozen=True)
class Setting:
    """One field of a recipe as the command line and the docs show it."""

    key: str
    default: Any
    help: str
    unit: str
    choices: tuple[str, ...]


def settings() -> dict[str, Setting]:
    """Every setting by its dotted key, in the recipe's order."""
    found: dict[str, Setting] = {}

    def collect(values: Any, prefix: str) -> None:
        for spec in dataclasses.fields(values):
            value, key = getattr(values, spec.name), f"{prefix}{spec.name}"
            if dataclasses.is_dataclass(value):
                collect(value, f"{key}.")
            else:
                check = spec.metadata["check"]
                choices = check.values if isinstance(check, OneOf) else ()
                found[key] = Setting(key, value, spec.metadata["help"], spec.metadata["unit"], choices)

    collect(Recipe(), "")
    return found
