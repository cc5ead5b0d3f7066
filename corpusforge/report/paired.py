"""Two clean stages on the same input, document by document: what became of each on either side.

Comes in: two finished folders. Goes out: how often each pair of fates occurs, and ids of examples. A fate is "kept" or
the reason a page was dropped for. The one decision: of each document 24 bytes are held (64 bits of its id, its fate,
64 bits of its kept text), for a range of ids at a time, so that memory is bounded by `ROUND` whatever the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors, shards
from corpusforge.arrays import U64, Bools
from corpusforge.shards import Manifest

KEPT = "kept"
EXAMPLES = 4
"""Documents shown for a pair of fates."""

ROUND = 20_000_000
"""Documents of a side compared at once: about a gigabyte for both."""

Pair = tuple[str, str]


@dataclass
class Paired:
    """``counts``: documents by the fates on both sides. ``changed``: kept by both, with different text.

    ``only``: documents of which one side knows nothing (it read another input). ``examples``: ids, the smallest first.
    """

    counts: Counter[Pair] = field(default_factory=Counter)
    changed: int = 0
    only: tuple[int, int] = (0, 0)
    examples: dict[Pair, list[str]] = field(default_factory=dict)
    changed_examples: list[str] = field(default_factory=list)


def pair(first: str, second: str) -> Paired:
    """Compare two clean stages. Raises `errors.StageMismatch` unless both are, and read the same input."""
    folders = (first, second)
    manifests = tuple(Manifest.load(folder) for folder in folders)
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.stage != "clean":
            raise errors.StageMismatch(folder, f"is a stage '{manifest.stage}'", "name two folders written by clean")
        if "rejects" not in manifest.shards:
            mend = "run clean with --rejects all"
            raise errors.StageMismatch(folder, "kept no rejects, so the fates of dropped pages are unknown", mend)
    if manifests[0].upstream.get("input") != manifests[1].upstream.get("input"):
        mend = "compare runs over the same files"
        raise errors.StageMismatch(second, f"read another input than {first}", mend)
    rounds = -(-max(sum(manifest.rows.values()) for manifest in manifests) // ROUND)
    found = Paired()
    for number in range(max(1, rounds)):
        sides = [
            _side(folder, manifest, number, max(1, rounds)) for folder, manifest in zip(folders, manifests, strict=True)
        ]
        _compare(found, sides[0], sides[1])
    wanted = {key for keys in (*found.examples.values(), found.changed_examples) for key in keys}
    names = _ids(folders, manifests, wanted)
    found.examples = {fates: [names[key] for key in keys] for fates, keys in found.examples.items()}
    found.changed_examples = [names[key] for key in found.changed_examples]
    return found


@dataclass(frozen=True)
class _Side:
    """Documents of a side by ascending key. ``fates``: index into ``names``; ``texts``: hash of what was kept, or 0."""

    keys: U64
    fates: npt.NDArray[np.int16]
    texts: U64
    names: list[str]


def _side(folder: str, manifest: Manifest, number: int, rounds: int) -> _Side:
    names = {KEPT: 0}
    parts: list[tuple[U64, npt.NDArray[np.int16], U64]] = []
    for batch in _batches(folder, manifest, "documents"):
        keys, chosen = _keys(batch.column("id"), number, rounds)
        texts = batch.column("text").filter(pa.array(chosen)).cast(pa.binary()).to_pylist()
        # Python loop with a reason: one C call a document, against kilobytes of text each.
        hashes = np.fromiter((xxhash.xxh3_64_intdigest(text) for text in texts), np.uint64, len(texts))
        parts.append((keys, np.zeros(len(keys), np.int16), hashes))
    for batch in _batches(folder, manifest, "rejects"):
        pages = batch.filter(pc.is_null(batch.column("line")))
        keys, chosen = _keys(pages.column("document"), number, rounds)
        reasons = pages.column("reason").cast(pa.string()).filter(pa.array(chosen)).dictionary_encode()
        numbers = [names.setdefault(name, len(names)) for name in reasons.dictionary.to_pylist()]
        fates = np.array([*numbers, 0], np.int16)[reasons.indices.to_numpy()]
        parts.append((keys, fates, np.zeros(len(keys), np.uint64)))
    columns = [np.concatenate([part[k] for part in parts]) if parts else np.zeros(0) for k in range(3)]
    order = np.argsort(columns[0], kind="stable")
    return _Side(
        columns[0][order].astype(np.uint64),
        columns[1][order].astype(np.int16),
        columns[2][order].astype(np.uint64),
        list(names),
    )


def _batches(folder: str, manifest: Manifest, table: str) -> Iterator[pa.RecordBatch]:
    for path in manifest.paths(folder, table):
        yield from shards.read_shard(path)


def _keys(ids: pa.Array, number: int, rounds: int) -> tuple[U64, Bools]:
    """64 bits of each id of this round, and which rows these are. Ids are 32 hex digits of a hash."""
    digits = "".join(pc.utf8_slice_codeunits(ids, 0, 16).to_pylist())
    keys = np.frombuffer(bytes.fromhex(digits), ">u8").astype(np.uint64)
    chosen = (keys >> np.uint64(32)) * np.uint64(rounds) >> np.uint64(32) == number
    return keys[chosen], chosen


def _compare(found: Paired, first: _Side, second: _Side) -> None:
    keys, left, right = np.intersect1d(first.keys, second.keys, return_indices=True)
    found.only = (
        found.only[0] + len(first.keys) - len(keys),
        found.only[1] + len(second.keys) - len(keys),
    )
    fates = first.fates[left].astype(np.int64) * len(second.names) + second.fates[right]
    for code in np.unique(fates).tolist():  # a loop over pairs of reasons, of which there are a few hundred at most
        fate = first.names[code // len(second.names)], second.names[code % len(second.names)]
        rows = np.flatnonzero(fates == code)
        found.counts[fate] += len(rows)
        if fate[0] != fate[1]:
            _extend(found.examples.setdefault(fate, []), keys[rows[:EXAMPLES]])
    changed = keys[(fates == 0) & (first.texts[left] != second.texts[right])]
    found.changed += len(changed)
    _extend(found.changed_examples, changed[:EXAMPLES])


def _extend(examples: list[str], keys: U64) -> None:
    examples += [f"{key:016x}" for key in keys[: EXAMPLES - len(examples)].tolist()]


def _ids(folders: tuple[str, ...], manifests: tuple[Manifest, ...], wanted: set[str]) -> dict[str, str]:
    """Whole ids by their first 16 digits."""
    found: dict[str, str] = {}
    values = pa.array(sorted(wanted), pa.string())
    places = [("documents", "id"), ("rejects", "document")]
    for table, column in places:  # of the first side: what is compared is known to both
        for batch in _batches(folders[0], manifests[0], table):
            ids = batch.column(column)
            hits = ids.filter(pc.is_in(pc.utf8_slice_codeunits(ids, 0, 16), value_set=values))
            found |= {name[:16]: name for name in hits.to_pylist()}
    return found
