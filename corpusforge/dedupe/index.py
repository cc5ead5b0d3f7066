"""Signatures of documents on disk: an index for later runs, and a bridge to datasketch.

The table ``signatures/`` holds the id and the signature of every kept document; its schema's metadata holds the
parameters of the signer. Signatures of other parameters are never compared: they are checked against the signer's
(`check_signer`), and for datasketch they become the seed of its objects, because ``LeanMinHash.jaccard`` refuses
another seed. datasketch's own permutations differ from these, so both sides of a comparison must be signed by
CorpusForge.

The shards of an index are units of the method `documents`, beside those of the corpus.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors, shards
from corpusforge.arrays import U32, U64, Bools
from corpusforge.content import combine
from corpusforge.dedupe.lsh import band_hashes
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.signed_units import SignWork, signed_rows
from corpusforge.dedupe.spans import SPANS
from corpusforge.seeds import document_keys
from corpusforge.units import ShardUnit

if TYPE_CHECKING:
    from datasketch import LeanMinHash

METADATA = b"corpusforge:signer"
"""Key of the schema's metadata: the signer's parameters as JSON."""

VERSION = 1
"""Raised when the same parameters give other signatures."""

NAME_DIGITS = 8
"""Hex digits of an index's content digest that identify it, as in ``index:1f2e3d4c:9f..``."""

_FIRST = np.iinfo(np.int64).min
"""Order of the documents of an index, before all others."""

_ROWS_AT_ONCE = 1 << 16
"""Signatures of an index read together: 16 MB at 64 permutations."""


def signatures_schema(signer: Signer) -> pa.Schema:
    """SIGNATURES: one row per document that has words.

    >>> signatures_schema(Signer(permutations=16)).names
    ['document', 'signature']
    """
    fields = [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("signature", pa.list_(pa.uint32(), signer.permutations), nullable=False),  # the minima, all odd
    ]
    return pa.schema(fields, {METADATA: _parameters(signer).encode()})


def signature_rows(documents: pa.StringArray, signatures: U32, real: Bools, signer: Signer) -> pa.RecordBatch:
    """SIGNATURES rows of the documents that have one, from `Signer.sign`."""
    values = pa.array(signatures[real].ravel())
    lists = pa.FixedSizeListArray.from_arrays(values, signer.permutations)
    return pa.RecordBatch.from_arrays([documents.filter(pa.array(real)), lists], schema=signatures_schema(signer))


def signature_matrix(rows: pa.RecordBatch) -> U32:
    """The signatures of SIGNATURES rows, ``uint32[n, permutations]``, without copying."""
    column = rows.column("signature")
    return np.asarray(column.flatten().to_numpy()).reshape(len(column), column.type.list_size)


def read_signer(schema: pa.Schema, where: str) -> Signer:
    """The signer of the rows of a table. ``where``: the file, for errors."""
    parameters = json.loads((schema.metadata or {}).get(METADATA, b"{}"))
    if parameters.pop("version", None) != VERSION:
        message = "the table does not state how its signatures were made, or another version made them"
        raise errors.StageMismatch(where, message, "sign the documents again with this version")
    return Signer(**parameters)


def check_signer(schema: pa.Schema, signer: Signer, where: str) -> None:
    """Refuse signatures that were made with other parameters."""
    other = read_signer(schema, where)
    if other != signer:
        old, new = dataclasses.asdict(other), dataclasses.asdict(signer)
        differing = ", ".join(f"{name} {old[name]}, not {new[name]}" for name in new if old[name] != new[name])
        raise errors.StageMismatch(where, f"signed with {differing}", "use the settings that it was signed with")


# An index as units.


@dataclasses.dataclass(frozen=True)
class IndexUnit(ShardUnit):
    """A shard of an index. ``name``: the first `NAME_DIGITS` of the content digest of its signatures."""

    name: str = ""


def signature_shards(folder: str) -> list[shards.Shard]:
    """The shards of SIGNATURES of a finished stage.

    Raises `errors.ManifestInvalid` if the folder is not a finished stage, `errors.StageMismatch` if it has none.
    """
    listed = shards.Manifest.load(folder).shards.get("signatures")
    if listed is None:
        mend = "name an output of dedupe --method documents --export-signatures"
        raise errors.StageMismatch(folder, "has no signatures/", mend)
    return listed


