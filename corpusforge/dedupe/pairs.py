"""Near repeats, unit by unit: sign a document shard, block its band hashes, compare what shares a band.

Comes in: document shards (a unit is one shard). Goes out, in a folder of their own: ``spans/`` and ``signed/`` (where
items stand, their bands and shingles), ``pairs-N/`` (what is worth comparing, from all units together), ``compared/``
(the pairs that are similar enough). An *item* is a span of sentences, or a whole document, which is then a span of one
row that covers its text.

    SignWork(unit)                 document shard -> spans/, signed/
    spans.find_losers              items of equal shingles, as exact repeats (`work.dedupe.blocks`, cuts-N/)
    bands.band_blocks(banded, ..)  all others -> (partition, block of band hashes) for the shuffle
    near.candidate_pairs(blocks)   -> (unit, pairs) -> write_pairs
    CompareWork(unit)              shingles of both sides of every pair -> compared/

Decision: shingles are stored, and looked up in mapped files by the unit that has the later item; they never travel.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import arrays, shards
from corpusforge.arrays import F32, I64, U64, Bools
from corpusforge.dedupe import spans
from corpusforge.dedupe.chain import share, slices
from corpusforge.dedupe.exact_spans import cuts_folder, read_cuts
from corpusforge.dedupe.lsh import Bands, band_hashes, bucket_pairs, count_pairs
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.normalize import whole_documents
from corpusforge.dedupe.signed_units import SIGNED, Part, UnitItems, alike, open_items, sign_spans, signed_rows
from corpusforge.dedupe.spans import SPANS, UNIT_SHIFT, by_unit, pack, unpack
from corpusforge.sentences.splitter import sentence_spans
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult

COMPARED = pa.schema(
    [
        pa.field("later", pa.uint64(), nullable=False),  # places of items
        pa.field("earlier", pa.uint64(), nullable=False),
        pa.field("similarity", pa.float32(), nullable=False),  # `alike.alike`
    ]
)
"""Pairs of items at least as similar as was asked for, ascending by the later one."""

PAIRS = pa.schema([pa.field("later", pa.uint64(), nullable=False), pa.field("earlier", pa.uint64(), nullable=False)])

COMPARED_AT_ONCE = 1 << 16
"""Pairs compared in one call."""


@dataclasses.dataclass(frozen=True)
class Signing:
    """What decides a signature and its bands, and so who is found alike. ``span_sentences`` 0: whole documents."""

    signer: Signer
    bands: Bands
    span_sentences: int
    survivor: str = "hash"
    indexed: bool = False  # documents of an index take part, and come first

    @property
    def ordered(self) -> bool:
        """Whether items have an order before their keys."""
        # Documents: survivors are settled when all are grouped; but those of an index are the earlier ones of pairs.
        return self.indexed or (self.survivor != "hash" and self.span_sentences > 0)

    @property
    def rows(self) -> int:
        """Sentence rows of an item; items closer than that in one document overlap."""
        return self.span_sentences or 1


@dataclasses.dataclass(frozen=True)
class SignWork:
    """Writes ``spans/`` and ``signed/`` of a document shard."""

    folder: str
    signing: Signing

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Sign one unit; a unit already signed is not read again."""
        tables = {"spans": (SPANS, "arrow"), "signed": (SIGNED, "arrow")}
        with UnitOutput(self.folder, unit.number, tables, shard_bytes=1 << 62) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            position = 0
            for documents in slices(unit.path):
                rows, signed = sign_documents(documents, self.signing)
                position += documents.num_rows
                items = int(np.count_nonzero(spans.column_spans(rows.column("hashes"))[0]))
                counts = {"documents_in": documents.num_rows, "items": items}
                written = {"spans": rows, "signed": signed}
                output.write(written, position=position, size=0, tallies={}, statistics=counts)
                advance(share(unit, documents.num_rows))
            return output.finish()


