"""Settings of the corpus: what is read, which pages and lines stay, and which duplicates are removed.

Defaults that come from a paper or a package name it in their help.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge.sections.fields import OneOf, all_of, at_least, between, option, some_of


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


SPANS = ("exact-spans", "near-spans")
CUTTING = ("lines", *SPANS)
NEAR = ("near-spans", "documents")
"""Methods of deduplication that share settings: spans are cut, text is cut, near repeats are looked for."""


@dataclass(frozen=True)
class Dedupe:
    """Which repeats are cut."""

    method: tuple[str, ...] = option(
        ("exact-spans",),
        "what counts as a repeat: one or several of lines, exact-spans, near-spans, documents, in this order",
        check=some_of("lines", "exact-spans", "near-spans", "documents"),
    )
    span_sentences: int = option(
        3, "sentences of a span (T5 paper: 3)", unit="sentences", check=between(1, 64), methods=SPANS
    )
    min_sentences: int = option(
        3,
        "a document that lost text (lines: any) and has fewer left is dropped (C4: 3)",
        unit="sentences",
        check=at_least(0),
        methods=CUTTING,
    )
    min_words: int = option(
        0, "a document that lost text and has fewer left is dropped", unit="words", check=at_least(0), methods=CUTTING
    )
    sentences: str = option(
        "punkt",
        "who counts the sentences that are left: NLTK Punkt (exact C4) or the built-in splitter",
        check=OneOf("punkt", "builtin"),
        methods=("lines",),
    )
    fold_numbers: bool = option(False, "treat all digits as equal", methods=(*SPANS, "documents"))
    survivor: str = option(
        "hash",
        "which copy stays: by hash of the document's id (lines: of its URL), or of the newest or longest document",
        check=OneOf("hash", "newest", "longest"),
    )
    threshold: float = option(
        0.8, "how similar is a repeat, as Jaccard similarity of shingles", check=between(0.1, 1), methods=NEAR
    )
    permutations: int = option(
        64,
        "values of a signature; with more, fewer pairs are compared for nothing, and an index estimates better",
        check=between(16, 1024),
        methods=NEAR,
    )
    shingle_words: int = option(
        5, "words of a shingle (datatrove: 5)", unit="words", check=between(1, 32), methods=NEAR
    )
    index: tuple[str, ...] = option(
        (),
        "finished dedupe folders with signatures/; what they hold already is dropped",
        is_path=True,
        methods=("documents",),
    )
    export_signatures: bool = option(
        False, "write signatures/ of what stays, an index for later runs; always with an index", methods=("documents",)
    )
    memory_megabytes: int = option(
        4096,
        "budget of the whole stage on this machine: fewer workers, and comparison in rounds, where it asks for them",
        unit="MB",
        check=at_least(400),  # `dedupe.memory.SMALLEST`
    )
