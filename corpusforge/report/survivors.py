"""What became of the copies that rows of REPEATS name: each may have been cut itself, by a later row or method.

Comes in: a deduplicated stage's folder and some of its rows of REPEATS. Goes out: for each the rows that took its copy,
the copy of that copy, and so on. The one decision: rows are written when a method runs and name what it compared with;
what became of that afterwards is looked up here, where a person asks, and not kept twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import shards
from corpusforge.shards import Manifest

Row = dict[str, Any]
"""A row of REPEATS."""

HOPS = 16
"""Rows followed at most; each costs a look through the table."""

_HEAD, _LEAST = 24, 6
"""Letters by which a piece is known again, a few words; and at the end of a text, where it is cut short."""

_SLACK = 0.1
"""Copies that count as equal may differ in length by white space, punctuation and case: so much of it, at most."""

IN_INDEX = "page:in-index"
"""The copy is in another run."""


def trails(folder: str, manifest: Manifest, cuts: Sequence[Row]) -> list[list[Row]]:
    """For each row the row that took its copy, then the row that took the copy of that, until one stands."""
    found: list[list[Row]] = [[] for _ in cuts]
    last = dict(enumerate(cuts))
    methods = list(manifest.recipe.get("dedupe", {}).get("method", []))
    for _ in range(HOPS):
        last = {k: row for k, row in last.items() if row["kept_document"] is not None and row["reason"] != IN_INDEX}
        of = _rows_of(manifest, folder, {row["kept_document"] for row in last.values()})
        taken = {k: _taker(row, _since(row, of.get(row["kept_document"], []), methods)) for k, row in last.items()}
        took = {k: _carried(last[k], row) for k, row in taken.items() if row is not None}
        last = {k: row for k, row in took.items() if row not in found[k]}
        for k, row in last.items():  # a few rows: those of the document that is shown
            found[k].append(row)
    return found


def told(cut: Row, trail: Sequence[Row]) -> str:
    """Where a row's copy is kept, and what became of it.

    >>> cut = {"document": "a", "kept_document": "b", "kept_start": 5, "reason": "line:repeated", "method": "lines"}
    >>> gone = {**cut, "document": "b", "kept_document": None, "kept_start": None, "reason": "page:few-words"}
    >>> told(cut, []), told(cut, [gone])
    ('kept in b at byte 5', 'kept in b at byte 5, which itself was dropped by lines (page:few-words)')
    """
    if cut["kept_document"] is None:
        return ""
    first, said = cut, _place(cut)
    for row in trail:
        done = "dropped" if _is_page(row) else "cut"
        said += f", {_how_much(cut, row)} was {done} by {row['method']} ({row['reason']})"
        if row["kept_document"] is not None:
            said += f" and {_place(row)}"
        cut = row
    if trail and _is_page(cut) and cut["kept_document"] == first["document"]:
        said += ", which is this document: no copy of it need be left"
    return said + (", and so on" if len(trail) == HOPS else "")


def _how_much(cut: Row, row: Row) -> str:
    if _is_page(row):
        return "which itself"
    if not _begins_in(cut, row):
        return "part of which"
    size = len(cut["text"].encode())
    return "which itself" if row["stop"] - cut["kept_start"] >= (1 - _SLACK) * size else "the beginning of which"


def _place(row: Row) -> str:
    if row["reason"] == IN_INDEX:
        return f"kept in {row['kept_document']} of an index"
    at = "" if row["kept_start"] is None or _is_page(row) else f" {row.get('at', 'at')} byte {row['kept_start']}"
    return f"kept in {row['kept_document']}{at}"


def _rows_of(manifest: Manifest, folder: str, documents: set[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    wanted = pa.array(sorted(documents), pa.string())
    for path in manifest.paths(folder, "repeats") if documents else []:
        for batch in shards.read_shard(path):
            hits = batch.filter(pc.is_in(batch.column("document"), value_set=wanted))
            for row in hits.to_pylist() if hits.num_rows else []:
                found.setdefault(row["document"], []).append(row)
    return found


def _since(cut: Row, rows: Sequence[Row], methods: Sequence[str]) -> list[Row]:
    """Rows of the method that names the copy and of those behind it: what went before was no part of the copy."""
    if cut["method"] not in methods:
        return list(rows)
    return [row for row in rows if row["method"] in methods[methods.index(cut["method"]) :]]


def _taker(cut: Row, rows: Sequence[Row]) -> Row | None:
    """Of the rows of the document with the copy the one that took the copy, or a part of it."""
    pages = [row for row in rows if _is_page(row)]
    pieces = [] if _is_page(cut) else [row for row in rows if not _is_page(row)]
    begun = [row for row in pieces if _begins_in(cut, row)]
    shared = [row for row in pieces if _shares(cut, row)]
    if begun:  # inside a row may lie what an earlier method had cut: the shorter of two is the earlier one
        return min(begun, key=lambda row: row["stop"] - row["start"])
    return next(iter((*pages, *shared)), None)


def _carried(cut: Row, row: Row) -> Row:
    """The row that took a copy, with its own copy begun where that of the cut lies in it.

    Copies that count as equal may differ in length, so that this is a place near by.
    """
    if _is_page(row) or _is_page(cut) or not _begins_in(cut, row):
        return row
    inside = cut["kept_start"] - row["start"]
    text = cut["text"].encode()[: row["stop"] - cut["kept_start"]].decode("utf-8", "ignore")
    return {**row, "kept_start": row["kept_start"] + inside, "at": "near" if inside else "at", "text": text}


def _is_page(row: Row) -> bool:
    return bool(row["reason"].startswith("page:"))


def _begins_in(cut: Row, row: Row) -> bool:
    """Whether the copy of ``cut`` begins in what ``row`` took."""
    return bool(row["start"] <= cut["kept_start"] < row["stop"])


def _shares(cut: Row, row: Row) -> bool:
    """Whether ``row`` took a later part of the copy: it lies there, and begins with words of the cut.

    Copies that count as equal may differ in length, so places alone do not tell where the copy ends.
    """
    if not cut["kept_start"] < row["start"] < cut["kept_start"] + len(cut["text"].encode()):
        return False
    taken, copy = _letters(row["text"])[:_HEAD], _letters(cut["text"])
    places = (k for k in range(len(copy)) if copy.startswith(taken[:_LEAST], k))
    return any(taken.startswith(copy[k : k + len(taken)]) for k in places)


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
