"""Clean rows, such as those of a BigQuery table, by rule packs and by a filter of your own, on any Beam runner.

    python pipelines/clean_rows.py --output corpus/clean [--runner NAME and its options]

The rows are those below. For a table, put `beam.io.ReadFromBigQuery` in place of `beam.Create`, as the comment shows.
Writes documents/, rejects/ and manifest.json; `corpusforge dedupe corpus/clean` continues from there.
"""

from __future__ import annotations

from typing import Any

import apache_beam as beam

from corpusforge.beam import CleanDocuments, RowsToDocuments, WriteManifest, WriteShards
from corpusforge.beam.program import parse, parser_of, run_main

FLAGS = (
    *("input.text_column", "input.url_column", "input.timestamp_column"),
    *("clean.rules", "clean.language", "clean.detector", "clean.sentences", "clean.badwords"),
)
"""Settings with a flag."""

PAGE = """The ferry leaves the island at seven, before the sun is over the hills.
Nobody speaks much on the first crossing, because the coffee is still too hot to drink.
{0} people came on board today, and each of them had a bicycle or a dog.
The captain knows them all, and he waits for the ones who are late.
"""

ROWS = [
    {"text": PAGE.format("Nine"), "url": "http://island.example/ferry", "timestamp": "2024-05-18T06:58:10Z", "hits": 9},
    {"text": PAGE.format("Two"), "url": "http://island.example/spring", "timestamp": "2024-03-02T06:58:31Z", "hits": 3},
    {"text": PAGE.format("Six") * 2, "url": "http://island.example/twice", "timestamp": None, "hits": 1},
    {"text": "Home | Ferry | Contact", "url": "http://island.example/", "timestamp": None, "hits": 40},
    {"text": None, "url": "http://island.example/map.png", "timestamp": None, "hits": 7},
]
"""As `beam.io.ReadFromBigQuery` gives rows: dicts by column; "hits" is a column that nothing here reads."""


def says_everything_once(text: str) -> str | bool:
    """A filter of your own: True keeps a document, a reason (or False) drops it."""
    lines = text.splitlines()
    return True if len(set(lines)) == len(lines) else "repeats a line"


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = parser_of(__doc__)
    parser.add_argument("--output", required=True, help="folder or URL, for example gs://bucket/clean")
    own, recipe, engine = parse(parser, arguments, *FLAGS)
    columns = {name: getattr(recipe.input, name) for name in ("text_column", "url_column", "timestamp_column")}
    cleaning = CleanDocuments(recipe.clean, filters=[says_everything_once])

    def build(pipeline: Any) -> None:
        rows = pipeline | beam.Create(ROWS)
        # of a table: beam.io.ReadFromBigQuery(query="SELECT text, url, timestamp FROM ...", use_standard_sql=True)
        documents, without_text = rows | RowsToDocuments(**columns)
        kept, dropped = documents | cleaning
        written = (
            kept | "WriteDocuments" >> WriteShards(own.output, "documents"),
            (without_text, dropped) | "WriteRejects" >> WriteShards(own.output, "rejects"),
        )
        _ = written | WriteManifest(own.output, "clean", ("documents", "rejects"))

    engine.run(build)


if __name__ == "__main__":
    run_main(main)
