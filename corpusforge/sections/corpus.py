"""Settings of the corpus: what is read, which pages and lines stay, and which duplicates are removed.

Defaults that come from a paper or a package name it in their help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from corpusforge.sections.fields import OneOf, all_of, at_least, between, option, some_of


class InputFormat(NamedTuple):
    """A format of raw pages, read by the module ``module`` of `corpusforge.documents`.

    ``endings``: of file names, before those of compression. ``cut``: whether a file may be cut into byte ranges:
    "never", "plain" (if it is not compressed) or "always". ``has_columns``: settings name the columns to read.
    ``has_urls``: a record may have a URL.
    """

    name: str
    module: str
    endings: tuple[str, ...] = ()
    cut: str = "never"
    has_columns: bool = False
    has_urls: bool = True


INPUT_FORMATS = {
    row.name: row
    for row in (
        InputFormat("warc", "warc", (".warc", ".wat", ".arc")),
        InputFormat("wet", "warc", (".wet",)),
        InputFormat("jsonl", "jsonl", (".jsonl", ".ndjson", ".json"), "plain", has_columns=True),
        InputFormat("parquet", "parquet", (".parquet",), "always", has_columns=True),
        InputFormat("hub", "hub"),
        InputFormat("text", "plaintext", (".txt",), has_urls=False),
    )
}
"""Every format of raw pages, in the order in which they are tried on files whose names have no known ending."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """Where raw pages come from, and how they are read."""

    paths: Sequence[str] = option(
        (), "files, folders, globs or URLs; for the hub: a name or a local folder", is_path=True, advanced=True
    )
    format: str = option("auto", "how to read them", check=OneOf("auto", *INPUT_FORMATS))
    text_column: str = option(
        "text",
        "column of JSONL, Parquet and hub rows that holds the text; of several, by commas, the first that a file has",
    )
    url_column: str = option("url", "column that holds the URL, where there is one", advanced=True)
    timestamp_column: str = option("timestamp", "column that holds the time, where there is one", advanced=True)
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
    hub_config: str = option("", "configuration of a hub dataset", advanced=True)
    hub_split: str = option("train", "split of a hub dataset", advanced=True)
    unit_megabytes: int = option(
        64,
        "input bytes of a work unit: small files are grouped, large splittable ones cut",
        unit="MB",
        check=at_least(1),
        advanced=True,
    )
    max_record_megabytes: int = option(
        256, "a larger raw record is rejected as record:too-large", unit="MB", check=between(1, 1024), advanced=True
    )


@dataclass(frozen=True, kw_only=True)
class Urls:
    """Which pages stay by where they are from. In lists ``@PATH`` names a text file with one entry per line."""

    allow: Sequence[str] = option(
        (), "keep only pages of these domains and their sub-domains; @PATH: a file with one per line", is_path=True
    )
    block: Sequence[str] = option(
        (), "drop pages of these domains and their sub-domains; @PATH: a file with one per line", is_path=True
    )
    block_substrings: Sequence[str] = option(
        (), "drop pages whose URL contains one of these, in any case; @PATH: a file with one per line", is_path=True
    )
    duplicates: str = option(
        "keep",
        "newest: of pages with the same normalized URL only the newest is read (C4)",
        check=OneOf("keep", "newest"),
    )
    memory_megabytes: int = option(
        1024,
        "memory for comparing URLs; more URLs are compared in rounds",
        unit="MB",
        check=at_least(64),
        only_with={"duplicates": ("newest",)},
        advanced=True,
        changes_output=False,
    )


@dataclass(frozen=True, kw_only=True)
class Clean:
    """Which pages and lines stay."""

    rules: Sequence[str] = option(
        ("c4-tfds-3.1",),
        "rule packs in their order: names (corpusforge rules list) or TOML files, several by commas",
        is_path=True,
    )
    language: str = option("en", "keep documents of this language (ISO 639-1); empty: any language")
    detector: str = option(
        "langdetect",
        "langdetect: exact C4; fast: resiliparse; cascade: langdetect only where resiliparse is uncertain",
        check=OneOf("langdetect", "fast", "cascade"),
        unless={"language": ""},
    )
    min_language_probability: float = option(
        0.99,
        "lowest probability of the language, by langdetect (C4 3.1.0: 0.99)",
        check=between(0, 1),
        unless={"language": "", "detector": "fast"},
    )
    sentences: str = option(
        "punkt",
        "how sentences are counted: NLTK Punkt (exact C4) or the built-in splitter",
        check=OneOf("punkt", "builtin"),
    )
    badwords: str = option(
        "fetched", "bad-word lists: 'fetched', 'off', or a folder with one file per language", is_path=True
    )
    pii: str = option(
        "off", "personal data in cleaned text: mask it, or drop its pages", check=OneOf("off", "mask", "drop")
    )
    pii_kinds: Sequence[str] = option(
        ("email", "ip", "phone"),
        "kinds of personal data, by commas",
        check=all_of("email", "ip", "phone"),
        unless={"pii": "off"},
    )
    contamination: Sequence[str] = option(
        (),
        "evaluation files or folders: documents that contain their text are dropped; several by commas",
        is_path=True,
    )
    contamination_ngram: int = option(
        13,
        "n-gram length that counts as contamination (GPT-3: 13, PaLM: 8)",
        unit="words",
        check=between(8, 13),
        unless={"contamination": ()},
    )
    filter_errors: str = option(
        "stop",
        "when a filter of your own raises an exception: stop the run, or drop the document as filter:NAME:error",
        check=OneOf("stop", "drop"),
        changes_output=False,  # the step of a filter records it: runs without filters are not touched by it
    )
    rejects: str = option(
        "all", "write dropped text with its reasons to rejects/, or only count it", check=OneOf("all", "none")
    )
    shard_megabytes: int = option(64, "input text of one output shard", unit="MB", check=at_least(1), advanced=True)


class Method(NamedTuple):
    """A method of deduplication. ``settings``: the fields of `Dedupe` that only some methods read."""

    help: str
    settings: tuple[str, ...] = ()


_CUT = ("min_sentences", "min_words")
_SIMILAR = ("fold_numbers", "threshold", "permutations", "shingle_words")

METHODS = {
    "lines": Method("equal lines, as C4", (*_CUT, "sentences")),
    "exact-spans": Method("equal spans of sentences, as T5", ("span_sentences", *_CUT, "fold_numbers")),
    "near-spans": Method("similar spans of sentences", ("span_sentences", *_CUT, *_SIMILAR)),
    "documents": Method("similar documents", (*_SIMILAR, "index", "export_signatures")),
}
"""The methods of deduplication. The method ``some-name`` is the module ``corpusforge/dedupe/some_name.py``."""


def _methods_with(setting: str) -> dict[str, tuple[str, ...]]:
    """The methods that read a setting, for ``only_with``."""
    return {"method": tuple(name for name, method in METHODS.items() if setting in method.settings)}


@dataclass(frozen=True, kw_only=True)
class Dedupe:
    """Which duplicates are removed."""

    method: Sequence[str] = option(
        ("exact-spans",),
        "what counts as a duplicate, one or several, run in the order given: "
        + ", ".join(f"{name} ({method.help})" for name, method in METHODS.items()),
        check=some_of(*METHODS),
    )
    span_sentences: int = option(
        3,
        "sentences of a span (T5 paper: 3)",
        unit="sentences",
        check=between(1, 64),
        only_with=_methods_with("span_sentences"),
    )
    min_sentences: int = option(
        3,
        "a document that lost text (lines: any) and has fewer left is dropped (C4: 3)",
        unit="sentences",
        check=at_least(0),
        only_with=_methods_with("min_sentences"),
    )
    min_words: int = option(
        0,
        "a document that lost text and has fewer left is dropped",
        unit="words",
        check=at_least(0),
        only_with=_methods_with("min_words"),
    )
    fold_numbers: bool = option(
        False,
        "treat all digits as equal",
        only_with=_methods_with("fold_numbers"),
        flag="--fold-numbers/--keep-numbers",
    )
    sentences: str = option(
        "punkt",
        "how the sentences that are left are counted: NLTK Punkt (exact C4) or the built-in splitter",
        check=OneOf("punkt", "builtin"),
        only_with=_methods_with("sentences"),
    )
    keep: str = option(
        "hash",
        "which copy is kept: by hash of the document's id (lines: of its URL), or of the newest or longest document",
        check=OneOf("hash", "newest", "longest"),
        was="survivor",
    )
    threshold: float = option(
        0.8,
        "Jaccard similarity of shingles from which two texts are near-duplicates",
        check=between(0.1, 1),
        only_with=_methods_with("threshold"),
    )
    permutations: int = option(
        64,
        "values of a signature; with more, fewer pairs are compared in vain, and an index estimates better",
        check=between(16, 1024),
        only_with=_methods_with("permutations"),
    )
    shingle_words: int = option(
        5,
        "words of a shingle (datatrove: 5)",
        unit="words",
        check=between(1, 32),
        only_with=_methods_with("shingle_words"),
    )
    index: Sequence[str] = option(
        (),
        "finished dedupe folders with signatures/; documents that they already hold are dropped",
        is_path=True,
        only_with=_methods_with("index"),
    )
    export_signatures: bool = option(
        False,
        "write signatures/ of the kept documents, an index for later runs; always with an index",
        only_with=_methods_with("export_signatures"),
        flag="--export-signatures/--no-signatures",
    )
    memory_megabytes: int = option(
        4096,
        "memory budget of the whole stage on this machine, kept by fewer workers and by comparing in rounds",
        unit="MB",
        check=at_least(400),  # `dedupe.memory.SMALLEST`
        flag="--memory-budget",
        changes_output=False,
    )