def sign_documents(documents: pa.RecordBatch, signing: Signing) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """SPANS and SIGNED rows of a DOCUMENTS batch."""
    if signing.span_sentences:
        found = sentence_spans(documents.column("text"))
        signed = sign_spans(found, signing.signer, signing.bands, signing.span_sentences)
        inside = np.repeat(found.bases[: documents.num_rows], np.diff(found.offsets))
        starts, stops = found.starts - inside, found.stops - inside
        rows = spans.span_rows(documents, found.offsets, starts, stops, signed.hashes, signing.survivor)
        return rows, signed_rows(found.offsets, signed.bands, None, signed.sets)
    found = whole_documents(documents.column("text"))
    sets = signing.signer.shingles(found).document_sets()
    signatures, real = signing.signer.sign(sets)
    starts, stops = np.zeros(documents.num_rows, np.int64), found.stops - found.starts
    rows = spans.span_rows(documents, found.offsets, starts, stops, sets.fingerprints(), signing.survivor)
    bands = np.where(real[:, None], band_hashes(signatures, signing.bands), np.uint64(0))
    return rows, signed_rows(found.offsets, bands, signatures, sets)


def lost(folder: str, unit: int, rounds: int, signing: Signing) -> tuple[U64, U64]:
    """Items of a unit whose shingles an earlier one has that they do not overlap, and the first such; ascending.

    Where an item overlaps the first one of its shingles it overlaps all between the two as well, and stays.
    """
    losers, survivors = read_cuts(cuts_folder(folder, rounds), unit, rounds)
    apart = ~overlapping(open_items(folder, unit), unit, losers, survivors, signing.rows)
    return losers[apart], survivors[apart]


def overlapping(items: UnitItems, unit: int, later: U64, earlier: U64, rows: int) -> Bools:
    """Which pairs share a sentence. ``items``, ``unit``: of the later ones."""
    own, other = spans.row_of(later), spans.row_of(earlier)
    close = (spans.unit_of(earlier) == unit) & (np.abs(own - other) < rows)
    found = np.flatnonzero(close)
    close[found] = items.documents(own[found]) == items.documents(other[found])
    return np.asarray(close)


def banded(folder: str, unit: int, rounds: int, signing: Signing) -> Banded:
    """The band hashes of a unit, without repeats of the same shingles, found in ``rounds`` rounds (`lost`)."""
    gone = spans.row_of(lost(folder, unit, rounds, signing)[0])
    return Banded(folder, unit, signing.bands.bands, gone, signing.ordered)


def pairs_folder(folder: str, rounds: int) -> str:
    """Where the pairs found in so many rounds go."""
    return shards.join(folder, f"pairs-{rounds}")


def write_pairs(folder: str, unit: int, round: int, packed: Iterable[bytes]) -> None:
    """Write what `near.candidate_pairs` found for one unit in one round. ``folder``: `pairs_folder`."""
    writer = shards.ShardWriter(folder, _pairs_name(unit, round), PAIRS, "arrow")
    writer.write(pa.record_batch([pa.array(column) for column in unpack_pairs(packed)], schema=PAIRS))
    writer.finish()


def read_pairs(folder: str, unit: int, rounds: int) -> tuple[U64, U64]:
    """All pairs of a unit's items and earlier ones, each once, ascending."""
    paths = [shards.join(folder, _pairs_name(unit, round)) for round in range(rounds)]
    batches = [batch for path in paths if shards.exists(path) for batch in shards.read_shard(path)]
    return unpack_pairs(pack(*(column.to_numpy() for column in batch.columns)) for batch in batches)


def _pairs_name(unit: int, round: int) -> str:
    return f"part-{unit:05d}-{round:05d}.arrow"


