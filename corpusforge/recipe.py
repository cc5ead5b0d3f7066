"""One recipe, one run: every setting with its default, unit, check and meaning.

Comes in: a TOML file, flags, ``--set section.field=value``. Goes out: a frozen `Recipe`. Precedence: default, recipe,
flag, ``--set``. An unknown key is an error that names the nearest valid one. Relative paths in a recipe are relative
to the recipe's own folder. Defaults that come from a paper carry it in their help.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpusforge import errors
from corpusforge.bundled import bundled

Check = Callable[[Any], str | None]
"""Returns what is wrong with a value, or None."""


class OneOf:
    """Check that a value is one of these words; the command line offers them as choices."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def __call__(self, value: Any) -> str | None:
        return None if value in self.values else f"must be one of {', '.join(self.values)}"


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
    html: str = option("main", "text of HTML pages: the main content, or all text", check=OneOf("main", "all"))
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
class Clean:
    """Which pages and lines stay."""

    rules: str = option("c4-tfds-3.1", "rule pack: a name (corpusforge rules list) or a TOML file")
    language: str = option("en", "keep documents of this language (ISO 639-1); empty: do not look")
    detector: str = option(
        "langdetect",
        "langdetect is exact C4; fast is resiliparse, about 100 times faster",
        check=OneOf("langdetect", "fast"),
    )
    min_language_probability: float = option(0.99, "C4 3.1.0: 0.99 (langdetect only)", check=between(0, 1))
    sentences: str = option(
        "punkt",
        "who counts sentences: NLTK Punkt (exact C4) or the built-in splitter",
        check=OneOf("punkt", "builtin"),
    )
    badwords: str = option(
        "fetched", "bad-word lists: 'fetched', 'off', or a folder with one file a language", is_path=True
    )
    rejects: str = option(
        "all", "keep dropped text with reasons in rejects/, or only count it", check=OneOf("all", "none")
    )
    shard_megabytes: int = option(64, "text read for one output shard", unit="MB", check=at_least(1))


