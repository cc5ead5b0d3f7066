"""Examples for a report: dropped lines and pages by reason, and duplicates beside the kept copy.

Only the beginning of the shards is read (a report must not take longer than the run), so a rare reason may have no
example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors, shards

PER_REASON = 4
ROWS_READ = 400_000
"""Most rows looked at: about a second of reading."""


@dataclass(frozen=True)
class Dropped:
    """The shown columns of a row of REJECTS. ``line``: -1 for whole pages."""

    reason: str
    where: str
    line: int
    detail: str
    text: str


@dataclass(frozen=True)
class Repeat:
    """A row of REPEATS and the place of its kept copy. ``kept``: (text before, the copy, text after) there."""

    reason: str
    document: str
    text: str
    kept_document: str
    kept: tuple[str, str, str] | None


def dropped(paths: Sequence[str], each: int = PER_REASON) -> dict[str, list[Dropped]]:
    """Up to ``each`` rows for every reason of the rejects shards, no text twice."""
    found: dict[str, list[Dropped]] = {}
    for batch in _batches(paths):
        reasons = batch.column("reason").cast(pa.string())
        for reason in pc.unique(reasons).to_pylist():  # a loop over reasons, of which there are a few dozen
            rows = found.setdefault(reason, [])
            if len(rows) < each:
                picked = batch.filter(pc.equal(reasons, reason)).slice(0, 64 * each)
                _add(rows, picked.to_pylist(), each)
    return found


def _add(rows: list[Dropped], picked: list[dict[str, Any]], each: int) -> None:
    seen = {row.text for row in rows}
    for row in picked:
        blank = row["line"] is not None and not row["text"]  # blank lines are dropped too, and show nothing
        if len(rows) < each and row["text"] not in seen and not blank:
            seen.add(row["text"])
            line = -1 if row["line"] is None else row["line"]
            where = row["url"] or f"{row['source']} #{row['position']}"
            rows.append(Dropped(row["reason"], where, line, row["detail"] or "", row["text"]))


def repeats(paths: Sequence[str], documents: Sequence[str], most: int = 12) -> list[Repeat]:
    """Up to ``most`` removed duplicates, most frequent texts first, with kept copies looked up in ``documents``."""
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
    picked = list(chosen.values())[:most]
    texts = find_texts(documents, {row["kept_document"] for row in picked})
    return [
        Repeat(row["reason"], row["document"], row["text"], row["kept_document"], _around(texts, row)) for row in picked
    ]


def _around(texts: dict[str, str], row: dict[str, Any], margin: int = 160) -> tuple[str, str, str] | None:
    text = texts.get(row["kept_document"])
    if text is None:
        return None
    data, start = text.encode(), row["kept_start"] or 0  # a whole document has no place in the other
    stop = start + len(row["text"].encode())
    parts = (data[max(0, start - margin) : start], data[start:stop], data[stop : stop + margin])
    before, copy, after = (part.decode("utf-8", "ignore") for part in parts)
    return before, copy, after


def find_texts(paths: Sequence[str], ids: set[str]) -> dict[str, str]:
    """Texts of documents by id, as far as they are found in the beginning of the shards."""
    found: dict[str, str] = {}
    wanted = pa.array(sorted(ids), pa.string())
    for batch in _batches(paths):
        hits = batch.filter(pc.is_in(batch.column("id"), value_set=wanted))
        found |= dict(zip(hits.column("id").to_pylist(), hits.column("text").to_pylist(), strict=True))
        if len(found) == len(ids):
            break
    return found


def _batches(paths: Sequence[str]) -> Any:
    left = ROWS_READ
    for path in paths:
        try:
            for batch in shards.read_shard(path):
                yield batch
                left -= batch.num_rows
                if left <= 0:
                    return
        except errors.ManifestInvalid:
            continue  # shards may have been moved away since; the numbers in the manifest stand without examples
