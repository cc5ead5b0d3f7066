"""The stage build-instances: encode documents, gather negatives where the format needs them, build instances.

The graph is `run`; its work units are `EncodeWork` and `BuildWork`. What they write below the stage's folder:

    scratch/tokens/                     EncodeWork         one TOKENS shard a document shard, and entries of their own
    scratch/negatives/train.arrow, ...  write_negatives    for formats with random segments (`negatives`)
    train/, heldout/                    BuildWork          INSTANCES, Arrow IPC stream, uncompressed

A unit keeps the number of its document shard throughout, so each of the three can be repeated alone. Held-out
documents are chosen by their key or URL (`splits`); their masks are stored and frozen (epoch 0) whatever the masking of
the training part. Token ids are never shuffled.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import schemas, shards
from corpusforge.arrays import offsets_of, slices
from corpusforge.engine import Engine
from corpusforge.instances.builder import Builder, BuildSettings, Built
from corpusforge.instances.formats import find_format
from corpusforge.instances.mask_units import find_unit
from corpusforge.instances.masking import MaskSettings, Specials
from corpusforge.instances.negatives import (
    MergeCandidates,
    Negatives,
    NegativeSettings,
    load_negatives,
    produce_candidates,
    write_negatives,
)
from corpusforge.instances.source import SentenceLimit
from corpusforge.instances.splits import SPLITS, schema_with_draws, split_tokens, with_draws
from corpusforge.progress import Progress
from corpusforge.sections import Instances
from corpusforge.tokens.mask_lexicon import joiner_of
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult, Written, write_unit

if TYPE_CHECKING:
    from corpusforge.tokens.encode import Encoder
    from corpusforge.tokens.mask_lexicon import WordJoiner
    from corpusforge.tokens.vocab import Vocab

SCRATCH = "scratch"
"""Folder below the output for token ids and negatives; removed when the stage is complete."""

TEXT_BYTES = 4 << 20
"""Text encoded at once."""

TOKENS = 1 << 21
"""Tokens planned at once; instances are made of them in smaller runs (`builder`)."""

SHARD_BYTES = 128 << 20
"""Bytes of token ids read, times copies, for one shard of instances: 100 to 150 MB on disk."""


def run(
    engine: Engine,
    section: Instances,
    seed: int,
    vocab: Vocab,
    units: Sequence[ShardUnit],
    output: str,
    progress: Progress,
) -> dict[str, Any]:
    """Write ``train/`` and ``heldout/`` for every document shard; returns the statistics of encoding.

    document shards -> EncodeWork -> token ids of each shard, in a folder of their own
    token ids -> packed candidates -> the smallest of all -> negatives/        (formats that need them)
    token ids and negatives -> BuildWork -> train/, heldout/
    """
    scratch = shards.join(output, SCRATCH)
    sizes = [unit.bytes for unit in units]
    needs_words = find_unit(section.mask_unit).needs_words
    joins, limit = joiner_of(vocab, section), limit_of(section)
    encoding = EncodeWork(scratch, vocab, section.heldout_by, needs_words, joins, limit)
    engine.map(encoding, units, sizes, label="encode", folder=scratch, progress=progress)
    forget_encoder()
    encoded = token_units(scratch, len(units))
    negatives = ""
    if find_format(section.format).needs_negatives:
        settings = NegativeSettings.of(section, seed)
        negatives = gather_negatives(engine, encoded, scratch, vocab.size, settings, progress)
    building = BuildWork(output, settings_of(vocab, section, seed), copies_of(section), section.heldout, negatives)
    engine.map(building, encoded, [u.bytes for u in encoded], label="build", folder=output, progress=progress)
    _, _, statistics = shards.gather(shards.load_entries(scratch, len(units)))
    shards.remove(scratch)
    return dict(statistics)


def gather_negatives(
    engine: Engine,
    encoded: Sequence[ShardUnit],
    scratch: str,
    vocab_size: int,
    settings: NegativeSettings,
    progress: Progress,
) -> str:
    """Write the tables random segments are drawn from, out of the TOKENS shards ``encoded``; returns their folder.

    16 bytes per document are shuffled, cut to the budget at every step. The local engine needs no shuffle: setting one
    up takes longer than reading a gigabyte of token ids.
    """
    paths = [unit.path for unit in encoded]
    progress.start("negatives", 0, "documents")
    try:
        if engine.is_local:
            write_negatives(scratch, paths, vocab_size, settings)
        else:
            produce = functools.partial(produce_candidates, settings)
            write = functools.partial(_write_negatives, scratch, len(paths), vocab_size, settings)
            engine.shuffle(paths, produce, write, combine=MergeCandidates(settings), folder=scratch)
    finally:
        progress.finish()
    return shards.join(scratch, "negatives")


def _write_negatives(
    scratch: str, units: int, vocab_size: int, settings: NegativeSettings, key: int, blocks: Iterable[bytes]
) -> None:
    paths = [unit.path for unit in token_units(scratch, units)]
    write_negatives(scratch, paths, vocab_size, settings, blocks)


@dataclasses.dataclass(frozen=True)
class EncodeWork:
    """Encodes a document shard. ``output``: the folder that gets ``tokens/`` and ``entries/``.

    One TOKENS shard a document shard: its text is bounded already, and a crash costs seconds. ``heldout_by``: "id", or
    "url" to store the draws of URLs; ``word_starts``: whether they are stored; ``joins``: makes one word of several;
    ``limit``: for long sentences.
    """

    output: str
    vocab: Vocab
    heldout_by: str = "id"
    word_starts: bool = False
    joins: WordJoiner | None = None
    limit: SentenceLimit | None = None

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Encode one unit; a finished one is not read again. ``advance`` in bytes of the document shard."""
        by_url = self.heldout_by == "url"
        schema = schemas.tokens_schema(self.vocab.size, word_starts=self.word_starts)
        tables = {"tokens": (schema_with_draws(schema) if by_url else schema, "arrow")}
        return write_unit(self.output, unit, tables, lambda _: self._batches(unit.path), advance)

    def _batches(self, path: str) -> Iterator[Written]:
        encoder = _encoder(self.vocab, self.word_starts, self.joins)
        for documents in _by_text(path):
            tokens, statistics = encode_documents(encoder, documents, self.heldout_by, self.limit)
            yield Written(documents.num_rows, {"tokens": tokens}, statistics)


