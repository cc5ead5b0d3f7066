"""Which of many equal or similar documents stays: a total order on what they are, never on when they came.

Comes in: DOCUMENTS batches. Goes out: a number a document; the smaller survives. Where numbers are equal the smaller
document key does (`seeds.document_keys`), and inside a document the earlier position.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64
from corpusforge.text import text_bytes


def survivor_order(documents: pa.RecordBatch, survivor: str) -> I64:
    """The order that ``dedupe.survivor`` asks for: all 0 for ``hash``; the newest or the longest text first.

    Documents without a time come behind those with one. Length is in bytes of UTF-8.

    >>> survivor_order(pa.record_batch({"text": ["ab", "abc"]}), "longest").tolist()
    [-2, -3]
    """
    if survivor == "longest":
        return -np.diff(text_bytes(documents.column("text"))[1])
    if survivor == "newest":
        seconds = documents.column("timestamp").cast(pa.timestamp("s", tz="UTC")).cast(pa.int64())
        latest: I64 = pc.fill_null(seconds, np.iinfo(np.int64).min + 1).to_numpy(zero_copy_only=False)
        return -latest
    return np.zeros(documents.num_rows, np.int64)
