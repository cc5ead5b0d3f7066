"""Where sentences stand: from places (unit and sentence row) to document ids and byte offsets.

Comes in: places of any units, and where the units' span hashes lie. Goes out: an id and an offset for each place. The
one decision: columns are memory-mapped and only the rows asked for are touched. A unit of a large corpus has copies in
nearly every other one, so reading those units' columns whole would take the square of the number of units. (URLs cannot
be mapped: there each unit that is asked for is read as a stream.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import errors, shards
from corpusforge.arrays import I32, I64, U64
from corpusforge.dedupe.spans import row_of, unit_of

_MAPPED = 64
"""Units kept mapped by a process: each holds a file descriptor, of which there may be 256 (macOS)."""


class _Part(NamedTuple):
    """A batch of a unit's SPANS, as views."""

    first: int  # sentence row of the unit it begins with
    offsets: I32  # its document i owns starts[offsets[i]:offsets[i + 1]]
    starts: npt.NDArray[Any]  # in the text as it came to the stage
    documents: pa.StringArray


def locate(places: U64, path_of: Callable[[int], str]) -> tuple[pa.StringArray, I64]:
    """The document id and the byte offset of the sentence at each place.

    ``path_of``: gives the path of a unit's SPANS shard. Raises `errors.ManifestInvalid` where one cannot be read.
    """
    wanted, back = np.unique(places, return_inverse=True)
    units, bounds = np.unique(unit_of(wanted), return_index=True)
    names: list[pa.Array] = [pa.array([], pa.string())]
    starts: list[I64] = [np.zeros(0, np.int64)]
    for unit, asked in zip(units.tolist(), np.split(row_of(wanted), bounds[1:]), strict=False):
        for part in _parts(path_of(unit)):
            behind = part.first + int(part.offsets[-1] - part.offsets[0])
            a, b = np.searchsorted(asked, [part.first, behind]).tolist()
            if a < b:
                rows = (asked[a:b] - part.first + part.offsets[0]).astype(np.int32)  # as the offsets: else a copy
                names.append(part.documents.take(pa.array(np.searchsorted(part.offsets, rows, "right") - 1)))
                starts.append(part.starts[rows].astype(np.int64))
    return pa.concat_arrays(names).take(pa.array(back)), np.concatenate(starts)[back]


def forget() -> None:
    """Let go of the mapped files, so that removing them frees their space."""
    _mapped.cache_clear()


def _parts(path: str) -> list[_Part]:
    if shards.is_remote(path):
        return _open(path)
    try:
        found = Path(path).stat()
    except OSError as error:
        raise errors.ManifestInvalid(path, f"unreadable shard ({error})", "run the stage again") from None
    return _mapped(path, (found.st_mtime_ns, found.st_ino, found.st_size))


@functools.lru_cache(maxsize=_MAPPED)
def _mapped(path: str, written: tuple[int, int, int]) -> list[_Part]:
    """``written``: tells a file from another that had its name before."""
    return _open(path)


def _open(path: str) -> list[_Part]:
    parts, first = [], 0
    for batch in shards.read_shard(path):
        column = batch.column("starts")
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
        origins = batch.column("origins")
        starts = column if origins.null_count else origins
        parts.append(_Part(first, offsets, starts.values.to_numpy(), batch.column("document")))
        first += int(offsets[-1] - offsets[0])
    return parts
