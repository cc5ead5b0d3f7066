"""The stage build-instances, unit by unit: documents to token ids, donors, and instances.

Comes in: document shards. Goes out, below the stage's folder:

    encoded/tokens/             EncodeWork      one TOKENS shard a document shard, and entries of their own
    donors/train.arrow, ...     write_donors    for formats with random segments (instances.donors)
    train/, heldout/            BuildWork       INSTANCES, Arrow IPC stream, uncompressed

Decision: a unit's number is that of its document shard all the way, so any of the three can be done again alone.
Held-out documents are chosen by their key or URL (`splits`); their masks are stored and frozen (epoch 0) whatever the
masking of the training part, and random segments never cross between the two parts.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import schemas, shards
from corpusforge.arrays import offsets_of, slices
from corpusforge.instances import donors as donor_tables
from corpusforge.instances.build import DONOR_FORMATS, PAIR_FORMATS, Builder, BuildSettings
from corpusforge.instances.donors import Candidates, Donors, Taken
from corpusforge.instances.long_sentences import SentenceLimit
from corpusforge.instances.masking import MaskSettings, Specials
from corpusforge.instances.source import read_source
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult
from corpusforge.work.splits import schema_with_draws, split_tokens, with_draws

if TYPE_CHECKING:
    from corpusforge.tokens.encode import Encoder
    from corpusforge.tokens.mask_lexicon import WordJoiner
    from corpusforge.tokens.vocab import Vocab

SPLITS = ("train", "heldout")

TEXT_BYTES = 4 << 20
"""Text encoded at once."""

TOKENS = 1 << 21
"""Tokens planned at once; instances are made of them in smaller runs (instances.build)."""

SHARD_BYTES = 128 << 20
"""Bytes of token ids read, times copies, for one shard of instances: 100 to 150 MB on disk."""


@dataclasses.dataclass(frozen=True)
class EncodeWork:
    """Encodes a document shard. ``output``: the folder that gets ``tokens/`` and ``entries/``.

    One TOKENS shard a document shard: its text is bounded already, and a crash costs seconds. ``heldout_by``: "id", or
    "url" to note the draws of URLs; ``word_starts``: note them too; ``joins``: what makes one unit of several words;
    ``limit``: what becomes of long sentences.
    """

    output: str
    vocab: Vocab
    heldout_by: str = "id"
    word_starts: bool = False
    joins: WordJoiner | None = None
    limit: SentenceLimit | None = None

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Encode one unit; one that is done is not read again. ``advance`` in bytes of the document shard."""
        by_url = self.heldout_by == "url"
        schema = schemas.tokens_schema(self.vocab.size, word_starts=self.word_starts)
        tables = {"tokens": (schema_with_draws(schema) if by_url else schema, "arrow")}
        with UnitOutput(self.output, unit.number, tables, shard_bytes=1 << 62) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            encoder, position = _encoder(self.vocab, self.word_starts, self.joins), 0
            for documents, size in _by_text(unit.path):
                encoded = encoder.encode_counted(documents)
                tokens, statistics = encoded.tokens, encoded.statistics
                if self.limit:
                    tokens, counted = self.limit(tokens)
                    statistics = {**statistics, **counted}
                tokens = with_draws(tokens, documents) if by_url else tokens
                position += documents.num_rows
                output.write({"tokens": tokens}, position=position, size=size, tallies={}, statistics=statistics)
                advance(_bytes(unit, position - documents.num_rows, position))
            return output.finish()


@functools.lru_cache(maxsize=1)
def _encoder(vocab: Vocab, word_starts: bool, joins: WordJoiner | None) -> Encoder:
    """The encoder of this process: words that one shard taught it are known in the next; ids do not depend on it."""
    from corpusforge.tokens.encode import Encoder

    return Encoder(vocab, word_starts=word_starts, joiner=joins)


def forget_encoder() -> None:
    """Free the words this process knows, up to `tokens.encode.CACHE_BYTES`, once nothing is encoded any more."""
    _encoder.cache_clear()


