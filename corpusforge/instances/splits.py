"""Choose which documents are held out of training: by the hash of their id, or of their URL as C4 does.

The draw depends only on what is known when a document is encoded, so nothing has to be looked up later. By URL all
pages of one normalized URL are in the same part, whatever the seed, and 0.001 gives C4's own validation part
(tensorflow-datasets 4.9.10, ``text/c4.py``: MD5 of the normalized URL modulo 1000 is 0). A document without a URL is
drawn by its id.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import seeds
from corpusforge.arrays import U64, Bools
from corpusforge.clean.urls import md5_remainders, normalize_urls

SPLITS = ("train", "heldout")
"""The two parts of a corpus, and the names of their tables."""

DRAWS = 1000
"""Draws of URLs are 0 to 999 (tensorflow-datasets 4.9.10, ``text/c4.py``)."""

DRAW = pa.field("draw", pa.uint16())
"""A further column of TOKENS. Null: drawn by the document's id."""


def with_draws(tokens: pa.RecordBatch, documents: pa.RecordBatch) -> pa.RecordBatch:
    """TOKENS with the draws of their documents, which are in the same order."""
    urls = normalize_urls(documents["url"])
    unknown = pc.fill_null(pc.equal(urls, ""), True)
    draws = pa.array(md5_remainders(urls, DRAWS).astype(np.uint16), mask=np.asarray(unknown, bool))
    return pa.RecordBatch.from_arrays([*tokens.columns, draws], schema=schema_with_draws(tokens.schema))


def schema_with_draws(schema: pa.Schema) -> pa.Schema:
    """The schema of TOKENS with draws."""
    return schema.append(DRAW)


def is_heldout(documents: U64, seed: int, share: float) -> Bools:
    """Which documents are held out for evaluation, by their keys."""
    return np.asarray(seeds.uniforms(seed, "heldout", documents) < share)


def split_tokens(tokens: pa.RecordBatch, seed: int, share: float) -> dict[str, pa.RecordBatch]:
    """The training and the held-out documents of a TOKENS batch; parts without documents are left out."""
    heldout = is_heldout(seeds.document_keys(tokens.column("document").to_pylist()), seed, share)
    if DRAW.name in tokens.schema.names:
        draws = tokens.column(DRAW.name)
        limit = round(share * DRAWS, 6)  # 0.029 * 1000 is 29.000000000000004
        heldout = np.asarray(pc.if_else(draws.is_valid(), pc.less(draws.cast(pa.float64()), limit), pa.array(heldout)))
    parts = dict(zip(SPLITS, (~heldout, heldout), strict=True))
    return {
        split: tokens if rows.all() else tokens.filter(pa.array(rows)) for split, rows in parts.items() if rows.any()
    }
