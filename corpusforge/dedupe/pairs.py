"""Find similar items (spans or documents) of all units: what `near_spans` and `documents` share.

    spans/ -> blocks of fingerprints -> group -> find_duplicates -> group by unit -> duplicates-N/   (`exact_spans`)
    signed/ without these duplicates -> marks of band hashes -> group by slot -> find_shared -> shared-N/
    signed/, shared-N/ -> blocks of band hashes -> group -> candidate_pairs -> group by unit -> pairs-N/
    signed/, pairs-N/ -> CompareWork -> compared/

Items of equal shingles are found first, as exact duplicates of their fingerprint (`minhash.Sets`; for documents in an
index, of their signature), and only the first of them is compared with others. So a hundred thousand copies of a page
cost little more than reading them.

Nearly all other band hashes are unique, and the block of a band hash and its pairs weigh forty times its mark of four
bytes. So a light shuffle identifies shared hashes first; then memory, and with it the number of rounds, is planned
from counts, not for the worst case. Runners other than the local one hold or spill what they shuffle and skip this
step. Shingles never travel: they are looked up in mapped files by the unit that has the later item.

Items are ordered as exact duplicates are: by order and key of the document, then by position. Two items are a pair if
they meet in a band (`lsh.bucket_pairs`), share no sentence, and are at least as similar as the threshold.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusforge import shards
from corpusforge.arrays import F32, I64, U64, Bools, run_starts
from corpusforge.dedupe import memory, spans
from corpusforge.dedupe.exact_spans import PARTITIONS, compare_hashes, read_duplicates
from corpusforge.dedupe.job import Job, read_rounds, write_round
from corpusforge.dedupe.lsh import Shared, candidate_pairs, find_shared, unpack_pairs
from corpusforge.dedupe.signed_units import Part, Signing, UnitItems, forget, mapped_bytes, open_items, similarities
from corpusforge.units import Advance, ShardUnit, UnitResult, Written, write_unit

SHARED = pa.schema(
    [
        pa.field("bits", pa.binary(), nullable=False),  # lsh.Shared.bits
        pa.field("hashes", pa.int64(), nullable=False),
        pa.field("pairs", pa.int64(), nullable=False),
    ]
)
"""One row per slot."""

PAIRS = pa.schema([pa.field("later", pa.uint64(), nullable=False), pa.field("earlier", pa.uint64(), nullable=False)])
"""Places of items that meet in a band."""

COMPARED = PAIRS.append(pa.field("similarity", pa.float32(), nullable=False))
"""Pairs of items at least as similar as the threshold, ascending by the later one."""

ITEMS_AT_ONCE = 1 << 17
"""Items whose band hashes are read together: 10 MiB at ten bands. One document may have millions."""
PAIRS_AT_ONCE = 1 << 16
"""Pairs compared in one call."""

_BITS_PER_HASH = 2
"""With one hash in twenty shared, one unique hash in forty passes for shared, and the bitmap takes a hundredth of the
space of the packed hashes."""


def find_similar(job: Job, signing: Signing, units: Sequence[ShardUnit], items: int, *, best: bool) -> list[UnitResult]:
    """Write ``compared/`` of all units, which are signed. ``items``: their number; ``best``: as in `CompareWork`."""
    memory_bytes, rounds = 0, 1
    if job.engine.is_local:
        memory_bytes = max(job.memory_bytes // 4, job.memory_bytes - mapped_bytes(job.scratch))
        rounds = memory.exact_rounds(items, memory_bytes, PARTITIONS)
    memory.give_back()
    compare_hashes(job, units, rounds, ordered=signing.ordered)
    pairing = Pairing(job.scratch, signing, rounds, Slots(PARTITIONS, 1))
    if job.engine.is_local:
        hashes = items * signing.bands.bands
        slots = Slots(PARTITIONS, memory.mark_rounds(hashes, memory_bytes, PARTITIONS))
        shared = mark_shared(job, units, dataclasses.replace(pairing, slots=slots), shared_width(hashes, slots))
        slots = Slots(PARTITIONS, memory.pair_rounds(*shared.counts(), memory_bytes))
        pairing = dataclasses.replace(pairing, slots=slots, shared=shared)
    pair_items(job, units, pairing)
    forget()  # what this process mapped counts as its memory
    work = CompareWork(job.scratch, signing, job.settings.threshold, rounds, pairing.slots.rounds, best)
    return job.map(work, label="compare pairs", folder=compared_folder(job.scratch), units=units)


def with_pair_counts(results: Sequence[UnitResult], compared: Sequence[UnitResult]) -> list[UnitResult]:
    """The results of a method's units with the counts of `find_similar`; those of an index, the last, are left out."""
    both = zip(results, compared, strict=False)
    return [dataclasses.replace(row, statistics={**row.statistics, **pairs.statistics}) for row, pairs in both]


