"""Cut duplicate three-sentence spans on any Beam runner: the stage `corpusforge dedupe` as a pipeline.

    python pipelines/dedupe.py --input corpus/clean --output corpus/dedupe [--runner NAME and its options]

Reads a folder with a manifest; writes documents/, repeats/ (what was cut, and where its copy is) and manifest.json.
"""

from __future__ import annotations

from typing import Any

from corpusforge.beam import DedupeSpans, ReadShards, WriteManifest, WriteShards
from corpusforge.beam.program import parse, parser_of, run_main

FLAGS = ("dedupe.span_sentences", "dedupe.min_sentences", "dedupe.min_words", "dedupe.fold_numbers")
"""Settings with a flag."""


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = parser_of(__doc__)
    parser.add_argument("--input", required=True, help="folder or URL of a finished stage")
    parser.add_argument("--output", required=True, help="folder or URL")
    own, recipe, engine = parse(parser, arguments, *FLAGS)
    values = {key.removeprefix("dedupe."): getattr(recipe.dedupe, key.removeprefix("dedupe.")) for key in FLAGS}

    def build(pipeline: Any) -> None:
        kept, repeats = pipeline | ReadShards(own.input, "documents") | DedupeSpans(**values)
        written = (
            kept | "WriteDocuments" >> WriteShards(own.output, "documents"),
            repeats | "WriteRepeats" >> WriteShards(own.output, "repeats"),
        )
        _ = written | WriteManifest(own.output, "dedupe", ("documents", "repeats"))

    engine.run(build)


if __name__ == "__main__":
    run_main(main)
