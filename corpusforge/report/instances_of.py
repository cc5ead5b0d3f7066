"""The instances of one document, out of a folder of build-instances.

Comes in: the folder, and which document: the key that rows carry, the first characters of it, or its id in DOCUMENTS.
Goes out: rich renderables. The one decision: all 32 digits of an id are needed, because rows carry its 64-bit key, a
hash of the whole of it (`seeds.document_keys`).
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors, seeds, shards
from corpusforge.report import decoded
from corpusforge.shards import Manifest

ID_DIGITS, KEY_DIGITS = 32, 16
"""Hex digits of DOCUMENTS.id and of INSTANCES.document (`schemas`)."""


def show_instances_of(folder: str, manifest: Manifest, wanted: str, rows: int, skip: int) -> list[RenderableType]:
    """Its rows in each table, ``rows`` of them behind the first ``skip``.

    Raises `errors.InputMissing` where none or several documents are meant.
    """
    low, high = _keys(folder, wanted)
    shown: list[RenderableType] = []
    met: set[int] = set()
    for table in manifest.shards:
        found = []
        for path in manifest.paths(folder, table):
            for batch in shards.read_shard(path):
                keys = batch.column("document").to_numpy()
                if bool(((keys >= low) & (keys <= high)).any()):
                    found.append(batch.filter(pa.array((keys >= low) & (keys <= high))))
        if found:
            rows_of = pa.Table.from_batches(found)
            met |= set(pc.unique(rows_of["document"]).to_pylist())
            shown += _table(shards.join(folder, table), rows_of, rows, skip)
    if len(met) != 1:
        what = f"{len(met)} documents begin so" if met else "no instance is of that document"
        none = f"see keys with: corpusforge inspect {folder}/train; or write all {ID_DIGITS} digits of a document's id"
        raise errors.InputMissing(f"{folder}: {wanted}", what, "write more characters of the key" if met else none)
    return shown


def _table(path: str, found: pa.Table, rows: int, skip: int) -> list[RenderableType]:
    some = found.slice(skip, rows)
    said = f"rows {skip} to {skip + some.num_rows - 1} of {found.num_rows:,}" if some.num_rows else "no rows behind"
    title = Text(f"{path}, of this document: {said}", "bold")
    return [title, *decoded.show_instances(f"{path}/part", some)] if some.num_rows else [title]


def _keys(folder: str, wanted: str) -> tuple[np.uint64, np.uint64]:
    """The first and the last key that is meant."""
    digits = wanted.lower()
    if re.fullmatch(f"[0-9a-f]{{{ID_DIGITS}}}", digits):
        key = seeds.document_keys([digits])[0]
        return key, key
    if not re.fullmatch(f"[0-9a-f]{{1,{KEY_DIGITS}}}", digits):
        mend = f"write 1 to {KEY_DIGITS} hex digits of the key that rows show, or the {ID_DIGITS} of a document's id"
        raise errors.InputMissing(f"{folder}: {wanted}", "is neither a key nor an id", mend)
    return np.uint64(int(digits.ljust(KEY_DIGITS, "0"), 16)), np.uint64(int(digits.ljust(KEY_DIGITS, "f"), 16))