def token_units(folder: str, units: int | None = None) -> list[ShardUnit]:
    """The units of `BuildWork` from what `EncodeWork` wrote into ``folder``, with the document shards' numbers.

    ``units``: how many document shards there are; what is numbered from there on is of an earlier, other cut.
    """
    found = []
    for entry in shards.load_entries(folder, units):
        shard = entry.tables["tokens"]
        found.append(ShardUnit(entry.unit, shards.join(folder, shard.name), shard.rows, shard.bytes))
    return found


@dataclasses.dataclass(frozen=True)
class DonorSettings:
    """``budget``: bytes of token ids; the held-out part gets its share of it."""

    seed: int
    heldout: float
    budget: int

    def budget_of(self, split: str) -> int:
        """Bytes for one part; a megabyte at least, for held-out parts of small corpora."""
        share = self.heldout if split == "heldout" else 1 - self.heldout
        return max(int(self.budget * share), 1 << 20)


def donor_candidates(path: str, settings: DonorSettings) -> dict[str, bytes]:
    """Which documents of a TOKENS shard may become donors, packed, by part; at most what the budget holds."""
    kept = {split: Candidates.unpack(b"") for split in SPLITS}
    for tokens in shards.read_shard(path):
        for split, part in split_tokens(tokens, settings.seed, settings.heldout).items():
            budget = settings.budget_of(split)
            more = donor_tables.candidates_of(read_source(part), settings.seed, budget)
            kept[split] = donor_tables.keep_smallest([kept[split], more], budget)
    return {split: candidates.pack() for split, candidates in kept.items()}


def merge_candidates(blocks: Iterable[dict[str, bytes]], settings: DonorSettings) -> dict[str, bytes]:
    """Candidates of many shards as those of one; associative and commutative."""
    kept = {split: Candidates.unpack(b"") for split in SPLITS}
    for block in blocks:
        for split in SPLITS:
            both = [kept[split], Candidates.unpack(block[split])]
            kept[split] = donor_tables.keep_smallest(both, settings.budget_of(split))
    return {split: candidates.pack() for split, candidates in kept.items()}


def write_donors(
    output: str,
    paths: Sequence[str],
    vocab_size: int,
    settings: DonorSettings,
    candidates: Iterable[dict[str, bytes]] | None = None,
) -> str:
    """Write ``donors/train.arrow`` and ``donors/heldout.arrow`` below ``output`` and return their folder.

    ``paths``: all TOKENS shards; ``candidates``: what `donor_candidates` found in each (looked for here if None).
    Does nothing where both are there. Memory: about twice the budget.
    """
    folder = shards.join(output, "donors")
    if all(shards.exists(shards.join(folder, f"{split}.arrow")) for split in SPLITS):
        return folder
    found = (donor_candidates(path, settings) for path in paths) if candidates is None else candidates
    merged = merge_candidates(found, settings)
    limits = {split: Candidates.unpack(merged[split]).limit(settings.budget_of(split)) for split in SPLITS}
    taken: dict[str, list[Taken]] = {split: [] for split in SPLITS}
    for path in paths:
        for tokens in shards.read_shard(path):
            for split, part in split_tokens(tokens, settings.seed, settings.heldout).items():
                taken[split].append(donor_tables.take_donors(read_source(part), settings.seed, limits[split]))
    for split in SPLITS:
        table = donor_tables.donors_table(taken[split], vocab_size)
        writer = shards.ShardWriter(folder, f"{split}.arrow", table.schema, "arrow")
        writer.write(table)
        writer.finish()
    return folder


def load_donors(folder: str, split: str) -> Donors:
    """The donors of a part, memory-mapped. A held-out part of fewer than two documents borrows from training."""
    own = Donors(next(shards.read_shard(shards.join(folder, f"{split}.arrow"))))
    if split == "heldout" and len(own) < 2:
        other = load_donors(folder, "train")
        return other if len(other) else own
    return own