def index_units(folders: Sequence[str], first: int, signer: Signer) -> list[IndexUnit]:
    """The shards of signatures of finished stages as units, numbered from ``first``, ordered by content.

    Raises `errors.ManifestInvalid` if a folder is not a finished stage, `errors.StageMismatch` if it has no
    signatures or those of another signer.
    """
    rows = []
    for folder in folders:
        listed = signature_shards(folder)
        for shard in listed[:1]:
            for batch in itertools.islice(shards.read_shard(shards.join(folder, shard.name)), 1):
                check_signer(batch.schema, signer, folder)
        name = combine(shard.content for shard in listed)[:NAME_DIGITS]
        rows += [(shard.digest, folder, shard, name) for shard in listed]
    rows.sort(key=lambda row: row[:2])
    return [
        IndexUnit(first + number, shards.join(folder, shard.name), shard.rows, shard.bytes, name)
        for number, (_, folder, shard, name) in enumerate(rows)
    ]


@dataclasses.dataclass(frozen=True)
class IndexWork(SignWork):
    """Writes ``spans/`` and ``signed/`` of a shard of SIGNATURES. Raises `errors.StageMismatch` for another signer."""

    def rows(self, unit: ShardUnit) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """SPANS and SIGNED rows of an `IndexUnit`, batch by batch."""
        assert isinstance(unit, IndexUnit)
        for stored in shards.read_shard(unit.path):
            check_signer(stored.schema, self.signing.signer, unit.path)
            for first in range(0, stored.num_rows, _ROWS_AT_ONCE):
                yield self._converted(stored.slice(first, _ROWS_AT_ONCE), unit.name)

    def _converted(self, rows: pa.RecordBatch, index: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """An id is unique within one corpus only: those of an index get its name as a prefix."""
        signatures, count = signature_matrix(rows), rows.num_rows
        offsets = np.arange(count + 1)
        zeros = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(np.zeros(count, np.uint32)))
        names = pc.binary_join_element_wise("index", index, rows.column("document"), ":")
        columns = [
            names,
            pa.array(document_keys(names.to_pylist())),
            zeros,
            zeros,
            pa.ListArray.from_arrays(zeros.offsets, pa.array(signature_hashes(signatures))),
            pa.nulls(count, pa.list_(pa.int64())),
            pa.array(np.full(count, _FIRST)),
        ]
        signed = signed_rows(offsets, band_hashes(signatures, self.signing.bands), signatures)
        return pa.RecordBatch.from_arrays(columns, schema=SPANS), signed


def signature_hashes(signatures: U32) -> U64:
    """One hash per signature, never 0.

    Python loop: one C call per signature (about 0.3 us), which took a hundred times as long to compute.
    """
    view = np.ascontiguousarray(signatures, "<u4").view(np.uint8)
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, view), np.uint64, len(signatures))
    return np.maximum(hashes, np.uint64(1))


# datasketch.


def to_datasketch(rows: pa.RecordBatch, where: str = "signatures") -> dict[str, LeanMinHash]:
    """datasketch's object of every row, by document id, for ``MinHashLSH`` and its relatives.

    Their values are 32-bit, as under datasketch's scheme "affine32", which has the same form as ours.
    """
    try:
        from datasketch import LeanMinHash
    except ImportError as error:
        raise errors.ExtraMissing(where, "datasketch is not installed", "pip install 'datasketch>=2'") from error
    seed = datasketch_seed(read_signer(rows.schema, where))
    # Python loop: datasketch's unit is an object.
    return {
        document: LeanMinHash(seed=seed, hashvalues=signature, scheme="affine32")
        for document, signature in zip(rows.column("document").to_pylist(), signature_matrix(rows), strict=True)
    }


def datasketch_seed(signer: Signer) -> int:
    """A seed that only signatures of equal parameters share; never a small number, as people choose them."""
    return xxhash.xxh3_64_intdigest(_parameters(signer).encode()) >> 2 | 1 << 61


def _parameters(signer: Signer) -> str:
    return json.dumps({"version": VERSION, **dataclasses.asdict(signer)}, sort_keys=True)
