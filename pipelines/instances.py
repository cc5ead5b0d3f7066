"""Build training instances from documents and a vocabulary on any Beam runner (`corpusforge build-instances`).

    python pipelines/instances.py --input corpus/dedupe --vocab corpus/vocab --output corpus/instances [--runner ...]

Writes train/, heldout/ (Arrow streams) and manifest.json.
"""

from __future__ import annotations

from typing import Any

from corpusforge import errors
from corpusforge.beam import BuildInstances, ReadShards, WriteManifest, WriteShards
from corpusforge.beam.program import parse, parser_of, run_main
from corpusforge.recipe import override
from corpusforge.tokens.families import load_vocab


def main(arguments: list[str] | None = None) -> None:
    """Build the pipeline and run it."""
    parser = parser_of(__doc__)
    parser.add_argument("--input", required=True, help="folder or URL of a finished stage")
    parser.add_argument("--vocab", required=True, help="folder of a vocabulary")
    parser.add_argument("--output", required=True, help="folder or URL")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting of [instances]")
    own, recipe, engine = parse(parser, arguments, "instances.format", "instances.length", "instances.masking")
    if wrong := next((setting for setting in own.set if "=" not in setting), None):
        raise errors.RecipeInvalid("--set", f"'{wrong}' has no '='", "write --set KEY=VALUE")
    values = dict(setting.split("=", 1) for setting in own.set)
    section = override(recipe, {f"instances.{key}": value for key, value in values.items()}).instances
    vocab = load_vocab(own.vocab)

    def build(pipeline: Any) -> None:
        documents = pipeline | ReadShards(own.input, "documents")
        train, heldout = documents | BuildInstances(vocab, section, seed=own.seed)
        written = (
            train | "WriteTrain" >> WriteShards(own.output, "train", kind="arrow"),
            heldout | "WriteHeldout" >> WriteShards(own.output, "heldout", kind="arrow"),
        )
        _ = written | WriteManifest(own.output, "build-instances", ("train", "heldout"))

    engine.run(build)


if __name__ == "__main__":
    run_main(main)
