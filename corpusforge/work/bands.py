"""Band hashes of a unit on their way into the shuffle: first marks of all, then those that two items share.

Comes in: what `near.SignWork` wrote of a unit. Goes out, for each partition of a round: packed marks; from the marks of
all units ``shared-N/`` (which band hashes are there twice, and how many pairs they give); packed blocks of those alone.

    mark_blocks(unit, ...)    -> (slot, four bytes a band hash)
    near.find_shared(marks)   -> write_shared
    band_blocks(unit, ...)    -> (partition, packed block of band hashes, keys and places)

Decision: nearly all band hashes are unique, and a block of one and its pairs weighs forty times its mark. So what is
shared is found first, with one light shuffle; then memory, and with it the number of rounds, is planned by what is
there, not by the worst that could be. *Slots* are ranges of the hash: the partitions of all rounds, in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import shards
from corpusforge.arrays import I64, U64, Bools
from corpusforge.dedupe import near, spans
from corpusforge.dedupe.near import Shared
from corpusforge.work.items import Part, open_items

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
        for number, a, b in _runs(slot):
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
        for number, a, b in _runs(slot):
            found.setdefault(number % slots.partitions, []).append(tuple(column[a:b] for column in columns))
    many = ((number, map(np.concatenate, zip(*found[number], strict=True))) for number in sorted(found))
    return [(number, spans.pack_block(*columns)) for number, columns in many]


def _of_round(hashes: U64, slots: Slots, round: int) -> tuple[I64, I64]:
    """Which hashes belong to a round, by their slots, and these."""
    slot = slots.of(hashes)
    chosen = np.flatnonzero(slot // slots.partitions == round)
    order = np.argsort((slot[chosen] % slots.partitions).astype(np.uint16), kind="stable")
    return chosen[order], slot[chosen[order]]


def _runs(slot: I64) -> list[tuple[int, int, int]]:
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
        for number, a, b in _runs(slot[order]):
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
    needed = (hashes * spans.BLOCK_BYTES + pairs * near.PAIR_BYTES) * _SHUFFLE_FACTOR
    return max(1, -(-int(needed) // max(1, memory_bytes)))