@dataclasses.dataclass(frozen=True)
class CompareWork:
    """Writes ``compared/`` of a unit: each repeat of the same shingles, each pair at least ``threshold`` alike.

    ``rounds``: of the comparison of signatures and of that of bands. ``best``: of every item only the pair of the most
    similar earlier one.
    """

    folder: str
    signing: Signing
    threshold: float
    rounds: tuple[int, int]
    best: bool

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Compare the pairs of one unit."""
        with UnitOutput(
            compared_folder(self.folder), unit.number, {"compared": (COMPARED, "arrow")}, 1 << 62
        ) as output:
            if output.done:
                advance(unit.bytes)
                return output.result(resumed=True)
            losers, survivors = lost(self.folder, unit.number, self.rounds[0], self.signing)
            later, earlier = read_pairs(pairs_folder(self.folder, self.rounds[1]), unit.number, self.rounds[1])
            pairs = self._alike(unit.number, later, earlier)
            columns = [
                np.concatenate([losers, pairs.later]),
                np.concatenate([survivors, pairs.earlier]),
                np.concatenate([np.ones(len(losers), np.float32), pairs.similarities]),
            ]
            order = np.lexsort((columns[1], columns[0]))
            rows = pa.record_batch([pa.array(column[order]) for column in columns], schema=COMPARED)
            counts = {"same_signature": len(losers), "pairs_compared": len(later), "pairs_alike": len(pairs.later)}
            output.write({"compared": rows}, position=unit.rows, size=0, tallies={}, statistics=counts)
            advance(unit.bytes)
            return output.finish()

    def _alike(self, unit: int, later: U64, earlier: U64) -> Pairs:
        items, width = open_items(self.folder, unit), self.signing.signer.permutations
        apart = ~overlapping(items, unit, later, earlier, self.signing.rows)
        later, earlier = later[apart], earlier[apart]
        found = [_no_pairs()]
        for chosen in _runs(earlier):
            others = open_items(self.folder, int(spans.unit_of(earlier[chosen[:1]])[0]))
            own, other = spans.row_of(later[chosen]), spans.row_of(earlier[chosen])
            similarities = alike(items, own, others, other, width)
            kept = np.flatnonzero(similarities >= np.float32(self.threshold))
            at = chosen[kept]
            found.append(Pairs(later[at], earlier[at], *others.order(other[kept]), similarities[kept]))
        pairs = Pairs._make(np.concatenate(column) for column in zip(*found, strict=True))
        return best_pairs(pairs) if self.best else pairs


def compared_folder(folder: str) -> str:
    """Where `CompareWork` writes: apart from the entries of `SignWork`, which has the same units."""
    return shards.join(folder, "pairs-compared")


def read_compared(folder: str, unit: int) -> tuple[U64, U64, arrays.F32]:
    """The columns of a unit's COMPARED rows."""
    path = shards.join(compared_folder(folder), f"compared/part-{unit:05d}-00000.arrow")
    table = pa.Table.from_batches(shards.read_shard(path), COMPARED)
    later, earlier, alike = (column.to_numpy() for column in table.columns)
    return later, earlier, alike


def _runs(earlier: U64) -> list[I64]:
    """Rows by the unit of the place, in runs of one unit and of at most `COMPARED_AT_ONCE`."""
    order = np.argsort(spans.unit_of(earlier), kind="stable")
    bounds = np.r_[0, np.flatnonzero(np.diff(spans.unit_of(earlier[order]))) + 1, len(order)]
    return [
        order[first : min(first + COMPARED_AT_ONCE, b)]
        for a, b in itertools.pairwise(bounds.tolist())
        for first in range(a, b, COMPARED_AT_ONCE)
    ]


def _no_pairs() -> Pairs:
    nothing = np.zeros(0, np.uint64)
    return Pairs(nothing, nothing, nothing.view(np.int64), nothing, nothing.view(np.int64), np.zeros(0, np.float32))


# MERGED DOCSTRING of corpusforge.work.bands:
# Band hashes of a unit on their way into the shuffle: first marks of all, then those that two items share.
#
# Comes in: what `near.SignWork` wrote of a unit. Goes out, for each partition of a round: packed marks; from
# the marks of
# all units ``shared-N/`` (which band hashes are there twice, and how many pairs they give); packed blocks of
# those alone.
#
#     mark_blocks(unit, ...)    -> (slot, four bytes a band hash)
#     near.find_shared(marks)   -> write_shared
#     band_blocks(unit, ...)    -> (partition, packed block of band hashes, keys and places)
#
# Decision: nearly all band hashes are unique, and a block of one and its pairs weighs forty times its mark. So what is
# shared is found first, with one light shuffle; then memory, and with it the number of rounds, is planned by what is
# there, not by the worst that could be. *Slots* are ranges of the hash: the partitions of all rounds, in order.

SHARED = pa.schema(
    [
        pa.field("bits", pa.binary(), nullable=False),  # near.Shared.bits
        pa.field("hashes", pa.int64(), nullable=False),
        pa.field("pairs", pa.int64(), nullable=False),
    ]
)
"""One row a slot."""

_SHUFFLE_FACTOR = 3.5
"""As for exact spans (`work.dedupe`): what Beam's local runner holds of what it shuffles."""
_SORT_BYTES = 16
"""A mark while one partition is sorted: its block, its column, what is shared."""
_BITS_A_HASH = 2
"""At one shared hash of twenty, five unique ones of two hundred pass for shared, and a bitmap is a hundredth of the
hashes."""

