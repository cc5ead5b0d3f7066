"""Pages with the same URL: which of them is the newest, and which are older copies of it.

Comes in: ids, URLs, times and hashes of the content of records. Goes out: packed blocks of them by the hash of the URL;
later, for each unit, the ids of older copies with the copy that stays. The one decision: as in C4 the newest stays
(tensorflow-datasets, ``text/c4_utils.py``, ``select_newest_page``); where that is not decided by the time (C4 takes
whichever comes first), the smallest hash of the content stays, and a record of unknown time is older than any other. So
what stays depends neither on order nor on how the input is cut into files; of records with the same content the
smallest id stays.

A record without a URL, or whose URL is nothing but a scheme, is a copy of nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge.arrays import U64, Bools
from corpusforge.clean.urls import normalise_urls
from corpusforge.text import text_bytes

ORIGINS = pa.schema(
    [
        pa.field("hash", pa.uint64(), nullable=False),  # xxh3-64 of the normalised URL
        pa.field("time", pa.uint64(), nullable=False),  # `order_of_times`
        pa.field("content", pa.uint64(), nullable=False),  # a hash of it
        pa.field("high", pa.uint64(), nullable=False),  # the first 16 digits of DOCUMENTS.id
        pa.field("low", pa.uint64(), nullable=False),  # the last 16
    ]
)
"""One row a record that has a URL."""

OLDER = pa.schema([pa.field(name, pa.uint64(), nullable=False) for name in ("high", "low", "kept_high", "kept_low")])
"""One row an older copy: its id and that of the newest."""

BLOCK_BYTES = 48
"""Bytes a record in a block: the columns of ORIGINS and the unit, one behind the other, little-endian uint64."""

OLDER_BYTES = 32
"""Bytes an older copy in `find_older`'s answer: the columns of OLDER."""

_EPOCH = np.int64(1) << np.int64(62)
"""Added to seconds since 1970, so that times before it are positive; 0 is left for unknown times."""


def origins_of(ids: pa.Array, urls: pa.Array, times: pa.Array, content: pa.Array) -> pa.RecordBatch:
    """The ORIGINS rows of some records; ``times``: timestamps in seconds."""
    normalised = normalise_urls(urls)
    chosen = pc.fill_null(pc.not_equal(normalised, ""), False)
    high, low = id_words(ids.filter(chosen))
    hashes, times = _hashes(normalised.filter(chosen)), order_of_times(times.filter(chosen))
    columns = [*map(pa.array, (hashes, times)), content.filter(chosen), pa.array(high), pa.array(low)]
    return pa.RecordBatch.from_arrays(columns, schema=ORIGINS)


def order_of_times(times: pa.Array) -> U64:
    """Numbers in the order of the times; 0 for null.

    >>> order_of_times(pa.array([None, 0, 1], pa.timestamp("s", tz="UTC"))).argsort().tolist()
    [0, 1, 2]
    """
    seconds = np.asarray(pc.fill_null(times.cast(pa.int64()), -_EPOCH), np.int64)
    return (seconds + _EPOCH).astype(np.uint64)


def id_words(ids: pa.Array) -> tuple[U64, U64]:
    """DOCUMENTS.id as two numbers.

    >>> [w.tolist() for w in id_words(pa.array(["00000000000000ff0000000000000001"]))]
    [[255], [1]]
    """
    data, offsets = text_bytes(ids)
    digits = data[offsets[0] : offsets[-1]].tobytes().decode()
    words = np.frombuffer(bytes.fromhex(digits), ">u8").reshape(-1, 2).astype(np.uint64)
    return words[:, 0], words[:, 1]


def ids_of(high: U64, low: U64) -> pa.StringArray:
    """The ids of two numbers each."""
    digits = np.stack([high, low], 1).astype(">u8").tobytes().hex()
    offsets = np.arange(len(high) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(digits.encode()))


def pack_origins(rows: pa.RecordBatch, unit: int) -> bytes:
    """ORIGINS rows of a unit as bytes, `BLOCK_BYTES` each."""
    columns = [column.to_numpy() for column in rows.columns]
    return np.stack([*columns, np.full(rows.num_rows, unit, np.uint64)]).astype("<u8").tobytes()


def find_older(blocks: Iterable[bytes]) -> list[tuple[int, bytes]]:
    """Of the records of these blocks all that are older copies, as packed OLDER rows for each unit (ascending).

    ``blocks``: from `pack_origins`, of any units in any order; equal hashes must all be among them.
    """
    hashes, times, contents, highs, lows, units = _unpack(blocks, 6)
    by_hash = np.argsort(hashes)
    ordered = hashes[by_hash]
    equal = ordered[1:] == ordered[:-1]
    repeated = np.zeros(len(ordered), np.bool_)
    repeated[1:] = equal
    repeated[:-1] |= equal
    chosen = by_hash[repeated]
    columns = (hashes, times, contents, highs, lows, units)
    hashes, times, contents, highs, lows, units = (column[chosen] for column in columns)
    order = np.lexsort((lows, highs, contents, ~times, hashes))  # ~: the newest first
    hashes, highs, lows, units = hashes[order], highs[order], lows[order], units[order]
    is_newest = np.ones(len(hashes), np.bool_)
    is_newest[1:] = hashes[1:] != hashes[:-1]
    newest = np.flatnonzero(is_newest)[np.cumsum(is_newest) - 1]
    older = np.flatnonzero(~is_newest)
    older = older[np.argsort(units[older], kind="stable")]
    rows = np.stack([highs[older], lows[older], highs[newest[older]], lows[newest[older]]])
    names, first = np.unique(units[older], return_index=True)
    bounds = [*first.tolist(), len(older)]
    return [
        (int(name), rows[:, a:b].astype("<u8").tobytes())
        for name, a, b in zip(names.tolist(), bounds[:-1], bounds[1:], strict=True)
    ]


class Older(NamedTuple):
    """The older copies of a unit, ascending by id, and the copy of each that stays."""

    high: U64
    low: U64
    kept_high: U64
    kept_low: U64

    def among(self, ids: pa.Array) -> tuple[Bools, pa.StringArray]:
        """Which of these documents are older copies, and the ids of the newest of those."""
        high, low = id_words(ids)
        if not len(self.high):
            return np.zeros(len(ids), np.bool_), pa.array([], pa.string())
        # Two ids with equal first halves: 2^-64 a pair, and then the first of them is looked at only.
        at = np.minimum(np.searchsorted(self.high, high), len(self.high) - 1)
        found = (self.high[at] == high) & (self.low[at] == low)
        return found, ids_of(self.kept_high[at[found]], self.kept_low[at[found]])


def unpack_older(blocks: Iterable[bytes]) -> Older:
    """The older copies of a unit from any number of packed answers."""
    columns = _unpack(blocks, 4)
    order = np.lexsort((columns[1], columns[0]))
    return Older(*(column[order] for column in columns))


def _unpack(blocks: Iterable[bytes], columns: int) -> list[U64]:
    parts = [np.frombuffer(block, "<u8").reshape(columns, -1) for block in blocks]
    if not parts:
        return [np.zeros(0, np.uint64)] * columns
    return [np.concatenate([part[k] for part in parts]).astype(np.uint64, copy=False) for k in range(columns)]


def _hashes(normalised: pa.StringArray) -> U64:
    # A loop with a reason: one C call a URL (0.2 us) against kilobytes of page each.
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(url.encode()) for url in normalised.to_pylist()), np.uint64, len(normalised))
