"""Training instances from documents and a vocabulary on any Beam runner (`corpusforge build-instances`).

    python pipelines/instances.py --input corpus/dedupe --vocab corpus/vocab --output corpus/instances [--runner ...]

Writes train/, heldout/ (Arrow streams) and manifest.json.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from corpusforge import errors, recipe
from corpusforge.beam import BeamEngine, BuildInstances, ReadShards, WriteManifest, WriteShards
from corpusforge.tokens.families import load_vocab


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="folder or URL of a finished stage")
    parser.add_argument("--vocab", required=True, help="folder of a vocabulary")
    parser.add_argument("--output", required=True, help="folder or URL")
    parser.add_argument("--format", default="doc-sentences", help="or full-sentences, segment-pair, sentence-pair, sop")
    parser.add_argument("--length", type=int, default=128, help="longest instance, in tokens")
    parser.add_argument("--masking", default="dynamic", help="static, duplicated or dynamic")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any value of [instances]")
    parser.add_argument("--runner", default="local", help="a Beam runner; its options may follow")
    own, beam_options = parser.parse_known_args(arguments)
    values = {"format": own.format, "length": own.length, "masking": own.masking}
    values |= dict(setting.split("=", 1) for setting in own.set)
    section = recipe.build({"instances": values}, where="--set").instances
    vocab = load_vocab(own.vocab)

    def build(pipeline: Any) -> None:
        documents = pipeline | ReadShards(own.input, "documents")
        train, heldout = documents | BuildInstances(vocab, section, seed=own.seed)
        written = (
            train | "WriteTrain" >> WriteShards(own.output, "train", kind="arrow"),
            heldout | "WriteHeldout" >> WriteShards(own.output, "heldout", kind="arrow"),
        )
        _ = written | WriteManifest(own.output, "build-instances", ("train", "heldout"))

    BeamEngine(runner=own.runner, options=tuple(beam_options)).run(build)


if __name__ == "__main__":
    try:
        main()
    except errors.CorpusForgeError as error:
        sys.exit(f"error: {error}")