ITEMS_AT_ONCE = 1 << 17
"""Items whose band hashes are looked at together: 10 MiB at ten bands. One document may have millions."""


class Slots(NamedTuple):
    """Ranges of the hash: ``partitions`` of each of ``rounds``."""

    partitions: int
    rounds: int

    def of(self, hashes: U64) -> I64:
        """The slot of each hash."""
        found = (hashes >> np.uint64(32)) * np.uint64(self.partitions * self.rounds) >> np.uint64(32)
        return found.astype(np.int64)


class Banded(NamedTuple):
    """Where the band hashes of a unit lie. ``gone``: rows of items that are compared no further, ascending."""

    folder: str
    unit: int
    bands: int
    gone: I64
    ordered: bool = False

    def parts(self) -> Iterator[tuple[Part, I64, U64]]:
        """Parts of the unit with the rows of some of their items and the hashes of all bands, item after item."""
        for part in open_items(self.folder, self.unit).parts:
            real = part.hashes != 0
            a, b = np.searchsorted(self.gone, [part.first, part.first + len(real)])
            real[self.gone[a:b] - part.first] = False
            rows, bands = np.flatnonzero(real), part.bands(self.bands)
            for first in range(0, len(rows), ITEMS_AT_ONCE):
                chosen = rows[first : first + ITEMS_AT_ONCE]
                yield part, chosen, bands[chosen].ravel()


def mark_blocks(banded: Banded, slots: Slots, round: int) -> list[tuple[int, bytes]]:
    """The marks of one unit that belong to a round (from 0), as (slot, packed marks), ascending."""
    found: dict[int, list[bytes]] = {}
    for _, _, hashes in banded.parts():
        chosen, slot = _of_round(hashes, slots, round)
        marks = (hashes[chosen] & np.uint64(0xFFFFFFFF)).astype("<u4")
        for number, a, b in _slot_runs(slot):
            found.setdefault(number, []).append(marks[a:b].tobytes())
    return [(number, b"".join(found[number])) for number in sorted(found)]


