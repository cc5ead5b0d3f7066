"""The data dictionary: the schema of every table that one room passes to another, field by field.

Comments give types, units, and the meaning of 0 and null. Terms: a *segment* is BERT's A or B, a *span*
is a run of sentences (deduplication) or tokens (masking), a *shard* is a file, a *batch* is named tensors in the
trainer and an Arrow RecordBatch elsewhere.
"""

from __future__ import annotations

import pyarrow as pa

REASON = pa.dictionary(pa.int16(), pa.string())
"""Why something was dropped, e.g. ``"line:few-words"``. Never null for dropped rows."""

DOCUMENTS = pa.schema(
    [
        # 32 hex digits: xxh3-128 of (source, position), of rows in a pipeline of (URL, text). Same input, same id, for
        # any grouping into shards.
        pa.field("id", pa.string(), nullable=False),
        # Where the page was fetched from, as recorded by the crawl. Null: the input has no URLs.
        pa.field("url", pa.string()),
        # Input file relative to the input folder, "/" between parts; a hub name for datasets.
        pa.field("source", pa.string(), nullable=False),
        # Number of the record in its source, counted from 0 (byte offset of the line for split text files; 0 of rows in
        # a pipeline, which have no order).
        pa.field("position", pa.int64(), nullable=False),
        # When it was crawled or written, UTC, whole seconds. Null: unknown.
        pa.field("timestamp", pa.timestamp("s", tz="UTC")),
        # ISO 639-1 code, from a detector or from the input. Null: not determined.
        pa.field("language", pa.string()),
        # The text: valid UTF-8 without NUL, lines separated by "\n". Never null; may be empty.
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""One row per document, e.g. ``("9f..", "http://a.org/", "crawl/a.warc.gz", 17, 2024-05-18T01:58:10Z, None, "A")``."""

REJECTS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id it has or would have had
        pa.field("url", pa.string()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        # Number of the line in its text, from 0. Null: the whole page or record was dropped.
        pa.field("line", pa.int32()),
        pa.field("reason", REASON, nullable=False),
        # The step of cleaning that dropped it: a pack ("c4-tfds-3.1"), "language", "urls". Null: the reader.
        pa.field("step", REASON),
        # What the rule measured ("4 words", "nl 0.87", an exception's text). Null: nothing beyond the reason.
        pa.field("detail", pa.string()),
        # The dropped line, or the whole page; of unreadable records what could be decoded, else "".
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""One row per dropped record (``record:*``), page (``page:*``) or line (``line:*``)."""

REPEATS = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # the document that lost text
        pa.field("reason", REASON, nullable=False),  # "span:repeated", or "page:few-sentences" for what was left
        pa.field("start", pa.int64(), nullable=False),  # byte offset in that document's text before removal
        pa.field("stop", pa.int64(), nullable=False),  # byte offset after the last byte removed
        pa.field("text", pa.string(), nullable=False),  # the removed text
        # The document with the copy that was kept when the method ran. Another row, of the same method or of a later
        # one, may remove that copy too (the report follows such chains). "page:in-index": the copy is in another run,
        # whose ids may be the same: "index:", the first 8 digits of the content digest of its signatures (in that run's
        # manifest.json), ":" and the id there. Null: no copy was kept; too little of the page was left.
        pa.field("kept_document", pa.string()),
        # Byte offset of that copy in the input text of the stage; 0 for whole pages. Null: as above, or unknown
        # (of a document of an index).
        pa.field("kept_start", pa.int64()),
        pa.field("method", REASON, nullable=False),  # "lines", "exact-spans", "near-spans", "documents"
        # Jaccard similarity of the word shingles of the two (0 to 1): of the sets themselves, and estimated from
        # signatures only for "page:in-index". Null: they are equal, or no copy was kept.
        pa.field("similarity", pa.float32()),
    ]
)
"""One row per passage of text removed by deduplication."""

CLUSTERS = pa.schema(
    [
        # The kept document, which identifies the cluster (of an index: named as in REPEATS). A method after `documents`
        # may still cut or drop it. Folders of older versions call this column "survivor".
        pa.field("kept", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),  # a document of the cluster; the kept one too
        pa.field("size", pa.int64(), nullable=False),  # documents of the cluster, those of an index too
        # Jaccard similarity of its word shingles to those of the kept document (0 to 1): below the threshold where
        # others connect the two; estimated from signatures where the kept document is one of an index.
        pa.field("similarity", pa.float32(), nullable=False),
    ]
)
"""One row per document that resembles another, with its cluster. Documents of an index have no rows."""


def token_type(vocab_size: int) -> pa.DataType:
    """The smallest unsigned type that holds every id of a vocabulary.

    >>> token_type(30_528)
    DataType(uint16)
    """
    return pa.uint16() if vocab_size <= 1 << 16 else pa.uint32()


def tokens_schema(vocab_size: int, *, word_starts: bool = False) -> pa.Schema:
    """TOKENS: one row per document, sentences already encoded, no special ids in them.

    ``word_starts``: with a column of which tokens begin a mask unit.
    """
    fields = [
        pa.field("document", pa.string(), nullable=False),  # DOCUMENTS.id
        pa.field("ids", pa.list_(token_type(vocab_size)), nullable=False),  # all sentences, one after another
        pa.field("sentences", pa.list_(pa.int32()), nullable=False),  # tokens of each sentence; never 0
    ]
    if word_starts:
        fields += [pa.field("word_starts", pa.list_(pa.bool_()), nullable=False)]  # one per token of ids
    return pa.schema(fields)


def instances_schema(vocab_size: int, *, masks: bool, word_starts: bool = False) -> pa.Schema:
    """INSTANCES: one row per training example.

    ``masks``: whether masks are stored with the row (static, duplicated) or drawn by the loader (dynamic).
    With stored masks ``input_ids`` are what the model sees and ``masked_labels`` the originals.
    ``word_starts``: with a column of which tokens begin a mask unit, where that is not the token.
    """
    ids = token_type(vocab_size)
    fields = [
        pa.field("input_ids", pa.list_(ids), nullable=False),  # [CLS] A [SEP] or [CLS] A [SEP] B [SEP]
        # Tokens of segment A with [CLS] and its [SEP], and of segment B with its [SEP]; second 0: one segment only.
        pa.field("segment_lengths", pa.list_(pa.uint16(), 2), nullable=False),
        pa.field("pair_label", pa.int8()),  # 0: B continues A; 1: from elsewhere, or swapped; null: no pair
        pa.field("document", pa.uint64(), nullable=False),  # seeds.document_keys of the document A is from
        pa.field("index", pa.uint32(), nullable=False),  # number of the instance in its document and copy, from 0
        pa.field("copy", pa.uint16(), nullable=False),  # which duplicate of the corpus; 0 for static and dynamic
        pa.field("length", pa.uint16(), nullable=False),  # len(input_ids), for batching without reading ids
    ]
    if word_starts:
        fields += [pa.field("word_starts", pa.list_(pa.bool_()), nullable=False)]  # one per token; specials: true
    if masks:
        fields += [
            pa.field("masked_positions", pa.list_(pa.uint16()), nullable=False),  # ascending positions in input_ids
            pa.field("masked_labels", pa.list_(ids), nullable=False),  # the original id at each of them
        ]
    return pa.schema(fields)