def encode_documents(
    encoder: Encoder, documents: pa.RecordBatch, heldout_by: str, limit: SentenceLimit | None
) -> tuple[pa.RecordBatch, dict[str, int]]:
    """TOKENS of a DOCUMENTS batch, and statistics; the rest as in `EncodeWork`."""
    encoded = encoder.encode_counted(documents)
    tokens, statistics = encoded.tokens, encoded.statistics
    if limit:
        tokens, counted = limit(tokens)
        statistics = {**statistics, **counted}
    return with_draws(tokens, documents) if heldout_by == "url" else tokens, statistics


@functools.lru_cache(maxsize=1)
def _encoder(vocab: Vocab, word_starts: bool, joins: WordJoiner | None) -> Encoder:
    """The encoder of this process. It keeps the words it has seen from shard to shard; ids do not depend on that."""
    from corpusforge.tokens.encode import Encoder

    return Encoder(vocab, word_starts=word_starts, joiner=joins)


def forget_encoder() -> None:
    """Free the words that the encoder keeps, up to `tokens.encode.CACHE_BYTES`, after the last shard."""
    _encoder.cache_clear()


def token_units(folder: str, units: int | None = None) -> list[ShardUnit]:
    """The units of `BuildWork` from what `EncodeWork` wrote into ``folder``, with the document shards' numbers.

    ``units``: the number of document shards; entries beyond it are left from an earlier run over more of them.
    """
    entries = [(entry.unit, entry.tables["tokens"]) for entry in shards.load_entries(folder, units)]
    return [ShardUnit(unit, shards.join(folder, shard.name), shard.rows, shard.bytes) for unit, shard in entries]