def band_blocks(banded: Banded, slots: Slots, round: int, shared: SharedSlots | None = None) -> list[tuple[int, bytes]]:
    """The band hashes of one unit that belong to a round (from 0), as (partition, packed block), ascending.

    ``shared``: leave out hashes that no two items have, as far as it knows.
    """
    found: dict[int, list[tuple[npt.NDArray[Any], ...]]] = {}
    for part, rows, hashes in banded.parts():
        chosen, slot = _of_round(hashes, slots, round)
        if shared:
            passing = shared.contain(hashes[chosen])
            chosen, slot = chosen[passing], slot[passing]
        own = rows[chosen // banded.bands]
        orders, keys, _ = part.order(own)
        columns = (
            hashes[chosen],
            keys,
            spans.place(banded.unit, own + part.first),
            *([orders] if banded.ordered else []),
        )
        for number, a, b in _slot_runs(slot):
            found.setdefault(number % slots.partitions, []).append(tuple(column[a:b] for column in columns))
    many = ((number, map(np.concatenate, zip(*found[number], strict=True))) for number in sorted(found))
    return [(number, spans.pack_block(*columns)) for number, columns in many]


def _of_round(hashes: U64, slots: Slots, round: int) -> tuple[I64, I64]:
    """Which hashes belong to a round, by their slots, and these."""
    slot = slots.of(hashes)
    chosen = np.flatnonzero(slot // slots.partitions == round)
    order = np.argsort((slot[chosen] % slots.partitions).astype(np.uint16), kind="stable")
    return chosen[order], slot[chosen[order]]


def _slot_runs(slot: I64) -> list[tuple[int, int, int]]:
    """(slot, first row, row behind) of ascending slots."""
    bounds = np.flatnonzero(np.concatenate([[True], slot[1:] != slot[:-1], [True]])) if len(slot) else slot
    return [(int(slot[a]), a, b) for a, b in itertools.pairwise(bounds.tolist())]


class SharedSlots(NamedTuple):
    """What is known of shared hashes: ``shared-N/`` of all slots, ``2^width`` bits each."""

    folder: str
    slots: Slots
    width: int

    def contain(self, hashes: U64) -> Bools:
        """Which hashes two items may have. They come in the order of other slots, so what a slot holds is read once."""
        found = np.zeros(len(hashes), np.bool_)
        slot = self.slots.of(hashes)
        order = np.argsort(slot, kind="stable")
        for number, a, b in _slot_runs(slot[order]):
            bits = np.frombuffer(read_shared(self.folder, number).bits, np.uint8)
            chosen = order[a:b]
            at = (hashes[chosen] & np.uint64(0xFFFFFFFF)) >> np.uint64(32 - self.width)
            found[chosen] = bits[at >> np.uint64(3)] >> (at & np.uint64(7)).astype(np.uint8) & 1
        return found

    def counts(self) -> tuple[int, int]:
        """How many band hashes pass, and how many pairs they give at most."""
        rows = [read_shared(self.folder, number) for number in range(self.slots.partitions * self.slots.rounds)]
        return sum(row.hashes for row in rows), sum(row.pairs for row in rows)


def shared_width(hashes: int, slots: Slots) -> int:
    """Bits of the address of a bit of a slot.

    >>> shared_width(10_000_000, Slots(16, 1))
    21
    """
    a_slot = _BITS_A_HASH * hashes // (slots.partitions * slots.rounds)
    return min(32, max(8, a_slot.bit_length()))


def shared_folder(folder: str, rounds: int) -> str:
    """Where what was found in so many rounds of marks goes."""
    return shards.join(folder, f"shared-{rounds}")


def write_shared(folder: str, slot: int, found: Shared) -> None:
    """Write what `near.find_shared` found in one slot. ``folder``: `shared_folder`."""
    writer = shards.ShardWriter(folder, _name(slot), SHARED, "arrow")
    writer.write(pa.record_batch([[found.bits], [found.hashes], [found.pairs]], schema=SHARED))
    writer.finish()


def read_shared(folder: str, slot: int) -> Shared:
    """What is shared in a slot; nothing where nothing was written."""
    path = shards.join(folder, _name(slot))
    if not shards.exists(path):
        return Shared(b"", 0, 0)
    (row,) = next(iter(shards.read_shard(path))).to_pylist()
    return Shared(row["bits"], row["hashes"], row["pairs"])


def _name(slot: int) -> str:
    return f"slot-{slot:05d}.arrow"


def plan_mark_rounds(hashes: int, memory_bytes: int, partitions: int) -> int:
    """The fewest rounds for which the shuffle of the marks of all band hashes fits.

    >>> plan_mark_rounds(1_000_000, 2 << 30, 16), plan_mark_rounds(1_000_000_000, 2 << 30, 16)
    (1, 7)
    """
    a_hash = 4 * _SHUFFLE_FACTOR + _SORT_BYTES / partitions
    return max(1, -(-int(hashes * a_hash) // max(1, memory_bytes)))


def plan_pair_rounds(hashes: int, pairs: int, memory_bytes: int) -> int:
    """The fewest rounds for which the shuffle of shared band hashes and of the pairs they give fits.

    >>> plan_pair_rounds(10_000_000, 10_000_000, 2 << 30), plan_pair_rounds(100_000_000, 400_000_000, 2 << 30)
    (1, 15)
    """
    needed = (hashes * spans.BLOCK_BYTES + pairs * PAIR_BYTES) * _SHUFFLE_FACTOR
    return max(1, -(-int(needed) // max(1, memory_bytes)))


# MERGED DOCSTRING of corpusforge.dedupe.near:
# Near repeats: what is stored of a signed item, which items are compared, and which of them repeat an earlier one.
#
# Comes in: signatures of *items*, that is spans of sentences or whole documents, and packed blocks of their band hashes
# from all units. Goes out: pairs worth comparing, and of the pairs that were compared the best of each item. The one
# decision: items of the same shingles are found first, as exact repeats of their fingerprint (`minhash.Sets`; of those
# in an index, of which no more is known, of the signature), and only the first of them is compared with others; so a
# hundred thousand copies of a page cost what they weigh and no more.
#
# Order: as for exact repeats, of (document key, position in the document). An item goes where an earlier one
# is at least
# as similar as the threshold asks for and the two share no sentence. It is looked for among the items that meet it in a
# band (`lsh.bucket_pairs`). Whether the earlier one stays itself is not asked: the answer depends on the two
# items alone,
# and of a chain of items, each like the next, the first stays.


PAIR_BYTES = 16
"""Bytes of a packed pair: places of the later and of the earlier item, one column behind the other."""


class Pairs(NamedTuple):
    """Pairs of items that were compared, and what orders the earlier ones among each other."""

    later: U64  # places (dedupe.spans.place)
    earlier: U64
    orders: I64  # SPANS.order and key of the document of the earlier one, and its position there
    keys: U64
    rows: I64
    similarities: F32


class Shared(NamedTuple):
    """Which band hashes of a range two items have. ``bits``: one for each value of the first bits of a mark."""

    bits: bytes
    hashes: int  # how many have their bit set
    pairs: int  # how many pairs they give at most


def find_shared(marks: Iterable[bytes], width: int) -> Shared:
    """What is there twice. ``marks``: packed, the last 32 bits of all band hashes of a range, little-endian.

    >>> find_shared([np.array([7, 9 << 24, 7], "<u4").tobytes()], 8)
    Shared(bits=b'\\x01\\x00...', hashes=2, pairs=1)
    """
    found = np.sort(np.frombuffer(b"".join(marks), "<u4"))
    fresh = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]])) if len(found) else np.zeros(0, np.int64)
    sizes = np.diff(np.append(fresh, len(found)))
    is_set = np.zeros(1 << width, np.bool_)
    is_set[found[fresh[sizes > 1]] >> np.uint32(32 - width)] = True
    passing = np.count_nonzero(is_set[found >> np.uint32(32 - width)])
    return Shared(np.packbits(is_set, bitorder="little").tobytes(), int(passing), count_pairs(sizes))


def candidate_pairs(blocks: Iterable[bytes], *, ordered: bool = False) -> list[tuple[int, bytes]]:
    """Pairs of items that meet in a band, as packed rows for each unit of the later one (ascending).

    ``blocks``: of (band hash, document key, place), from `spans.pack_block`, of any units in any order; equal hashes
    must all be among them. ``ordered``: whether they hold orders. Which pairs of a large bucket are taken is said at
    `lsh.bucket_pairs`.
    """
    hashes, keys, places, *orders = unpack(blocks, 4 if ordered else 3)
    order = np.argsort(hashes)
    ascending = hashes[order]
    equal = ascending[1:] == ascending[:-1]
    shared = np.zeros(len(ascending), np.bool_)
    shared[1:] = equal
    shared[:-1] |= equal
    chosen = order[shared]
    first = [column[chosen].view(np.int64) for column in orders]
    pairs = bucket_pairs(hashes[chosen], (*first, keys[chosen], places[chosen]))
    return by_unit(places[chosen[pairs[:, 1]]], places[chosen[pairs[:, 0]]], UNIT_SHIFT)


def unpack_pairs(blocks: Iterable[bytes]) -> tuple[U64, U64]:
    """Pairs from any number of packed answers, each once, ascending by the later and then the earlier place."""
    later, earlier = unpack(blocks, 2)
    order = np.lexsort((earlier, later))
    later, earlier = later[order], earlier[order]
    fresh = np.ones(len(later), np.bool_)
    fresh[1:] = (later[1:] != later[:-1]) | (earlier[1:] != earlier[:-1])
    return later[fresh], earlier[fresh]


def best_pairs(pairs: Pairs) -> Pairs:
    """Of every later item the pair of the most similar earlier one, of equals the first in order; ascending.

    >>> places, rows = np.array([9, 9, 8], np.uint64), np.array([1, 2, 3])
    >>> best_pairs(Pairs(places, places, rows, places, rows, np.array([0.8, 0.9, 1], np.float32))).rows.tolist()
    [3, 2]
    """
    columns = (pairs.earlier, pairs.rows, pairs.keys, pairs.orders, -pairs.similarities, pairs.later)
    order = np.lexsort(columns)
    later = pairs.later[order]
    fresh = np.ones(len(later), np.bool_)
    fresh[1:] = later[1:] != later[:-1]
    return take_pairs(pairs, order[fresh])


def take_pairs(pairs: Pairs, chosen: I64) -> Pairs:
    """Some of the pairs."""
    return Pairs._make(column[chosen] for column in pairs)
