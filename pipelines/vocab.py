"""A vocabulary from documents: words counted on any Beam runner, learned from here (`corpusforge train-vocab`).

    python pipelines/vocab.py --input corpus/dedupe --output corpus/vocab [--runner NAME and its options]

The counts stay in words/ with a manifest; learning needs them alone and takes seconds. With --counts-only the program
ends when the job is submitted or done, as a template launcher needs it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from corpusforge import errors, sections, shards
from corpusforge.beam import BeamEngine, CountWords, ReadShards, WriteManifest, WriteShards
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.counts import read_blocks, select_counts
from corpusforge.tokens.wordpiece import learn


def main(arguments: list[str] | None = None) -> None:
    """Count, then learn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="folder or URL of a finished stage")
    parser.add_argument("--output", required=True, help="folder or URL; transformers loads it")
    parser.add_argument("--size", type=int, default=30_528, help="entries, a multiple of 64")
    parser.add_argument("--unused", type=int, default=128, help="[unusedN] slots inside the size")
    parser.add_argument("--cased", action="store_true", help="keep case and accents")
    parser.add_argument("--min-count", type=int, default=2, help="words seen less often are not learned from")
    parser.add_argument("--max-words", type=int, default=4_000_000, help="distinct words learned from at most")
    parser.add_argument("--counts-only", action="store_true", help="do not learn")
    parser.add_argument("--runner", default="local", help="a Beam runner; its options may follow")
    own, beam_options = parser.parse_known_args(arguments)
    counted = shards.join(own.output, "counted")

    def build(pipeline: Any) -> None:
        words = pipeline | ReadShards(own.input, "documents") | CountWords(BertSegmentation(not own.cased))
        _ = words | WriteShards(counted, "words", kind="arrow") | WriteManifest(counted, "count-words", ("words",))

    BeamEngine(runner=own.runner, options=tuple(beam_options)).run(build)
    if own.counts_only:
        return
    blocks = read_blocks(shards.Manifest.load(counted).paths(counted, "words"))
    counts, _ = select_counts(blocks, min_count=own.min_count, max_words=own.max_words)
    vocab = learn(counts, sections.Vocab(size=own.size, unused=own.unused, lowercase=not own.cased)).vocab
    for name, data in vocab.save_files().items():
        shards.write_bytes(shards.join(own.output, name), data)


if __name__ == "__main__":
    try:
        main()
    except errors.CorpusForgeError as error:
        sys.exit(f"error: {error}")