@dataclasses.dataclass(frozen=True)
class BuildWork:
    """Builds the instances of a TOKENS shard. ``output``: the folder that gets ``train/``, ``heldout/``, ``entries/``.

    ``settings.stored_masks`` is for the training part; ``copies``: 1 unless duplicated; ``heldout``: share of
    documents; ``negatives``: folder of `write_negatives`, "" for formats without.
    """

    output: str
    settings: BuildSettings
    copies: int = 1
    heldout: float = 0.0
    negatives: str = ""
    shard_bytes: int = SHARD_BYTES

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Build what the finished shards of a unit do not cover. ``advance`` in bytes of the TOKENS shard."""
        builders = builders_of(
            self.settings, functools.partial(load_negatives, self.negatives) if self.negatives else None
        )
        tables = {split: (builder.schema, "arrow") for split, builder in builders.items()}
        with UnitOutput(self.output, unit.number, tables, self.shard_bytes) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            stop, covered = 0, output.position
            for tokens in _by_tokens(unit.path):
                stop += tokens.num_rows
                if stop > covered:
                    self._build(tokens, builders, output)
                    size = tokens.column("ids").nbytes * self.copies
                    output.write({}, position=stop, size=size, tallies={}, statistics={})
                advance(_bytes(unit, stop - tokens.num_rows, stop))
            return output.finish()

    def _build(self, tokens: pa.RecordBatch, builders: dict[str, Builder], output: UnitOutput) -> None:
        """Write the instances of a batch of documents; the position advances once all of them are written."""
        for split, built in build_parts(tokens, builders, self.copies, self.heldout):
            statistics, at = {split: built.statistics}, output.position
            output.write({split: built.instances}, position=at, size=0, tallies={}, statistics=statistics)


def builders_of(settings: BuildSettings, negatives: Callable[[str], Negatives] | None) -> dict[str, Builder]:
    """A builder for each part. ``settings``: of the training part; ``negatives(part)``: None for formats without."""
    every = {"train": settings, "heldout": dataclasses.replace(settings, stored_masks=True)}
    return {split: Builder(every[split], negatives(split) if negatives else None) for split in SPLITS}


def build_parts(
    tokens: pa.RecordBatch, builders: dict[str, Builder], copies: int, heldout: float
) -> Iterator[tuple[str, Built]]:
    """The instances of a TOKENS batch, with their part; ``copies``: of the training part."""
    seed = builders["train"].settings.seed
    for split, part in split_tokens(tokens, seed, heldout).items():
        for built in builders[split].copies(part, copies if split == "train" else 1):
            yield split, built


def copies_of(section: Instances) -> int:
    """The number of copies of the training part."""
    return section.copies if section.masking == "duplicated" else 1


def limit_of(section: Instances) -> SentenceLimit:
    """The limit of sentences: what fits into an instance beside its special tokens."""
    return SentenceLimit(section.length - (3 if find_format(section.format).is_pair else 2), section.long_sentences)


def settings_of(vocab: Vocab, section: Instances, seed: int) -> BuildSettings:
    """Build settings from a vocabulary and the section [instances]."""
    return BuildSettings(
        specials=Specials.of(vocab),
        format=section.format,
        length=section.length,
        stored_masks=section.masking != "dynamic",
        copies_redraw=section.copies_redraw,
        pair_sampling=section.pair_sampling,
        short_probability=section.short_probability,
        mask=MaskSettings.of(vars(section)),
        seed=seed,
    )


def _by_text(path: str) -> Iterator[pa.RecordBatch]:
    """The documents of a shard in runs of about `TEXT_BYTES`."""
    for batch in shards.read_shard(path):
        offsets = offsets_of(pc.binary_length(batch.column("text")).to_numpy())
        for first, stop in slices(offsets, TEXT_BYTES):
            yield batch.slice(first, stop - first)


def _by_tokens(path: str) -> Iterator[pa.RecordBatch]:
    """The documents of a TOKENS shard in runs of about `TOKENS`."""
    for batch in shards.read_shard(path):
        offsets = offsets_of(pc.list_value_length(batch.column("ids")).to_numpy())
        for first, stop in slices(offsets, TOKENS):
            yield batch.slice(first, stop - first)


def _bytes(unit: ShardUnit, first: int, stop: int) -> int:
    """The bytes of the unit's rows from ``first`` to ``stop``, in proportion."""
    return unit.bytes * stop // unit.rows - unit.bytes * first // unit.rows
