"""Examples for a report: dropped lines and pages by reason, and duplicates beside the kept copy.

Only the first rows of the shards are read, so that a report does not take longer than the run; a rare reason may have
no example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors, shards

PER_REASON = 4
ROWS_READ = 400_000
"""Most rows read of a table: about a second."""

REPEATS_SHOWN = 12
CONTEXT_BYTES = 160
"""Bytes shown before and after a kept copy."""


@dataclass(frozen=True)
class Dropped:
    """The columns of a row of REJECTS that are shown. ``line``: -1 for whole pages."""

    reason: str
    where: str
    line: int
    detail: str
    text: str


@dataclass(frozen=True)
class Repeat:
    """A row of REPEATS. ``kept``: (text before, the copy, text after) in the document of the kept copy."""

    reason: str
    document: str
    text: str
    kept_document: str
    kept: tuple[str, str, str] | None


def dropped(paths: Sequence[str]) -> dict[str, list[Dropped]]:
    """Up to `PER_REASON` rows with different texts for every reason in the shards of REJECTS."""
    examples: dict[str, list[Dropped]] = {}
    for batch in _batches(paths):
        reasons = batch.column("reason").cast(pa.string())
        for reason in pc.unique(reasons).to_pylist():  # a loop over reasons, of which there are a few dozen
            rows = examples.setdefault(reason, [])
            if len(rows) < PER_REASON:
                picked = batch.filter(pc.equal(reasons, reason)).slice(0, 64 * PER_REASON)
                _add(rows, picked.to_pylist())
    return examples


def _add(rows: list[Dropped], picked: list[dict[str, Any]]) -> None:
    seen = {row.text for row in rows}
    for row in picked:
        blank = row["line"] is not None and not row["text"]  # blank lines are dropped too, but show nothing
        if len(rows) < PER_REASON and row["text"] not in seen and not blank:
            seen.add(row["text"])
            line = -1 if row["line"] is None else row["line"]
            where = row["url"] or f"{row['source']} #{row['position']}"
            rows.append(Dropped(row["reason"], where, line, row["detail"] or "", row["text"]))


def repeats(paths: Sequence[str], documents: Sequence[str]) -> list[Repeat]:
    """Up to `REPEATS_SHOWN` removed duplicates, most frequent texts first.

    ``documents``: shards in which the kept copies are looked up.
    """
    rows: list[dict[str, Any]] = []
    for batch in _batches(paths):
        rows += batch.slice(0, 2000).to_pylist()
    spans = [row for row in rows if row["kept_document"] is not None]
    counts: dict[str, int] = {}
    for row in spans:
        counts[row["text"]] = counts.get(row["text"], 0) + 1
    chosen: dict[str, dict[str, Any]] = {}
    for row in sorted(spans, key=lambda row: (-counts[row["text"]], row["text"])):
        chosen.setdefault(row["text"], row)
    picked = list(chosen.values())[:REPEATS_SHOWN]
    texts = _find_texts(documents, {row["kept_document"] for row in picked})
    return [
        Repeat(row["reason"], row["document"], row["text"], row["kept_document"], _around(texts, row)) for row in picked
    ]


def _around(texts: dict[str, str], row: dict[str, Any]) -> tuple[str, str, str] | None:
    text = texts.get(row["kept_document"])
    if text is None:
        return None
    data, start = text.encode(), row["kept_start"] or 0  # of a whole document, the beginning is shown
    stop = start + len(row["text"].encode())
    parts = (data[max(0, start - CONTEXT_BYTES) : start], data[start:stop], data[stop : stop + CONTEXT_BYTES])
    before, copy, after = (part.decode("utf-8", "ignore") for part in parts)
    return before, copy, after


def _find_texts(paths: Sequence[str], ids: set[str]) -> dict[str, str]:
    """Texts of documents by id, of those among the first rows of the shards."""
    texts: dict[str, str] = {}
    wanted = pa.array(sorted(ids), pa.string())
    for batch in _batches(paths):
        hits = batch.filter(pc.is_in(batch.column("id"), value_set=wanted))
        texts |= dict(zip(hits.column("id").to_pylist(), hits.column("text").to_pylist(), strict=True))
        if len(texts) == len(ids):
            break
    return texts


def _batches(paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    left = ROWS_READ
    for path in paths:
        try:
            for batch in shards.read_shard(path):
                yield batch
                left -= batch.num_rows
                if left <= 0:
                    return
        except errors.ManifestInvalid:
            continue  # the shards were moved or damaged: the numbers in the manifest are shown without examples
