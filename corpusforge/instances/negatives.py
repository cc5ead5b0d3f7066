"""Negatives: the documents that random second segments are taken from, the same for every worker.

They are one table of whole documents, a uniform sample of the corpus that fits a budget, which every worker maps into
memory. The sample is the documents with the smallest hash of their key, as many as fit. So it depends on the corpus
alone, and candidates of shards can be merged in any order. google-research/bert draws from the documents of one input
file, so that its pairs depend on how files were cut.

A document whose hash is small is read twice: once as `candidates` (its hash and size), once into the table. Training
and held-out part have tables of their own, so random segments never cross between them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusforge import schemas, seeds, shards
from corpusforge.arrays import I64, U64, Bools, move, offsets_of, ranges
from corpusforge.instances.masking import Ids
from corpusforge.instances.source import Source, list_column, read_source
from corpusforge.instances.splits import SPLITS, split_tokens
from corpusforge.sections import Instances

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def negatives_schema(vocab_size: int, *, word_starts: bool = False) -> pa.Schema:
    """NEGATIVES: one row per document, ordered by key; a single record batch, so that its columns are flat arrays."""
    fields = [
        pa.field("key", pa.uint64(), nullable=False),  # seeds.document_keys, ascending
        pa.field("ids", pa.large_list(schemas.token_type(vocab_size)), nullable=False),
        # Where each sentence ends, counted over the ids of the whole table.
        pa.field("ends", pa.large_list(pa.int64()), nullable=False),
    ]
    if word_starts:
        fields += [pa.field("word_starts", pa.large_list(pa.bool_()), nullable=False)]
    return pa.schema(fields)


class Candidates(NamedTuple):
    """Documents that may become negatives, by ascending hash: ``hash`` and ``size`` (bytes of ids), ``[n]`` each."""

    hash: U64
    size: I64

    def pack(self) -> bytes:
        """Little-endian bytes: all hashes, then all sizes."""
        return self.hash.astype("<u8").tobytes() + self.size.astype("<i8").tobytes()

    @classmethod
    def unpack(cls, block: bytes) -> Candidates:
        """The inverse of `pack`."""
        half = len(block) // 2
        hashes, sizes = np.frombuffer(block[:half], "<u8"), np.frombuffer(block[half:], "<i8")
        return cls(hashes.astype(np.uint64), sizes.astype(np.int64))

    def fitting(self, budget: int) -> int:
        """How many fit, in order; at least two, so that every document has one other than itself."""
        return max(2, int(np.searchsorted(np.cumsum(self.size), budget, "right")))

    def limit(self, budget: int) -> int:
        """Documents are negatives where their hash is below this."""
        kept = self.hash[: self.fitting(budget)]
        return int(kept[-1]) + 1 if len(kept) else 0


def document_hashes(documents: U64, seed: int) -> U64:
    """The hashes of documents: those with the smallest become negatives."""
    return seeds.words(seed, "donors", documents)


def keep_smallest(parts: Iterable[Candidates], budget: int) -> Candidates:
    """The candidates of several parts together, cut after the first that does not fit into ``budget`` bytes.

    Associative and commutative. The one that does not fit stays, because without it a larger hash of another part
    would seem to fit.

    >>> part = Candidates(np.array([3, 1, 4, 2], np.uint64), np.array([10, 10, 10, 10]))
    >>> keep_smallest([part], 25).hash.tolist(), keep_smallest([part], 25).limit(25)
    ([1, 2, 3], 3)
    """
    gathered = list(parts)
    hashes = np.concatenate([p.hash for p in gathered] or [np.zeros(0, np.uint64)])
    sizes = np.concatenate([p.size for p in gathered] or [np.zeros(0, np.int64)])
    order = np.argsort(hashes, kind="stable")
    together = Candidates(hashes[order], sizes[order])
    kept = together.fitting(budget) + 1
    return Candidates(together.hash[:kept], together.size[:kept])


def candidates_of(source: Source, seed: int, budget: int) -> Candidates:
    """The candidates among the documents of a source, those without tokens left out."""
    tokens = np.diff(source.token_offsets)
    rows = np.flatnonzero(tokens)
    own = Candidates(document_hashes(source.keys[rows], seed), tokens[rows] * source.ids.dtype.itemsize)
    return keep_smallest([own], budget)


class Taken(NamedTuple):
    """Whole documents: ``keys`` ``[n]``, their ``ids`` flat, ``tokens`` ``[n]``, sentence ``lengths`` flat,
    ``sentences`` ``[n]``; ``word_starts`` flat, None where they are not known."""

    keys: U64
    ids: Ids
    tokens: I64
    lengths: I64
    sentences: I64
    word_starts: Bools | None = None


def take_negatives(source: Source, seed: int, limit: int) -> Taken:
    """The negatives among the documents of a source: those with tokens and a hash below ``limit``."""
    tokens, sentences = np.diff(source.token_offsets), np.diff(source.offsets)
    rows = np.flatnonzero((tokens > 0) & (document_hashes(source.keys, seed) <= np.uint64(max(limit - 1, 0))))
    rows = rows if limit else rows[:0]
    lengths = source.ends - source.starts
    starts = source.token_offsets
    # A loop over documents with a reason: copying slices needs no index for each token.
    own = [slice(starts[i], starts[i + 1]) for i in rows.tolist()]
    ids = np.concatenate([source.ids[s] for s in own] or [source.ids[:0]])
    flags = source.word_starts
    return Taken(
        source.keys[rows],
        ids,
        tokens[rows],
        lengths[ranges(source.offsets[rows], sentences[rows])],
        sentences[rows],
        None if flags is None else np.concatenate([flags[s] for s in own] or [flags[:0]]),
    )


def negatives_table(parts: list[Taken], vocab_size: int) -> pa.RecordBatch:
    """One NEGATIVES batch of all documents taken, ordered by key. ``parts`` is emptied on the way, to save memory."""
    nothing = np.zeros(0, np.int64)
    keys = np.concatenate([p.keys for p in parts] or [nothing.view(np.uint64)])
    tokens = np.concatenate([p.tokens for p in parts] or [nothing])
    sentences = np.concatenate([p.sentences for p in parts] or [nothing])
    order = np.argsort(keys, kind="stable")
    token_offsets, sentence_offsets = offsets_of(tokens[order]), offsets_of(sentences[order])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    ids = np.empty(token_offsets[-1], np.uint16 if vocab_size <= 1 << 16 else np.uint32)
    ends = np.empty(sentence_offsets[-1], np.int64)
    flags = np.ones(token_offsets[-1] if any(p.word_starts is not None for p in parts) else 0, bool)
    first = 0
    while parts:
        part = parts.pop(0)
        places = place[first : first + len(part.keys)]
        first += len(part.keys)
        move(part.ids, part.tokens, ids, token_offsets[places])
        move(part.lengths, part.sentences, ends, sentence_offsets[places])
        if part.word_starts is not None:
            move(part.word_starts, part.tokens, flags, token_offsets[places])
    np.cumsum(ends, out=ends)
    arrays = [
        pa.array(keys[order]),
        pa.LargeListArray.from_arrays(pa.array(token_offsets), pa.array(ids)),
        pa.LargeListArray.from_arrays(pa.array(sentence_offsets), pa.array(ends)),
    ]
    if len(flags):
        arrays += [pa.LargeListArray.from_arrays(pa.array(token_offsets), pa.array(flags))]
    return pa.RecordBatch.from_arrays(arrays, schema=negatives_schema(vocab_size, word_starts=len(flags) > 0))


class Negatives:
    """The table of negatives, ready to draw from; its arrays stay where the batch is (a memory-mapped file)."""

    def __init__(self, table: pa.RecordBatch) -> None:
        self.keys: U64 = table.column("key").to_numpy()
        self.ids: Ids
        self.ids, _ = list_column(table.column("ids"))
        self.ends: I64
        self.ends, self.offsets = list_column(table.column("ends"))
        self.word_starts: Bools | None = None
        if "word_starts" in table.schema.names:  # a byte a token in memory: half of what its id takes
            self.word_starts = list_column(table.column("word_starts"))[0]

    def __len__(self) -> int:
        return len(self.keys)

    def row_of(self, positions: I64) -> I64:
        """The row of the document each position in ``ids`` lies in."""
        last = self.ends[self.offsets[1:] - 1]
        return np.searchsorted(last, positions, "right")

    def draw(self, keys: U64, documents: U64, wanted: I64, seed: int) -> tuple[I64, I64]:
        """A random run of sentences for each key: a document that is not its own, a sentence of it, ``wanted`` tokens.

        ``documents``: the key of the document each is drawn for. Returns where the runs begin in ``ids`` and their
        tokens, ``[n]`` each: whole sentences until ``wanted`` is reached or the document ends, at least one.
        If there is only one document, all runs are from it, even those drawn for it. Raises ValueError if there are
        no negatives.
        """
        if not len(self.keys):
            if len(keys):
                raise ValueError("no negatives: the table of their documents is empty")
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        words = seeds.words(seed, "pair-donor", keys)
        row = np.minimum(np.searchsorted(self.keys, documents), len(self.keys) - 1)
        own = (self.keys[row] == documents) & (len(self.keys) > 1)
        drawn = (((words >> _HALF) * (len(self.keys) - own).astype(np.uint64)) >> _HALF).view(np.int64)
        drawn = drawn + (own & (drawn >= row))
        first, last = self.offsets[drawn], self.offsets[drawn + 1]
        sentence = first + (((words & _LOW) * (last - first).view(np.uint64)) >> _HALF).view(np.int64)
        begin = np.where(sentence > 0, self.ends[sentence - 1], 0)
        stop = np.searchsorted(self.ends, begin + np.maximum(wanted, 1), "left")
        return begin, self.ends[np.minimum(stop, last - 1)] - begin


def no_negatives(vocab_size: int) -> Negatives:
    """An empty table, for formats that need none."""
    return Negatives(negatives_table([], vocab_size))


@dataclasses.dataclass(frozen=True)
class NegativeSettings:
    """``budget``: bytes of token ids; the held-out part gets its share of it."""

    seed: int
    heldout: float
    budget: int

    @classmethod
    def of(cls, section: Instances, seed: int) -> NegativeSettings:
        """Those of the section [instances]."""
        return cls(seed, section.heldout, section.negatives_megabytes << 20)

    def budget_of(self, split: str) -> int:
        """Bytes for one part; a megabyte at least, for held-out parts of small corpora."""
        share = self.heldout if split == "heldout" else 1 - self.heldout
        return max(int(self.budget * share), 1 << 20)


def pack_candidates(batches: Iterable[pa.RecordBatch], settings: NegativeSettings) -> bytes:
    """The candidates of both parts in TOKENS batches, packed; no more than the budget holds."""
    kept = {split: Candidates.unpack(b"") for split in SPLITS}
    for tokens in batches:
        for split, part in split_tokens(tokens, settings.seed, settings.heldout).items():
            budget = settings.budget_of(split)
            more = candidates_of(read_source(part), settings.seed, budget)
            kept[split] = keep_smallest([kept[split], more], budget)
    return _pack_parts(kept)


@dataclasses.dataclass(frozen=True)
class MergeCandidates:
    """Merges packed candidates of many shards into those of one; associative and commutative, and works on none."""

    settings: NegativeSettings

    def __call__(self, blocks: Iterable[bytes]) -> bytes:
        kept = {split: Candidates.unpack(b"") for split in SPLITS}
        for block in blocks:
            for split, more in _unpack_parts(block).items():
                kept[split] = keep_smallest([kept[split], more], self.settings.budget_of(split))
        return _pack_parts(kept)


def _pack_parts(candidates: dict[str, Candidates]) -> bytes:
    """Bytes: the length of the first part, then both parts."""
    first, second = (candidates[split].pack() for split in SPLITS)
    return len(first).to_bytes(8, "little") + first + second


def _unpack_parts(block: bytes) -> dict[str, Candidates]:
    cut = 8 + int.from_bytes(block[:8], "little")
    return {split: Candidates.unpack(part) for split, part in zip(SPLITS, (block[8:cut], block[cut:]), strict=True)}


def take_parts(
    batches: Iterable[pa.RecordBatch], settings: NegativeSettings, candidates: bytes
) -> Iterator[tuple[str, Taken]]:
    """The negatives in TOKENS batches, with their part. ``candidates``: packed, of the whole corpus."""
    limits = {split: kept.limit(settings.budget_of(split)) for split, kept in _unpack_parts(candidates).items()}
    for tokens in batches:
        for split, part in split_tokens(tokens, settings.seed, settings.heldout).items():
            taken = take_negatives(read_source(part), settings.seed, limits[split])
            if len(taken.keys):
                yield split, taken


def negatives_tables(taken: Iterable[tuple[str, Taken]], vocab_size: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The NEGATIVES of both parts, one after the other."""
    parts: dict[str, list[Taken]] = {split: [] for split in SPLITS}
    for split, more in taken:
        parts[split].append(more)
    for split in SPLITS:
        yield split, negatives_table(parts[split], vocab_size)


