"""Signatures as a table that says how they were taken, for an index on disk and for datasketch.

Comes in: document ids and their signatures. Goes out: Arrow batches ``(document, signature)`` whose schema carries the
signer's parameters; from such batches the `Signer`, or datasketch's ``LeanMinHash`` objects, which ``MinHashLSH`` and
its relatives insert and query.

Decision: what was signed differently is never compared. The schema's parameters are checked against the signer's
(`check_signer`), and for datasketch they become the objects' seed: ``LeanMinHash.jaccard`` refuses another seed.
datasketch's own permutations are others than these, so both sides of a comparison must be signed by CorpusForge.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xxhash

from corpusforge import errors
from corpusforge.arrays import U32, Bools
from corpusforge.dedupe.minhash import Signer

if TYPE_CHECKING:
    from datasketch import LeanMinHash

METADATA = b"corpusforge:signer"
"""Key of the schema's metadata: the signer's parameters as JSON."""

VERSION = 1
"""Raised when the same parameters give other signatures."""


def signatures_schema(signer: Signer) -> pa.Schema:
    """SIGNATURES: one row a document that has words.

    >>> signatures_schema(Signer(permutations=16)).names
    ['document', 'signature']
    """
    fields = [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("signature", pa.list_(pa.uint32(), signer.permutations), nullable=False),  # the minima, all odd
    ]
    return pa.schema(fields, {METADATA: _parameters(signer).encode()})


def signature_rows(documents: pa.StringArray, signatures: U32, real: Bools, signer: Signer) -> pa.RecordBatch:
    """SIGNATURES rows of the documents that have one, as `Signer.document_signatures` gives them."""
    values = pa.array(signatures[real].ravel())
    lists = pa.FixedSizeListArray.from_arrays(values, signer.permutations)
    return pa.RecordBatch.from_arrays([documents.filter(pa.array(real)), lists], schema=signatures_schema(signer))


def signature_matrix(rows: pa.RecordBatch) -> U32:
    """The signatures of SIGNATURES rows, ``uint32[n, permutations]``, without copying."""
    column = rows.column("signature")
    return np.asarray(column.flatten().to_numpy()).reshape(len(column), column.type.list_size)


def read_signer(schema: pa.Schema, where: str) -> Signer:
    """How the rows of a table were signed. ``where``: the file, for errors."""
    found = json.loads((schema.metadata or {}).get(METADATA, b"{}"))
    if found.pop("version", None) != VERSION:
        message = "the table does not say how its signatures were taken, or another version took them"
        raise errors.StageMismatch(where, message, "sign the documents again with this version")
    return Signer(**found)


def check_signer(schema: pa.Schema, signer: Signer, where: str) -> None:
    """Refuse signatures that were taken with other parameters."""
    found = read_signer(schema, where)
    if found != signer:
        old, new = dataclasses.asdict(found), dataclasses.asdict(signer)
        differing = ", ".join(f"{name} {old[name]}, not {new[name]}" for name in new if old[name] != new[name])
        raise errors.StageMismatch(where, f"signed with {differing}", "use the settings that it was signed with")


def to_datasketch(rows: pa.RecordBatch, where: str = "signatures") -> dict[str, LeanMinHash]:
    """datasketch's object of every row, by document id.

    Their values are 32-bit, as under datasketch's scheme "affine32", which is of the same form as ours.
    """
    try:
        from datasketch import LeanMinHash
    except ImportError as error:
        raise errors.ExtraMissing(where, "datasketch is not installed", "pip install 'datasketch>=2'") from error
    seed = datasketch_seed(read_signer(rows.schema, where))
    # Python loop with a reason: datasketch's unit is an object.
    return {
        document: LeanMinHash(seed=seed, hashvalues=signature, scheme="affine32")
        for document, signature in zip(rows.column("document").to_pylist(), signature_matrix(rows), strict=True)
    }


def datasketch_seed(signer: Signer) -> int:
    """A seed that only signatures of equal parameters share; never a small number, as people choose them."""
    return xxhash.xxh3_64_intdigest(_parameters(signer).encode()) >> 2 | 1 << 61


def _parameters(signer: Signer) -> str:
    return json.dumps({"version": VERSION, **dataclasses.asdict(signer)}, sort_keys=True)
