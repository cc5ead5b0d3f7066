"""The stage `build-instances` as graphs: encode, gather donors where the format needs them, build.

    document shards -> EncodeWork -> token ids of each shard, in a folder of their own
    token ids -> packed candidates -> CombineGlobally -> donors/            (segment-pair, sentence-pair)
    token ids + donors -> BuildWork -> train/, heldout/

What is combined are 16 bytes a document, cut to the donor budget at every step; token ids are never shuffled.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from corpusforge import shards
from corpusforge.engine import Engine
from corpusforge.instances.build import DONOR_FORMATS
from corpusforge.progress import Progress
from corpusforge.sections import Instances
from corpusforge.tokens.mask_lexicon import joiner_of
from corpusforge.units import ShardUnit
from corpusforge.work.instances import (
    SPLITS,
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
    encoding = EncodeWork(scratch, vocab, section.heldout_by, wants_words, joiner_of(vocab, section), limit)
    engine.map(encoding, units, sizes, label="encode", folder=scratch, progress=progress)
    forget_encoder()
    encoded = token_units(scratch, len(units))
    donors = ""
    if section.format in DONOR_FORMATS:
        settings = DonorSettings(seed, section.heldout, section.donor_megabytes << 20)
        donors = gather_donors(engine, encoded, scratch, vocab.size, settings, progress)
    copies = section.copies if section.masking == "duplicated" else 1
    building = BuildWork(output, settings_of(vocab, section, seed), copies, section.heldout, donors)
    engine.map(building, encoded, [u.bytes for u in encoded], label="build", folder=output, progress=progress)
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
    progress.start("donors", 0, "documents")
    try:
        if engine.is_local:
            write_donors(scratch, paths, vocab_size, settings)
        else:
            merge = MergeCandidates(settings)
            write = functools.partial(_write_donors, scratch, len(paths), vocab_size, settings)
            engine.shuffle(paths, functools.partial(_candidates, settings), write, combine=merge, folder=scratch)
    finally:
        progress.finish()
    return shards.join(scratch, "donors")


@dataclasses.dataclass(frozen=True)
class MergeCandidates:
    """Candidates of many parts as those of one; applied to a few at a time, in any order, or to none."""

    settings: DonorSettings

    def __call__(self, blocks: Iterable[bytes]) -> bytes:
        return pack_parts(merge_candidates(map(unpack_parts, blocks), self.settings))


def pack_parts(candidates: dict[str, bytes]) -> bytes:
    """The packed candidates of all parts as one block: the length of the first, then both."""
    first, second = (candidates[split] for split in SPLITS)
    return len(first).to_bytes(8, "little") + first + second


def unpack_parts(block: bytes) -> dict[str, bytes]:
    """The inverse of `pack_parts`."""
    cut = 8 + int.from_bytes(block[:8], "little")
    return dict(zip(SPLITS, (block[8:cut], block[cut:]), strict=True))


def _candidates(settings: DonorSettings, path: str) -> list[tuple[int, bytes]]:
    return [(0, pack_parts(donor_candidates(path, settings)))]


def _write_donors(
    scratch: str, units: int, vocab_size: int, settings: DonorSettings, key: int, blocks: Iterable[bytes]
) -> None:
    paths = [unit.path for unit in token_units(scratch, units)]
    write_donors(scratch, paths, vocab_size, settings, map(unpack_parts, blocks))