def write_negatives(
    output: str,
    paths: Sequence[str],
    vocab_size: int,
    settings: NegativeSettings,
    candidates: Iterable[bytes] | None = None,
) -> str:
    """Write ``negatives/train.arrow`` and ``negatives/heldout.arrow`` below ``output`` and return their folder.

    ``paths``: all TOKENS shards; ``candidates``: packed, of all shards (read here if None).
    Does nothing where both are there. Memory: about twice the budget.
    """
    folder = shards.join(output, "negatives")
    if all(shards.exists(shards.join(folder, f"{split}.arrow")) for split in SPLITS):
        return folder
    blocks = (pack_candidates(shards.read_shard(p), settings) for p in paths) if candidates is None else candidates
    merged = MergeCandidates(settings)(blocks)
    batches = (tokens for path in paths for tokens in shards.read_shard(path))
    for split, table in negatives_tables(take_parts(batches, settings, merged), vocab_size):
        writer = shards.ShardWriter(folder, f"{split}.arrow", table.schema, "arrow")
        writer.write(table)
        writer.finish()
    return folder


def load_negatives(folder: str, split: str) -> Negatives:
    """The negatives of a part, memory-mapped. A held-out part of fewer than two documents borrows from training."""
    return negatives_of(lambda part: next(shards.read_shard(shards.join(folder, f"{part}.arrow"))), split)


def negatives_of(table: Callable[[str], pa.RecordBatch], split: str) -> Negatives:
    """The negatives of a part, from the tables of both."""
    own = Negatives(table(split))
    if split == "heldout" and len(own) < 2:
        other = Negatives(table("train"))
        return other if len(other) else own
    return own


def produce_candidates(settings: NegativeSettings, path: str) -> list[tuple[int, bytes]]:
    """The candidates of a TOKENS shard as a block; all shards have the same key."""
    return [(0, pack_candidates(shards.read_shard(path), settings))]
