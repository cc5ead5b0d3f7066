"""Learn a vocabulary: count words on any Beam runner, and learn from them on this machine (`corpusforge train-vocab`).

    python pipelines/vocab.py --input corpus/dedupe --output corpus/vocab [--runner NAME and its options]

The counts stay in counted/words/ with a manifest; learning reads nothing else and takes seconds. With --counts-only
the program ends when the job is submitted or done, as a template launcher needs it.
"""

from __future__ import annotations

from typing import Any

from corpusforge import shards
from corpusforge.beam import CountWords, ReadShards, WriteManifest, WriteShards
from corpusforge.beam.program import parse, parser_of, run_main
from corpusforge.tokens.counts import read_blocks
from corpusforge.tokens.families import learn, segmentation_of, select

FLAGS = ("vocab.model", "vocab.size", "vocab.unused", "vocab.lowercase", "vocab.min_count", "vocab.max_words")
"""Settings with a flag."""


def main(arguments: list[str] | None = None) -> None:
    """Count, then learn."""
    parser = parser_of(__doc__)
    parser.add_argument("--input", required=True, help="folder or URL of a finished stage")
    parser.add_argument("--output", required=True, help="folder or URL; transformers loads it")
    parser.add_argument("--counts-only", action="store_true", help="do not learn")
    own, recipe, engine = parse(parser, arguments, *FLAGS)
    counted = shards.join(own.output, "counted")

    def build(pipeline: Any) -> None:
        words = pipeline | ReadShards(own.input, "documents") | CountWords(segmentation_of(recipe.vocab))
        _ = words | WriteShards(counted, "words", kind="arrow") | WriteManifest(counted, "count-words", ("words",))

    engine.run(build)
    if own.counts_only:
        return
    blocks = read_blocks(shards.Manifest.load(counted).paths(counted, "words"))
    counts, _ = select(blocks, recipe.vocab)
    vocab = learn(counts, recipe.vocab).vocab
    for name, data in vocab.save_files().items():
        shards.write_bytes(shards.join(own.output, name), data)


if __name__ == "__main__":
    run_main(main)
