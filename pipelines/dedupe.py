"""Documents without repeated three-sentence spans on any Beam runner: the stage `corpusforge dedupe` as a pipeline.

    python pipelines/dedupe.py --input corpus/clean --output corpus/dedupe [--runner NAME and its options]

Reads a folder with a manifest; writes documents/, repeats/ (what was cut, and where its copy stands) and manifest.json.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from corpusforge import errors
from corpusforge.beam import BeamEngine, DedupeSpans, ReadShards, WriteManifest, WriteShards


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="folder or URL of a finished stage")
    parser.add_argument("--output", required=True, help="folder or URL")
    parser.add_argument("--span-sentences", type=int, default=3, help="sentences of a span")
    parser.add_argument("--min-sentences", type=int, default=3, help="fewer left: a document that lost text is dropped")
    parser.add_argument("--fold-numbers", action="store_true", help="treat all digits as equal")
    parser.add_argument("--runner", default="local", help="a Beam runner; its options may follow")
    own, beam_options = parser.parse_known_args(arguments)

    def build(pipeline: Any) -> None:
        dedupe = DedupeSpans(
            span_sentences=own.span_sentences, min_sentences=own.min_sentences, fold_numbers=own.fold_numbers
        )
        kept, repeats = pipeline | ReadShards(own.input, "documents") | dedupe
        written = (
            kept | "WriteDocuments" >> WriteShards(own.output, "documents"),
            repeats | "WriteRepeats" >> WriteShards(own.output, "repeats"),
        )
        _ = written | WriteManifest(own.output, "dedupe", ("documents", "repeats"))

    BeamEngine(runner=own.runner, options=tuple(beam_options)).run(build)


if __name__ == "__main__":
    try:
        main()
    except errors.CorpusForgeError as error:
        sys.exit(f"error: {error}")
