"""The signed items of a unit, as views of mapped files.

Comes in: the folder that `near.SignWork` wrote to, a unit, rows of it. Goes out: what is known of these items: their
shingles, signature, document, key. The one decision: files are mapped and only the rows asked for are touched; so many
units stay mapped in a process. (URLs cannot be mapped: there the whole unit is read.)
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import errors, shards
from corpusforge.arrays import I64, U64
from corpusforge.dedupe.minhash import Sets
from corpusforge.dedupe.near import item_matrix
from corpusforge.dedupe.spans import column_spans
from corpusforge.work.dedupe import span_path

_MAPPED = 2
"""Units kept mapped by a process: two are compared at a time, and others are asked for one after the other. What was
touched of a mapped file counts as memory of the process for as long as it is mapped."""


class Part(NamedTuple):
    """A batch of a unit's SPANS and SIGNED rows."""

    first: int  # item row of the unit it begins with
    first_document: int
    offsets: I64  # its document i owns items offsets[i]:offsets[i + 1]
    hashes: npt.NDArray[Any]
    spans: pa.RecordBatch
    signed: pa.RecordBatch

    def bands(self, width: int) -> npt.NDArray[Any]:
        """Band hashes of all items."""
        return item_matrix(self.signed.column("bands"), width)

    def signatures(self, width: int) -> npt.NDArray[Any]:
        """Signatures of all items."""
        return item_matrix(self.signed.column("signatures"), width)

    def sets(self, rows: I64) -> Sets:
        """The shingles of items."""
        shingles, starts, stops = (column_spans(self.signed.column(c))[0] for c in ("shingles", "starts", "stops"))
        return Sets(shingles, starts[rows].astype(np.int64), stops[rows].astype(np.int64))

    def documents(self, rows: I64) -> I64:
        """The document of each item, counted in this part."""
        return np.searchsorted(self.offsets, rows, "right") - 1

    def order(self, rows: I64) -> tuple[I64, U64, I64]:
        """What orders items: order and key of the document, and the position in it."""
        owners = self.documents(rows)
        orders, keys = (self.spans.column(name).to_numpy()[owners] for name in ("order", "key"))
        return orders, keys, rows - self.offsets[owners]


class UnitItems(NamedTuple):
    """All items of a unit; ``rows`` below count from its first."""

    parts: list[Part]

    def signatures(self, rows: I64, width: int) -> npt.NDArray[Any]:
        """Their signatures, copied."""
        found = np.zeros((len(rows), width), np.uint32)
        for part, chosen in self.by_part(rows):
            found[chosen] = part.signatures(width)[rows[chosen] - part.first]
        return found

    def documents(self, rows: I64) -> I64:
        """The number of the document of each, from the first of the unit."""
        found = np.zeros(len(rows), np.int64)
        for part, chosen in self.by_part(rows):
            found[chosen] = part.documents(rows[chosen] - part.first) + part.first_document
        return found

    def order(self, rows: I64) -> tuple[I64, U64, I64]:
        """What orders items: order and key of the document, and the position in it."""
        found = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int64)
        for part, chosen in self.by_part(rows):
            for column, values in zip(found, part.order(rows[chosen] - part.first), strict=True):
                column[chosen] = values
        return found

    def by_part(self, rows: I64) -> list[tuple[Part, I64]]:
        """Each part that has any of them, and which."""
        owner = np.searchsorted(np.array([part.first for part in self.parts]), rows, "right") - 1
        return [(self.parts[k], np.flatnonzero(owner == k)) for k in np.unique(owner).tolist()]


def signed_name(folder: str, unit: int) -> str:
    """Where `near.SignWork` writes the signatures of a unit."""
    return shards.join(folder, f"signed/part-{unit:05d}-00000.arrow")


def open_items(folder: str, unit: int) -> UnitItems:
    """The items of a unit. Raises `errors.ManifestInvalid` where they cannot be read."""
    path = signed_name(folder, unit)
    if shards.is_remote(path):
        return _open(folder, unit)
    try:
        found = Path(path).stat()
    except OSError as error:
        raise errors.ManifestInvalid(path, f"unreadable shard ({error})", "run the stage again") from None
    return _mapped(folder, unit, (found.st_mtime_ns, found.st_ino, found.st_size))


def mapped_bytes(folder: str) -> int:
    """What units that are mapped together take at most."""
    sizes = sorted(sum(shard.bytes for shard in entry.tables.values()) for entry in shards.load_entries(folder))
    return sum(sizes[-_MAPPED:])


def forget() -> None:
    """Let go of the mapped files, so that removing them frees their space."""
    _mapped.cache_clear()


@functools.lru_cache(maxsize=_MAPPED)
def _mapped(folder: str, unit: int, written: tuple[int, int, int]) -> UnitItems:
    """``written``: tells a file from another that had its name before."""
    return _open(folder, unit)


def _open(folder: str, unit: int) -> UnitItems:
    parts, row, document = [], 0, 0
    both = zip(shards.read_shard(span_path(folder, unit)), shards.read_shard(signed_name(folder, unit)), strict=True)
    for rows, signed in both:
        hashes, offsets = column_spans(rows.column("hashes"))
        parts.append(Part(row, document, offsets, hashes, rows, signed))
        row, document = row + len(hashes), document + rows.num_rows
    return UnitItems(parts)
