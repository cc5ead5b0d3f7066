"""The stage `build-instances` as graphs: encode, gather donors where the format needs them, build.

    document shards -> EncodeWork -> token ids of each shard, in a folder of their own
    token ids -> packed candidates -> CombineGlobally -> donors/            (segment-pair, sentence-pair)
    token ids + donors -> BuildWork -> train/, heldout/

What is combined are 16 bytes a document, cut to the donor budget at every step; token ids are never shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from corpusforge import shards
from corpusforge.beam.engine import Engine, listed, run_map
from corpusforge.beam.sdk import as_itself, beam
from corpusforge.instances.build import DONOR_FORMATS
from corpusforge.progress import Progress
from corpusforge.sections import Instances
from corpusforge.units import ShardUnit
from corpusforge.work.instances import (
    BuildWork,
    DonorSettings,
    EncodeWork,
    donor_candidates,
    forget_encoder,
    limit_of,
    merge_candidates,
    settings_of,
    token_units,
    write_donors,
)
from corpusforge.work.joins import joins_of

if TYPE_CHECKING:
    from corpusforge.tokens.vocab import Vocab

SCRATCH = "scratch"
"""Folder below the output for token ids and donors; removed when the stage is through."""


def run(
    engine: Engine,
    section: Instances,
    seed: int,
    vocab: Vocab,
    units: Sequence[ShardUnit],
    output: str,
    progress: Progress,
) -> dict[str, Any]:
    """Write ``train/`` and ``heldout/`` for every document shard; returns the statistics of encoding."""
    scratch = shards.join(output, SCRATCH)
    sizes = [unit.bytes for unit in units]
    wants_words = section.mask_unit != "token"
    limit = limit_of(section)
    encoding = EncodeWork(scratch, vocab, section.heldout_by, wants_words, joins_of(vocab, section), limit)
    run_map(engine, encoding, units, sizes, label="encode", folder=scratch, progress=progress)
    forget_encoder()
    encoded = token_units(scratch, len(units))
    donors = ""
    if section.format in DONOR_FORMATS:
        settings = DonorSettings(seed, section.heldout, section.donor_megabytes << 20)
        donors = gather_donors(engine, encoded, scratch, vocab.size, settings, progress)
    copies = section.copies if section.masking == "duplicated" else 1
    building = BuildWork(output, settings_of(vocab, section, seed), copies, section.heldout, donors)
    run_map(engine, building, encoded, [u.bytes for u in encoded], label="build", folder=output, progress=progress)
    _, _, statistics = shards.gather(shards.load_entries(scratch, len(units)))
    shards.remove(scratch)
    return dict(statistics)


def gather_donors(
    engine: Engine,
    encoded: Sequence[ShardUnit],
    scratch: str,
    vocab_size: int,
    settings: DonorSettings,
    progress: Progress,
) -> str:
    """Write the tables random segments are drawn from, out of the TOKENS shards ``encoded``; returns their folder.

    On this machine without a graph, whose set-up takes longer than the reading of a gigabyte of token ids.
    """
    paths = [unit.path for unit in encoded]

    def build(pipeline: Any) -> None:
        _ = (
            listed(pipeline, engine, scratch, paths)
            | "Candidates" >> beam.ParDo(_Candidates(settings))
            | "Smallest" >> beam.CombineGlobally(MergeCandidates(settings))
            | "WriteDonors" >> beam.ParDo(_WriteDonors(scratch, len(paths), vocab_size, settings))
        )

    progress.start("donors", 0, "documents")
    try:
        if engine.is_local:
            write_donors(scratch, paths, vocab_size, settings)
        else:
            engine.run(build)
    finally:
        progress.finish()
    return shards.join(scratch, "donors")


class MergeCandidates:
    """Candidates of many parts as those of one; Beam calls it with a few at a time, in any order, or with none."""

    def __init__(self, settings: DonorSettings) -> None:
        self.settings = settings

    def __call__(self, blocks: Iterable[dict[str, bytes]]) -> dict[str, bytes]:
        return merge_candidates(blocks, self.settings)


class _Candidates(beam.DoFn):  # type: ignore[misc, name-defined]
    """Path of a TOKENS shard -> its packed candidates by part."""

    def __init__(self, settings: DonorSettings) -> None:
        self.settings = settings

    def process(self, path: str) -> Iterator[dict[str, bytes]]:
        with as_itself():
            yield donor_candidates(path, self.settings)


class _WriteDonors(beam.DoFn):  # type: ignore[misc, name-defined]
    """The candidates of the corpus -> its donors, on the shared folder."""

    def __init__(self, scratch: str, units: int, vocab_size: int, settings: DonorSettings) -> None:
        self.scratch, self.units, self.vocab_size, self.settings = scratch, units, vocab_size, settings

    def process(self, merged: dict[str, bytes]) -> None:
        with as_itself():
            paths = [unit.path for unit in token_units(self.scratch, self.units)]
            write_donors(self.scratch, paths, self.vocab_size, self.settings, [merged])