@dataclasses.dataclass(frozen=True)
class BuildWork:
    """Builds the instances of a TOKENS shard. ``output``: the folder that gets ``train/``, ``heldout/``, ``entries/``.

    ``settings.stored_masks`` is for the training part; ``copies``: 1 unless duplicated; ``heldout``: share of
    documents; ``donors``: folder of `write_donors`, "" for formats without.
    """

    output: str
    settings: BuildSettings
    copies: int = 1
    heldout: float = 0.0
    donors: str = ""
    shard_bytes: int = SHARD_BYTES

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Build one unit behind what its finished shards cover. ``advance`` in bytes of the TOKENS shard."""
        builders = self._builders()
        tables = {split: (builder.schema, "arrow") for split, builder in builders.items()}
        with UnitOutput(self.output, unit.number, tables, self.shard_bytes) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            behind, covered = 0, output.position
            for tokens in _by_tokens(unit.path):
                behind += tokens.num_rows
                if behind > covered:
                    self._build(tokens, builders, output)
                    size = tokens.column("ids").nbytes * self.copies
                    output.write({}, position=behind, size=size, tallies={}, statistics={})
                advance(_bytes(unit, behind - tokens.num_rows, behind))
            return output.finish()

    def _build(self, tokens: pa.RecordBatch, builders: dict[str, Builder], output: UnitOutput) -> None:
        """Write the instances of some documents; their position counts once all of them are written."""
        for split, part in split_tokens(tokens, self.settings.seed, self.heldout).items():
            for built in builders[split].copies(part, self.copies if split == "train" else 1):
                found, at = {split: built.statistics}, output.position
                output.write({split: built.instances}, position=at, size=0, tallies={}, statistics=found)

    def _builders(self) -> dict[str, Builder]:
        settings = {"train": self.settings, "heldout": dataclasses.replace(self.settings, stored_masks=True)}
        if self.settings.format not in DONOR_FORMATS:
            return {split: Builder(settings[split]) for split in SPLITS}
        return {split: Builder(settings[split], load_donors(self.donors, split)) for split in SPLITS}


def limit_of(section: Any) -> SentenceLimit:
    """What the recipe's section [instances] says about sentences that are too long for an instance."""
    return SentenceLimit(section.length - (3 if section.format in PAIR_FORMATS else 2), section.long_sentences)


def settings_of(vocab: Vocab, section: Any, seed: int) -> BuildSettings:
    """Build settings from a vocabulary and the values of the recipe's section [instances] (by attribute)."""
    return BuildSettings(
        specials=Specials(vocab.size, **dataclasses.asdict(vocab.specials), unused=vocab.unused),
        format=section.format,
        length=section.length,
        stored_masks=section.masking != "dynamic",
        copies_redraw=section.copies_redraw,
        pair_sampling=section.pair_sampling,
        short_probability=section.short_probability,
        mask=MaskSettings(
            section.mask_rate, section.mask_share, section.random_share, section.max_predictions, section.mask_unit
        ),
        seed=seed,
    )


def _by_text(path: str) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The documents of a shard in runs of about `TEXT_BYTES`, with the bytes of their text."""
    for batch in shards.read_shard(path):
        offsets = offsets_of(pc.binary_length(batch.column("text")).to_numpy())
        for first, behind in slices(offsets, TEXT_BYTES):
            yield batch.slice(first, behind - first), int(offsets[behind] - offsets[first])


def _by_tokens(path: str) -> Iterator[pa.RecordBatch]:
    """The documents of a TOKENS shard in runs of about `TOKENS`."""
    for batch in shards.read_shard(path):
        offsets = offsets_of(pc.list_value_length(batch.column("ids")).to_numpy())
        for first, behind in slices(offsets, TOKENS):
            yield batch.slice(first, behind - first)


def _bytes(unit: ShardUnit, first: int, behind: int) -> int:
    """Bytes of the unit that these of its rows stand for; all rows stand for all bytes."""
    return unit.bytes * behind // unit.rows - unit.bytes * first // unit.rows