@dataclass(frozen=True)
class Dedupe:
    """Which repeats are cut."""

    method: str = option("exact-spans", "what counts as a repeat", check=OneOf("exact-spans"))
    span_sentences: int = option(3, "sentences of a span (T5 paper: 3)", unit="sentences", check=between(1, 64))
    min_sentences: int = option(
        3,
        "a document that lost text and has fewer left is dropped (C4: 3)",
        unit="sentences",
        check=at_least(0),
    )
    min_words: int = option(0, "the same in words", unit="words", check=at_least(0))
    fold_numbers: bool = option(False, "treat all digits as equal")
    memory_megabytes: int = option(
        2048,
        "budget of the whole stage; more hashes than fit are handled in rounds",
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
    heldout: float = option(
        0.01, "share of documents set aside for evaluation, by hash of their id", check=between(0, 0.5)
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
        "bert-base", "architecture and published hyper-parameters (corpusforge pretrain --help lists them)"
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
    decay: str = option("linear", "after warm-up", check=OneOf("linear", "constant"))
    short_length: int = option(
        128, "length of the first part of training (BERT: 128)", unit="tokens", check=at_least(8)
    )
    short_share: float = option(
        0.9, "share of steps at short_length, the rest at the instances' own (BERT: 0.9)", check=between(0, 1)
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

    tasks: tuple[str, ...] = option(("mlm",), "mlm (held-out loss against the unigram line), blimp")
    blimp_data: str = option("", "BLiMP: folder of .jsonl paradigms, or its .tar.gz", is_path=True)
    blimp_pairs: int = option(100, "pairs a paradigm: 100 is fast, 0 is all", check=at_least(0))
    batch_tokens: int = option(16_384, "tokens, padded, in one forward pass", unit="tokens", check=at_least(64))


@dataclass(frozen=True)
class Recipe:
    """The whole line. ``stages``: which sections `corpusforge run` carries out, in the order of the line."""

    name: str = option("run", "what the run is called in reports and the model card")
    seed: int = option(0, "seed of everything random", check=between(0, 2**63 - 1))
    stages: tuple[str, ...] = option(
        ("clean", "dedupe", "train-vocab", "build-instances", "pretrain", "evaluate", "report"),
        "stages to run",
    )
    input: Input = field(default_factory=Input)
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


STAGES: tuple[str, ...] = Recipe().stages
SECTIONS = ("input", "clean", "dedupe", "vocab", "instances", "pretrain", "evaluate")


def build(values: Mapping[str, Any], *, where: str, base: Recipe | None = None) -> Recipe:
    """A checked Recipe from nested values laid over ``base``.

    Raises `errors.RecipeInvalid` naming ``where``, the key, and what would be right.
    """
    return _build(Recipe, values, where, "", base or Recipe())  # type: ignore[no-any-return]


def _build(kind: Any, values: Mapping[str, Any], where: str, prefix: str, base: Any) -> Any:
    fields = {f.name: f for f in dataclasses.fields(kind)}
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, 1, 0.5)
            mend = f"did you mean '{prefix}{near[0]}'?" if near else f"valid keys: {', '.join(fields)}"
            raise errors.RecipeInvalid(where, f"unknown key '{prefix}{key}'", mend)
        current = getattr(base, key)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise errors.RecipeInvalid(where, f"'{key}' is {value!r}", f"write it as a section: [{key}]")
            changes[key] = _build(type(current), value, where, f"{key}.", current)
        else:
            changes[key] = _checked(fields[key], _convert(value, current), where, prefix)
    return dataclasses.replace(base, **changes)


def _convert(value: Any, like: Any) -> Any:
    """Bring a TOML or command-line value to the type of the default, where that loses nothing."""
    if isinstance(value, str) and not isinstance(like, str):
        if isinstance(like, tuple):
            return tuple(v for v in value.split(",") if v)
        return _parse(value, like)
    if isinstance(like, tuple) and isinstance(value, list):
        return tuple(str(v) for v in value)
    if isinstance(like, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _parse(value: str, like: Any) -> Any:
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(value.lower(), value)
    try:
        return type(like)(value.replace("_", ""))
    except ValueError:
        return value


def _checked(spec: dataclasses.Field[Any], value: Any, where: str, prefix: str) -> Any:
    factory = spec.default_factory
    default = spec.default if factory is dataclasses.MISSING else factory()
    if type(value) is not type(default):
        what = (
            f"{prefix}{spec.name} = {value!r} is no {'list' if isinstance(default, tuple) else type(default).__name__}"
        )
        raise errors.RecipeInvalid(where, what, spec.metadata["help"])
    check = spec.metadata["check"]
    wrong = check(value) if check else None
    if wrong:
        raise errors.RecipeInvalid(where, f"{prefix}{spec.name} = {value!r}", f"it {wrong}")
    return value


def load(name_or_path: str) -> Recipe:
    """A recipe by bare name (bundled) or by path, with its relative paths resolved against its folder."""
    path = find(name_or_path)
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise errors.RecipeInvalid(str(path), f"not valid TOML ({error})", "mend the line it names") from None
    recipe = build({"name": path.stem, **values}, where=str(path))
    return _resolve(recipe, path.parent)


def find(name_or_path: str) -> Path:
    """Where a recipe lies. Raises `errors.InputMissing` with the names that exist."""
    path = Path(name_or_path)
    if path.suffix == ".toml" or "/" in name_or_path:
        if path.is_file():
            return path
        raise errors.InputMissing(name_or_path, "no such recipe file", "check the path")
    folder = bundled("pipelines")
    if (folder / f"{name_or_path}.toml").is_file():
        return folder / f"{name_or_path}.toml"
    names = sorted(p.stem for p in folder.glob("*.toml"))
    near = difflib.get_close_matches(name_or_path, names, 1, 0.5)
    mend = f"did you mean '{near[0]}'?" if near else f"bundled recipes: {', '.join(names)}"
    raise errors.InputMissing(name_or_path, "no bundled recipe of that name", mend)


def _resolve(recipe: Recipe, folder: Path) -> Recipe:
    def resolved(value: str, spec: dataclasses.Field[Any]) -> str:
        if not value or "://" in value or Path(value).is_absolute() or value in _WORDS.get(spec.name, ()):
            return value
        return str((folder / value).resolve())

    def section(values: Any) -> Any:
        changes: dict[str, Any] = {}
        for spec in dataclasses.fields(values):
            value = getattr(values, spec.name)
            if dataclasses.is_dataclass(value):
                changes[spec.name] = section(value)
            elif spec.metadata.get("is_path") and not (spec.name == "paths" and values.format == "hub"):
                many = isinstance(value, tuple)
                changes[spec.name] = tuple(resolved(v, spec) for v in value) if many else resolved(value, spec)
        return dataclasses.replace(values, **changes)

    return section(recipe)  # type: ignore[no-any-return]


_WORDS = {"badwords": ("fetched", "off")}


def override(recipe: Recipe, settings: Mapping[str, Any], *, where: str = "--set") -> Recipe:
    """Lay ``{"section.field": value}`` over a recipe; strings are parsed to the field's type."""
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, dot, name = key.partition(".")
        if dot:
            nested.setdefault(section, {})[name] = value
        else:
            nested[section] = value
    return build(nested, where=where, base=recipe)


def as_dict(recipe: Any) -> dict[str, Any]:
    """A recipe or a section as plain JSON values."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(recipe).items()}
