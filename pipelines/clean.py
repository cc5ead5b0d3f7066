"""Clean raw pages on any Beam runner: the stage `corpusforge clean` as a pipeline to read and to change.

    python pipelines/clean.py --input 'crawl/*.warc.gz' --output corpus/clean [--runner NAME and its options]

Writes documents/, rejects/ and manifest.json; `corpusforge dedupe corpus/clean` continues from there.
"""

from __future__ import annotations

from typing import Any

from corpusforge.beam import CleanDocuments, ReadDocuments, WriteManifest, WriteShards
from corpusforge.beam.program import parse, parser_of, run_main
from corpusforge.stages.clean import cleaner_of, read_options

FLAGS = (
    *("input.format", "input.text_column"),
    *("clean.rules", "clean.language", "clean.detector", "clean.sentences", "clean.badwords", "clean.pii"),
)
"""Settings with a flag; any other setting that the functions below read can be added."""


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = parser_of(__doc__)
    parser.add_argument("--input", nargs="+", required=True, help="files, folders, globs or URLs")
    parser.add_argument("--output", required=True, help="folder or URL, for example gs://bucket/clean")
    own, recipe, engine = parse(parser, arguments, *FLAGS)
    cleaner = cleaner_of(recipe)

    def build(pipeline: Any) -> None:
        reading = ReadDocuments(own.input, read_options(recipe), format=recipe.input.format)
        documents, unreadable = pipeline | reading
        kept, dropped = documents | CleanDocuments(cleaner)
        written = (
            kept | "WriteDocuments" >> WriteShards(own.output, "documents"),
            (unreadable, dropped) | "WriteRejects" >> WriteShards(own.output, "rejects"),
        )
        _ = written | WriteManifest(own.output, "clean", ("documents", "rejects"))

    engine.run(build)


if __name__ == "__main__":
    run_main(main)
