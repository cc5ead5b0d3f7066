"""Raw pages to clean documents on any Beam runner: the stage `corpusforge clean` as a pipeline to read and to change.

    python pipelines/clean.py --input 'crawl/*.warc.gz' --output corpus/clean [--runner NAME and its options]

Writes documents/, rejects/ and manifest.json; `corpusforge dedupe corpus/clean` goes on from there.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from corpusforge import errors
from corpusforge.beam import BeamEngine, CleanDocuments, ReadDocuments, WriteManifest, WriteShards
from corpusforge.clean.cleaner import cleaner_of
from corpusforge.clean.packs import load_pack
from corpusforge.documents.read import ReadOptions


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", nargs="+", required=True, help="files, folders, globs or URLs")
    parser.add_argument("--output", required=True, help="folder or URL, for example gs://bucket/clean")
    parser.add_argument("--format", default="auto", help="warc, wet, jsonl, parquet, text or auto")
    parser.add_argument("--text-column", default="text", help="column of JSONL and Parquet that holds the text")
    parser.add_argument("--rules", default="c4-tfds-3.1", help="rule packs by commas: names or TOML files")
    parser.add_argument("--language", default="en", help="keep documents of this language; empty: do not look")
    parser.add_argument("--detector", default="langdetect", choices=("langdetect", "fast", "cascade"))
    parser.add_argument("--sentences", default="punkt", choices=("punkt", "builtin"))
    parser.add_argument("--badwords", default="fetched", help="'fetched', 'off', or a folder of word lists")
    parser.add_argument("--runner", default="local", help="a Beam runner; its options may follow")
    own, beam_options = parser.parse_known_args(arguments)
    cleaner = cleaner_of(
        *(load_pack(name) for name in own.rules.split(",")),
        language=own.language,
        detector=own.detector,
        sentences=own.sentences,
        badwords=own.badwords,
    )

    def build(pipeline: Any) -> None:
        reading = ReadDocuments(own.input, ReadOptions(text_column=own.text_column), format=own.format)
        documents, unreadable = pipeline | reading
        kept, dropped = documents | CleanDocuments(cleaner)
        written = (
            kept | "WriteDocuments" >> WriteShards(own.output, "documents"),
            (unreadable, dropped) | "WriteRejects" >> WriteShards(own.output, "rejects"),
        )
        _ = written | WriteManifest(own.output, "clean", ("documents", "rejects"))

    BeamEngine(runner=own.runner, options=tuple(beam_options)).run(build)


if __name__ == "__main__":
    try:
        main()
    except errors.CorpusForgeError as error:
        sys.exit(f"error: {error}")
