"""Instances on disk as arrays: shards memory-mapped, rows cut to a length, gathered and masked.

Small columns are held in memory; token ids stay in the files, each seen as one array of integers (INSTANCES are Arrow
streams, uncompressed), so gathering a batch touches the pages it needs and nothing else. Masks are drawn for all rows
that are gathered together, because a mask depends on (seed, epoch, instance) alone.

Held in memory: `BYTES_AN_INSTANCE`, `BYTES_OF_MASKS` more where masks are stored, and for each part of training
`order.BYTES_A_CHUNK`. A billion instances in two parts, none of them cut, need some 100 GB: 35 + 2 x 32.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import errors, seeds, shards
from corpusforge.arrays import I32, I64, U64, Bools, offsets_of, ranges
from corpusforge.instances.masking import Masked, Masker
from corpusforge.shards import Manifest

BYTES_AN_INSTANCE = 35
"""Of a `Corpus`: key 8, first token 8, file 4, tokens twice 8, of segment A 4, copy 2, pair label 1."""
BYTES_OF_MASKS = 24
"""More where masks are stored: first position and first label 16, their number twice 8."""
BYTES_OF_WORD_STARTS = 12
"""More where word starts are: the first bit 8, their number 4. The bits stay in the files."""


@dataclass(frozen=True)
class Ragged:
    """A list column over many files: row ``i`` is ``files[file[i]][start[i]:start[i] + count[i]]``."""

    files: list[npt.NDArray[Any]]
    file: I32
    start: I64
    count: I32

    def take(self, rows: I64 | I32, within: I64, owner: I64) -> npt.NDArray[Any]:
        """Values at positions ``within`` of the rows ``rows[owner]``; ``within`` and ``owner`` are equally long."""
        return self.read(self.file[rows], self.start[rows][owner] + within, np.bincount(owner, minlength=len(rows)))

    def whole(self, rows: I64 | I32) -> npt.NDArray[Any]:
        """All values of the rows, one row after another."""
        counts = self.count[rows].astype(np.int64)
        return self.read(self.file[rows], ranges(self.start[rows], counts), counts)

    def read(self, source: I32, at: I64, counts: I64) -> npt.NDArray[Any]:
        """The values at the places ``at``: the first ``counts[0]`` in the file ``source[0]``, and so on."""
        if len(source) == 0 or (source[0] == source).all():
            return np.take(self.files[source[0] if len(source) else 0], at)
        by_file = np.argsort(source, kind="stable")
        into = ranges(offsets_of(counts)[:-1][by_file], counts[by_file])  # file by file, where each value goes
        touched, firsts = np.unique(source[by_file], return_index=True)
        bounds = offsets_of(counts[by_file])[np.append(firsts, len(source))]
        out, at = np.empty(len(at), self.files[0].dtype), at[into]
        for number, begin, end in zip(touched.tolist(), bounds, bounds[1:], strict=False):  # files: some 100 MB each
            out[into[begin:end]] = np.take(self.files[number], at[begin:end])
        return out


@dataclass(frozen=True)
class Bits:
    """A list column of bits: `Ragged` over the bytes of the files, ``start`` counted in bits, the lowest first."""

    packed: Ragged

    def take(self, rows: I64 | I32, within: I64, owner: I64) -> Bools:
        """As `Ragged.take`."""
        bits = self.packed.start[rows][owner] + within
        packed = self.packed.read(self.packed.file[rows], bits >> 3, np.bincount(owner, minlength=len(rows)))
        return (packed >> (bits & 7).astype(np.uint8) & 1).astype(bool)

    def whole(self, rows: I64 | I32) -> Bools:
        """As `Ragged.whole`."""
        start, counts = self.packed.start[rows], self.packed.count[rows].astype(np.int64)
        first = start >> 3
        sizes = (start + counts + 7 >> 3) - first  # bytes of a row
        packed = self.packed.read(self.packed.file[rows], ranges(first, sizes), sizes)
        bits = np.unpackbits(packed, bitorder="little").view(np.bool_)
        return bits.take(ranges(offsets_of(sizes)[:-1] * 8 + (start & 7), counts))


@dataclass(frozen=True)
class Corpus:
    """All instances of a folder. Arrays are one entry per row, rows in the order of the shards."""

    ids: Ragged
    masked_positions: Ragged | None  # None: masks are drawn by the loader
    masked_labels: Ragged | None
    keys: U64  # seeds.instance_keys
    lengths: I32
    first_lengths: I32  # tokens of segment A with [CLS] and [SEP]
    pair_labels: npt.NDArray[np.int8] | None  # None: not a pair format
    copies: npt.NDArray[np.uint16]
    word_starts: Bits | None = None  # None: the mask unit is the token

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def longest(self) -> int:
        """Tokens of the longest instance."""
        return int(self.lengths.max()) if len(self) else 0

    @property
    def copy_count(self) -> int:
        """How many differently masked copies of the corpus there are (1 unless masks are duplicated)."""
        return int(self.copies.max()) + 1 if len(self) else 1


def flat_positions(counts: I64 | I32) -> tuple[I64, I64]:
    """For rows of ``counts`` tokens laid end to end: position within the row, and number of the row, of each token.

    >>> [a.tolist() for a in flat_positions(np.array([2, 3]))]
    [[0, 1, 0, 1, 2], [0, 0, 1, 1, 1]]
    """
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    begins = np.cumsum(counts, dtype=np.int64) - counts
    return np.arange(len(owner), dtype=np.int64) - begins[owner], owner


def open_table(folder: str, manifest: Manifest, table: str) -> Corpus:
    """Map a table of a finished stage, after checking the sizes of its shards.

    Raises `errors.ManifestInvalid` if one is missing or not as long as the manifest states, and as `open_corpus`.
    """
    for shard, path in zip(manifest.shards.get(table, []), manifest.paths(folder, table), strict=True):
        # Arrow reads a file cut between two batches as a shorter one, so it would not be noticed below.
        if not shards.is_remote(path) and (not Path(path).is_file() or Path(path).stat().st_size != shard.bytes):
            what = f"missing, or not the {shard.bytes:,} bytes its manifest says"
            raise errors.ManifestInvalid(path, what, "run build-instances again")
    return open_corpus(manifest.paths(folder, table))


def open_corpus(paths: Sequence[str]) -> Corpus:
    """Map the shards at ``paths``.

    Raises `errors.ManifestInvalid` if a shard is missing, cut short, compressed, or no table of instances.
    """
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    lists: dict[str, list[npt.NDArray[Any]]] = {}
    for path in paths:
        whole, batches = _map(path)
        number = len(lists.get("input_ids", []))  # shards without a batch are left out
        for batch in batches:
            _add_batch(parts, number, batch, whole, path)
        for name in _list_columns(batches):
            kind = batches[0].column(name).type.value_type.to_pandas_dtype()
            kind = np.uint8 if kind is np.bool_ else kind  # bits are kept packed
            lists.setdefault(name, []).append(np.frombuffer(whole, kind, whole.size // np.dtype(kind).itemsize))
    if not sum(map(len, parts.get("length", []))):
        raise errors.TrainingStopped(", ".join(paths[:1]) or "instances", "no instances", "build instances first")
    columns = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    masked = "masked_positions" in lists
    return Corpus(
        ids=_ragged(columns, lists, "input_ids"),
        masked_positions=_ragged(columns, lists, "masked_positions") if masked else None,
        masked_labels=_ragged(columns, lists, "masked_labels") if masked else None,
        keys=seeds.instance_keys(columns["document"], columns["index"]),
        lengths=columns["length"].astype(np.int32),
        first_lengths=columns["first"].astype(np.int32),
        pair_labels=columns["pair_label"] if (columns["pair_label"] >= 0).all() else None,
        copies=columns["copy"],
        word_starts=Bits(_ragged(columns, lists, "word_starts")) if "word_starts" in lists else None,
    )


def _map(path: str) -> tuple[pa.Buffer, list[pa.RecordBatch]]:
    try:
        if shards.is_remote(path):
            with shards.open_binary(path) as file:
                whole = pa.py_buffer(file.read())
        else:
            whole = pa.memory_map(str(path)).read_buffer()
        return whole, list(pa.ipc.open_stream(whole))
    except (OSError, pa.ArrowInvalid) as error:
        what = f"unreadable shard ({error})"
        raise errors.ManifestInvalid(str(path), what, "run build-instances again") from None


def _list_columns(batches: list[pa.RecordBatch]) -> list[str]:
    names = ("input_ids", "word_starts", "masked_positions", "masked_labels")
    return [n for n in names if batches and n in batches[0].schema.names]


def _add_batch(
    parts: dict[str, list[npt.NDArray[Any]]], number: int, batch: pa.RecordBatch, whole: pa.Buffer, path: str
) -> None:
    """Append a batch's small columns, and where its lists begin in the file, to ``parts``."""

    def add(name: str, values: npt.NDArray[Any]) -> None:
        parts.setdefault(name, []).append(values)

    try:
        for name in ("document", "index", "copy", "length"):
            add(name, batch.column(name).to_numpy(zero_copy_only=False))
        add("first", batch.column("segment_lengths").flatten().to_numpy(zero_copy_only=False)[::2])
        add("pair_label", batch.column("pair_label").fill_null(-1).to_numpy(zero_copy_only=False))
        add("file", np.full(batch.num_rows, number, np.int32))
        for name in _list_columns([batch]):
            start, count = _locate(batch.column(name), whole, path)
            add(f"{name}.start", start)
            add(f"{name}.count", count)
    except KeyError as error:
        what = f"no column {error} in it"
        raise errors.ManifestInvalid(path, what, "name a folder that build-instances wrote") from None


