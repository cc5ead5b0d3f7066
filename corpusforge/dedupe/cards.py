"""What others must know of a document to be compared with it: its card.

Comes in: DOCUMENTS batches. Goes out: CARDS batches and band hashes; the similarity of rows of two CARDS batches. The
one decision: a card holds the shingles and not the text, about as many bytes, so that wherever cards meet documents are
compared by their true similarity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusforge.arrays import F32, I64, U64
from corpusforge.dedupe.jaccard import jaccard
from corpusforge.dedupe.lsh import Bands, band_hashes
from corpusforge.dedupe.minhash import Sets, Signer
from corpusforge.dedupe.spans import column_spans
from corpusforge.dedupe.survivors import survivor_order
from corpusforge.dedupe.words import whole_documents
from corpusforge.seeds import document_keys

CARDS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("order", pa.int64(), nullable=False),  # survivors.survivor_order
        pa.field("key", pa.uint64(), nullable=False),  # seeds.document_keys
        pa.field("shingles", pa.list_(pa.uint32()), nullable=False),  # hashes; none: the document has no words
    ]
)
"""One row a document."""


class Signed(NamedTuple):
    """Cards of a batch, and what finds the pairs worth comparing."""

    cards: pa.RecordBatch
    hashes: U64  # of the shingles (`Sets.fingerprints`); 0: the document has no words
    bands: U64  # [n, bands]


def sign_cards(documents: pa.RecordBatch, signer: Signer, bands: Bands, survivor: str) -> Signed:
    """Cards, signature hashes and band hashes of a batch, in its order."""
    sets = signer.shingles(whole_documents(documents.column("text"))).document_sets()
    signatures, _ = signer.sign(sets)
    sizes = sets.stops - sets.starts
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(cuts[-1]) + np.repeat(sets.starts - cuts[:-1], sizes)
    columns = [
        documents.column("id"),
        pa.array(survivor_order(documents, survivor)),
        pa.array(document_keys(documents.column("id").to_pylist())),
        pa.ListArray.from_arrays(pa.array(cuts.astype(np.int32)), pa.array(sets.hashes[rows])),
    ]
    cards = pa.RecordBatch.from_arrays(columns, schema=CARDS)
    return Signed(cards, sets.fingerprints(), band_hashes(signatures, bands))


def similarities(left: pa.RecordBatch, rows: I64, right: pa.RecordBatch, other_rows: I64) -> F32:
    """The Jaccard similarity of these rows of two CARDS batches, pair by pair; all have words."""
    sides = []
    for cards, chosen in ((left, rows), (right, other_rows)):
        hashes, offsets = column_spans(cards.column("shingles"))
        sides.append(Sets(hashes, offsets[chosen], offsets[chosen + 1]))
    return jaccard(*sides)
