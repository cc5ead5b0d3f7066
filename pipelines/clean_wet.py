"""Clean WET files by rule packs and by a filter of your own, on any Beam runner.

    python pipelines/clean_wet.py --input 'crawl/*.warc.wet.gz' --output corpus/clean [--runner NAME and its options]

The filter is one of a whole batch, on a column that the packs do not read. Writes documents/, rejects/ and
manifest.json; `corpusforge dedupe corpus/clean` continues from there.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.beam import CleanDocuments, ReadDocuments, WriteManifest, WriteShards
from corpusforge.beam.program import parse, parser_of, run_main
from corpusforge.stages.clean import read_options

FLAGS = ("clean.rules", "clean.language", "clean.detector", "clean.sentences", "clean.badwords")
"""Settings with a flag."""

MIRRORS = r"^https?://(mirror|cache)[0-9]*\."


def is_original(documents: pa.RecordBatch) -> Any:
    """A filter of your own: from a batch of documents to a mask of those to keep, with no Python for each."""
    return pc.invert(pc.fill_null(pc.match_substring_regex(documents["url"], MIRRORS), False))


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = parser_of(__doc__)
    parser.add_argument("--input", nargs="+", required=True, help="WET files, folders, globs or URLs")
    parser.add_argument("--output", required=True, help="folder or URL, for example gs://bucket/clean")
    own, recipe, engine = parse(parser, arguments, *FLAGS)
    cleaning = CleanDocuments(recipe.clean, filters=[is_original])

    def build(pipeline: Any) -> None:
        documents, unreadable = pipeline | ReadDocuments(own.input, read_options(recipe), format="wet")
        kept, dropped = documents | cleaning
        written = (
            kept | "WriteDocuments" >> WriteShards(own.output, "documents"),
            (unreadable, dropped) | "WriteRejects" >> WriteShards(own.output, "rejects"),
        )
        _ = written | WriteManifest(own.output, "clean", ("documents", "rejects"))

    engine.run(build)


if __name__ == "__main__":
    run_main(main)