def _locate(column: pa.Array, whole: pa.Buffer, path: str) -> tuple[I64, I32]:
    """First element, counted from the beginning of the file, and number of elements of each row of a list column."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    values = column.values
    width = max(values.type.bit_width // 8, 1)
    buffer = values.buffers()[1]
    if len(values) == 0 or buffer is None:
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.int32)
    inside = buffer.address - whole.address
    if not 0 <= inside < whole.size or inside % width:
        raise errors.ManifestInvalid(path, "a compressed shard", "write instance shards uncompressed")
    base = (inside * 8 if values.type.bit_width == 1 else inside // width) + values.offset
    return base + offsets[:-1], np.diff(offsets).astype(np.int32)


def _ragged(columns: dict[str, npt.NDArray[Any]], lists: dict[str, list[npt.NDArray[Any]]], name: str) -> Ragged:
    return Ragged(lists[name], columns["file"], columns[f"{name}.start"], columns[f"{name}.count"])


@dataclass(frozen=True)
class Chunks:
    """What a part of training reads: instances, those that are too long for it cut into chunks. One entry a chunk.

    Token t of a chunk is token 0 of its instance for t = 0, the instance's last for the chunk's last, and token
    ``t + shift`` between.
    """

    rows: I32  # of the Corpus
    lengths: I32
    shifts: I32
    first_lengths: I32  # of segment A, as in Corpus
    keys: U64
    are_whole: bool = False  # every instance is one chunk


def cut_to_length(corpus: Corpus, length: int) -> Chunks:
    """All instances, with those of more than ``length`` tokens cut.

    A single segment is cut into equal chunks, each with the [CLS] and [SEP] of the whole, so nothing goes unread. Of a
    pair, A loses its beginning and B its end, the longer first, so that the rest of B still follows the rest of A.
    """
    rows = np.arange(len(corpus), dtype=np.int32)
    if corpus.longest <= length:
        none = np.zeros_like(rows)
        return Chunks(rows, corpus.lengths, none, corpus.first_lengths, corpus.keys, are_whole=True)
    if corpus.pair_labels is not None:
        a, b = corpus.first_lengths - 2, corpus.lengths - corpus.first_lengths - 1
        room = length - 3
        kept_b = np.minimum(b, np.maximum(room - a, room // 2))
        kept_a = np.minimum(a, room - kept_b)
        return Chunks(rows, kept_a + kept_b + 3, a - kept_a, kept_a + 2, corpus.keys)
    content, room = corpus.lengths - 2, length - 2
    counts = np.maximum(1, -(-content // room))
    rows = np.repeat(rows, counts)
    number = np.arange(len(rows), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = number * content[rows] // counts[rows]
    end = (number + 1) * content[rows] // counts[rows]
    keys = corpus.keys[rows]
    is_cut = counts[rows] > 1
    keys[is_cut] = seeds.instance_keys(keys[is_cut], (number[is_cut] + 1).astype(np.uint64))
    lengths = (end - begin + 2).astype(np.int32)
    return Chunks(rows, lengths, begin.astype(np.int32), lengths, keys)


@dataclass(frozen=True)
class Rows:
    """Instances or chunks of them, end to end. Arrays have one entry per row, token or masked position."""

    ids: npt.NDArray[Any]  # a token
    lengths: I64  # a row
    first_lengths: I64  # a row
    keys: U64  # a row
    pair_labels: npt.NDArray[np.int8] | None  # a row
    masked: I64  # a masked position: its token in ``ids``, ascending
    labels: npt.NDArray[Any]  # a masked position
    word_starts: Bools | None = None  # a token; for masks that are not drawn yet
    span_sides: I64 | None = None  # a masked position: the tokens before its span and after it, [M, 2]

    @property
    def offsets(self) -> I64:
        """Where each row begins in ``ids``, and the end of the last."""
        return offsets_of(self.lengths)

    def parts(self, bounds: I64) -> list[Rows]:
        """Runs of masked rows: part k is the rows ``[bounds[k], bounds[k + 1])``. Views, no copies."""
        tokens = self.offsets[bounds]
        masks = np.searchsorted(self.masked, tokens)
        parts = []
        for (a, b), (t, u), (m, n) in zip(pairwise(bounds), pairwise(tokens), pairwise(masks), strict=True):
            pairs = None if self.pair_labels is None else self.pair_labels[a:b]
            firsts, keys, masked = self.first_lengths[a:b], self.keys[a:b], self.masked[m:n] - t
            sides = None if self.span_sides is None else self.span_sides[m:n] - t
            ids, lengths, labels = self.ids[t:u], self.lengths[a:b], self.labels[m:n]
            parts.append(Rows(ids, lengths, firsts, keys, pairs, masked, labels, span_sides=sides))
        return parts


def gather(corpus: Corpus, chunks: Chunks, chosen: I64 | I32, *, word_starts: bool = True) -> Rows:
    """Read the chunks numbered ``chosen``: with the masks stored in the shards, or else with their word starts.

    ``word_starts``: whether these are needed.
    """
    rows, lengths = chunks.rows[chosen], chunks.lengths[chosen].astype(np.int64)
    starts, masked, labels = None, np.zeros(0, np.int64), np.zeros(0, np.int64)
    is_masked = corpus.masked_positions is not None
    bits = None if is_masked or not word_starts else corpus.word_starts
    if chunks.are_whole:
        ids = corpus.ids.whole(rows)
        if bits is not None:
            starts = bits.whole(rows)
    else:
        within, owner = flat_positions(lengths)
        is_last = within == lengths[owner] - 1
        inside = np.where(within > 0, within + chunks.shifts[chosen][owner], 0)
        source = np.where(is_last, corpus.lengths[rows][owner] - 1, inside)
        ids = corpus.ids.take(rows, source, owner)
        if bits is not None:
            starts = bits.take(rows, source, owner)
    if is_masked:
        masked, labels = _stored_masks(corpus, rows, lengths, chunks.shifts[chosen])
    pair_labels = None if corpus.pair_labels is None else corpus.pair_labels[rows]
    first_lengths = chunks.first_lengths[chosen].astype(np.int64)
    return Rows(ids, lengths, first_lengths, chunks.keys[chosen], pair_labels, masked, labels, starts)


def _stored_masks(corpus: Corpus, rows: I32, lengths: I64, shifts: I32) -> tuple[I64, I64]:
    assert corpus.masked_positions is not None
    assert corpus.masked_labels is not None
    owner = np.repeat(np.arange(len(rows)), corpus.masked_positions.count[rows])
    positions = corpus.masked_positions.whole(rows).astype(np.int64) - shifts[owner]
    labels = corpus.masked_labels.whole(rows).astype(np.int64)
    stays = (positions >= 1) & (positions < lengths[owner] - 1)  # the others lie in other chunks
    return (offsets_of(lengths)[owner] + positions)[stays], labels[stays]


def draw_masks(rows: Rows, masker: Masker, epoch: int | I64 | U64) -> Rows:
    """The same rows with the masks of an epoch (one, or one per row): at epoch 0 those that static masking stores."""
    offsets = rows.offsets
    drawn = masker(rows.ids, offsets, rows.keys, np.asarray(epoch).astype(np.uint64), rows.word_starts)
    masked = drawn.positions + np.repeat(offsets[:-1], np.diff(drawn.position_offsets))
    sides = _sides(drawn, offsets) if masker.unit.once_a_run else None
    changed: dict[str, Any] = {"ids": drawn.input_ids, "masked": masked, "labels": drawn.labels, "span_sides": sides}
    return dataclasses.replace(rows, **changed, word_starts=None)


def _sides(drawn: Masked, offsets: I64) -> I64 | None:
    """The tokens on both sides of the span that each masked position is in; spans are in the order of positions."""
    if drawn.spans is None or drawn.span_offsets is None:
        return None
    spans = drawn.spans + np.repeat(offsets[:-1], np.diff(drawn.span_offsets))[:, None]
    return np.repeat(spans - np.array([1, 0]), spans[:, 1] - spans[:, 0], axis=0)
