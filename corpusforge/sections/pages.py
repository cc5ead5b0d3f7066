"""Settings of what is read: raw pages, how to read them, and which stay by where they are from.

`Input` and `Urls` decide which documents exist at all; what becomes of their text is in `corpusforge.sections.corpus`.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge.sections.fields import OneOf, at_least, between, option


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