# Items of equal shingles.


def equal_items(folder: str, unit: int, rounds: int, signing: Signing) -> tuple[U64, U64]:
    """Items of a unit with the shingles of an earlier item that they do not overlap, and the first such; ascending.

    An item that overlaps the first one of its shingles overlaps all between the two as well, and is not listed.
    """
    later, first = read_duplicates(folder, unit, rounds)
    apart = ~overlapping(open_items(folder, unit), unit, later, first, signing.rows)
    return later[apart], first[apart]


def overlapping(items: UnitItems, unit: int, later: U64, earlier: U64, rows: int) -> Bools:
    """Which pairs share a sentence. ``items``, ``unit``: of the later ones."""
    own, other = spans.row_of(later), spans.row_of(earlier)
    close = (spans.unit_of(earlier) == unit) & (np.abs(own - other) < rows)
    chosen = np.flatnonzero(close)
    close[chosen] = items.documents(own[chosen]) == items.documents(other[chosen])
    return np.asarray(close)


# Band hashes.


class Slots(NamedTuple):
    """Ranges of the hash: the ``partitions`` of all ``rounds``, in order."""

    partitions: int
    rounds: int

    def of(self, hashes: U64) -> I64:
        """The slot of each hash."""
        return spans.partition_of(hashes, self.partitions * self.rounds)

    def of_round(self, hashes: U64, round: int) -> tuple[I64, I64]:
        """The rows of the hashes that belong to a round, and their slots."""
        slots = self.of(hashes)
        chosen = np.flatnonzero(slots // self.partitions == round)
        return chosen, slots[chosen]


@dataclasses.dataclass(frozen=True)
class Pairing:
    """How the band hashes of units are shuffled. ``exact_rounds``: of the comparison of fingerprints.

    ``shared``: leave out hashes that no two items have, as far as it knows.
    """

    folder: str
    signing: Signing
    exact_rounds: int
    slots: Slots
    shared: SharedSlots | None = None

    def parts(self, unit: int) -> Iterator[tuple[Part, I64, U64]]:
        """Parts of a unit with rows of their items and the hashes of all bands, item after item.

        Items with the shingles of an earlier one are left out.
        """
        equal = spans.row_of(equal_items(self.folder, unit, self.exact_rounds, self.signing)[0])
        for part in open_items(self.folder, unit).parts:
            real = part.hashes != 0
            a, b = np.searchsorted(equal, [part.first, part.first + len(real)])
            real[equal[a:b] - part.first] = False
            rows, bands = np.flatnonzero(real), part.matrix("bands", self.signing.bands.bands)
            for first in range(0, len(rows), ITEMS_AT_ONCE):
                chosen = rows[first : first + ITEMS_AT_ONCE]
                yield part, chosen, bands[chosen].ravel()


def mark_shared(job: Job, units: Sequence[ShardUnit], pairing: Pairing, width: int) -> SharedSlots:
    """Find the band hashes that occur more than once, round by round. ``width``: `shared_width`."""
    folder = shards.join(pairing.folder, f"shared-{pairing.slots.rounds}")

    def run_round(number: int) -> None:
        job.engine.shuffle(
            [unit.number for unit in units],
            functools.partial(mark_blocks, pairing, number),
            functools.partial(_write_shared, folder, width),
            folder=job.scratch,
        )

    job.run_rounds("mark", folder, pairing.slots.rounds, run_round)
    return SharedSlots(folder, pairing.slots, width)


def mark_blocks(pairing: Pairing, round: int, unit: int) -> list[tuple[int, bytes]]:
    """The marks of one unit that belong to a round (from 0): (slot, the last 32 bits of its band hashes), ascending."""
    blocks: dict[int, list[bytes]] = {}
    for _, _, hashes in pairing.parts(unit):
        chosen, slots = pairing.slots.of_round(hashes, round)
        for slot, block in spans.pack_groups(slots, hashes[chosen]):
            marks = (np.frombuffer(block, "<u8") & np.uint64(0xFFFFFFFF)).astype("<u4")
            blocks.setdefault(slot, []).append(marks.tobytes())
    return [(slot, b"".join(blocks[slot])) for slot in sorted(blocks)]


def _write_shared(folder: str, width: int, slot: int, marks: Iterable[bytes]) -> None:
    write_shared(folder, slot, find_shared(marks, width))


def write_shared(folder: str, slot: int, shared: Shared) -> None:
    """Write what is shared in one slot."""
    writer = shards.ShardWriter(folder, _slot_name(slot), SHARED, "arrow")
    writer.write(pa.record_batch([[shared.bits], [shared.hashes], [shared.pairs]], schema=SHARED))
    writer.finish()


def read_shared(folder: str, slot: int) -> Shared:
    """What is shared in a slot; nothing where nothing was written."""
    path = shards.join(folder, _slot_name(slot))
    if not shards.exists(path):
        return Shared(b"", 0, 0)
    (row,) = next(iter(shards.read_shard(path))).to_pylist()
    return Shared(row["bits"], row["hashes"], row["pairs"])


def _slot_name(slot: int) -> str:
    return f"slot-{slot:05d}.arrow"


class SharedSlots(NamedTuple):
    """What is known of shared hashes: the folder ``shared-N/`` of all slots, ``2^width`` bits each."""

    folder: str
    slots: Slots
    width: int

    def contain(self, hashes: U64) -> Bools:
        """Which hashes two items may have. Each slot is read once, whatever the order of the hashes."""
        may_be_shared = np.zeros(len(hashes), np.bool_)
        slots = self.slots.of(hashes)
        order = np.argsort(slots, kind="stable")
        bounds = np.append(np.flatnonzero(run_starts(slots[order])), len(order)).tolist()
        for chosen in (order[a:b] for a, b in itertools.pairwise(bounds)):
            bits = np.frombuffer(read_shared(self.folder, int(slots[chosen[0]])).bits, np.uint8)
            at = (hashes[chosen] & np.uint64(0xFFFFFFFF)) >> np.uint64(32 - self.width)
            may_be_shared[chosen] = bits[at >> np.uint64(3)] >> (at & np.uint64(7)).astype(np.uint8) & 1
        return may_be_shared

    def counts(self) -> tuple[int, int]:
        """The number of band hashes that pass, and the most pairs that they give."""
        rows = [read_shared(self.folder, number) for number in range(self.slots.partitions * self.slots.rounds)]
        return sum(row.hashes for row in rows), sum(row.pairs for row in rows)


def shared_width(hashes: int, slots: Slots) -> int:
    """Bits of the address of a bit of a slot.

    >>> shared_width(10_000_000, Slots(16, 1))
    21
    """
    bits = _BITS_PER_HASH * hashes // (slots.partitions * slots.rounds)
    return min(32, max(8, bits.bit_length()))


def pair_items(job: Job, units: Sequence[ShardUnit], pairing: Pairing) -> None:
    """Write ``pairs-N/``: the items that meet in a band, round by round."""
    folder = _pairs_folder(pairing.folder, pairing.slots.rounds)

    def run_round(number: int) -> None:
        job.engine.shuffle(
            [unit.number for unit in units],
            functools.partial(band_blocks, pairing, number),
            functools.partial(_candidate_pairs, pairing.signing.ordered),
            functools.partial(_write_pairs, folder, number),
            folder=job.scratch,
        )

    job.run_rounds("pair", folder, pairing.slots.rounds, run_round)


def band_blocks(pairing: Pairing, round: int, unit: int) -> list[tuple[int, bytes]]:
    """The band hashes of one unit that belong to a round (from 0), as (partition, packed block), ascending."""
    blocks: dict[int, list[list[U64]]] = {}
    width = 4 if pairing.signing.ordered else 3
    for part, rows, hashes in pairing.parts(unit):
        chosen, slots = pairing.slots.of_round(hashes, round)
        if pairing.shared:
            passing = pairing.shared.contain(hashes[chosen])
            chosen, slots = chosen[passing], slots[passing]
        own = rows[chosen // pairing.signing.bands.bands]
        orders, keys, _ = part.order(own)
        columns = (hashes[chosen], keys, spans.place(unit, own + part.first), orders)[:width]
        for partition, block in spans.pack_groups(slots % pairing.slots.partitions, *columns):
            blocks.setdefault(partition, []).append(spans.unpack([block], width))
    return [
        (partition, spans.pack(*map(np.concatenate, zip(*blocks[partition], strict=True))))
        for partition in sorted(blocks)
    ]


def _candidate_pairs(ordered: bool, partition: int, blocks: Iterable[bytes]) -> list[tuple[int, bytes]]:
    return candidate_pairs(blocks, ordered=ordered)


def _pairs_folder(folder: str, rounds: int) -> str:
    return shards.join(folder, f"pairs-{rounds}")


def _write_pairs(folder: str, round: int, unit: int, packed: Iterable[bytes]) -> None:
    write_round(folder, unit, round, unpack_pairs(packed), PAIRS)


def read_pairs(folder: str, unit: int, rounds: int) -> tuple[U64, U64]:
    """All pairs of a unit's items and earlier ones, each once, ascending."""
    return unpack_pairs(read_rounds(_pairs_folder(folder, rounds), unit, rounds))


# Compare.


class Pairs(NamedTuple):
    """Pairs of items that were compared, and the order of the earlier ones."""

    later: U64  # places (spans.place)
    earlier: U64
    orders: I64  # SPANS.order and key of the document of the earlier one, and its position there
    keys: U64
    rows: I64
    similarities: F32


@dataclasses.dataclass(frozen=True)
class CompareWork:
    """Writes ``compared/`` of a unit: items of equal shingles, and pairs at least as similar as ``threshold``.

    ``exact_rounds``, ``pair_rounds``: of the two comparisons. ``best``: of every item only the pair of the most similar
    earlier one.
    """

    folder: str
    signing: Signing
    threshold: float
    exact_rounds: int
    pair_rounds: int
    best: bool

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        """Compare the pairs of one unit."""
        tables = {"compared": (COMPARED, "arrow")}
        return write_unit(compared_folder(self.folder), unit, tables, lambda _: map(self._compared, [unit]), advance)

    def _compared(self, unit: ShardUnit) -> Written:
        equal, first = equal_items(self.folder, unit.number, self.exact_rounds, self.signing)
        later, earlier = read_pairs(self.folder, unit.number, self.pair_rounds)
        pairs = self._similar(unit.number, later, earlier)
        columns = [
            np.concatenate([equal, pairs.later]),
            np.concatenate([first, pairs.earlier]),
            np.concatenate([np.ones(len(equal), np.float32), pairs.similarities]),
        ]
        order = np.lexsort((columns[1], columns[0]))
        rows = pa.record_batch([pa.array(column[order]) for column in columns], schema=COMPARED)
        counts = {"same_signature": len(equal), "pairs_compared": len(later), "pairs_alike": len(pairs.later)}
        return Written(unit.rows, {"compared": rows}, counts)

    def _similar(self, unit: int, later: U64, earlier: U64) -> Pairs:
        items, width = open_items(self.folder, unit), self.signing.signer.permutations
        apart = ~overlapping(items, unit, later, earlier, self.signing.rows)
        later, earlier = later[apart], earlier[apart]
        nothing = np.zeros(0, np.uint64)
        similar = [
            Pairs(nothing, nothing, nothing.view(np.int64), nothing, nothing.view(np.int64), nothing.astype("f4"))
        ]
        for chosen in _runs_of_units(earlier):
            others = open_items(self.folder, int(spans.unit_of(earlier[chosen[:1]])[0]))
            own, other = spans.row_of(later[chosen]), spans.row_of(earlier[chosen])
            values = similarities(items, own, others, other, width)
            kept = np.flatnonzero(values >= np.float32(self.threshold))
            at = chosen[kept]
            similar.append(Pairs(later[at], earlier[at], *others.order(other[kept]), values[kept]))
        pairs = Pairs._make(np.concatenate(column) for column in zip(*similar, strict=True))
        return best_pairs(pairs) if self.best else pairs


def best_pairs(pairs: Pairs) -> Pairs:
    """Of every later item the pair of the most similar earlier one, of equals the first in order; ascending.

    >>> places, rows = np.array([9, 9, 8], np.uint64), np.array([1, 2, 3])
    >>> best_pairs(Pairs(places, places, rows, places, rows, np.array([0.8, 0.9, 1], np.float32))).rows.tolist()
    [3, 2]
    """
    columns = (pairs.earlier, pairs.rows, pairs.keys, pairs.orders, -pairs.similarities, pairs.later)
    order = np.lexsort(columns)
    chosen = order[run_starts(pairs.later[order])]
    return Pairs._make(column[chosen] for column in pairs)


def compared_folder(folder: str) -> str:
    """Where `CompareWork` writes: apart from the entries of `signed_units.SignWork`, which has the same units."""
    return shards.join(folder, "pairs-compared")


def read_compared(folder: str, unit: int) -> tuple[U64, U64, F32]:
    """The columns of a unit's COMPARED rows."""
    path = shards.join(compared_folder(folder), f"compared/part-{unit:05d}-00000.arrow")
    table = pa.Table.from_batches(shards.read_shard(path), COMPARED)
    later, earlier, values = (column.to_numpy() for column in table.columns)
    return later, earlier, values


def _runs_of_units(places: U64) -> list[I64]:
    """Rows by the unit of the place, in runs of one unit and of at most `PAIRS_AT_ONCE`."""
    order = np.argsort(spans.unit_of(places), kind="stable")
    bounds = np.append(np.flatnonzero(run_starts(spans.unit_of(places[order]))), len(order)).tolist()
    return [
        order[first : min(first + PAIRS_AT_ONCE, b)]
        for a, b in itertools.pairwise(bounds)
        for first in range(a, b, PAIRS_AT_ONCE)
    ]
