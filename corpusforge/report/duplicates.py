"""What deduplication did to one document: the text before with its cuts marked, and where each copy is kept now.

A row of REPEATS names the copy that was kept when its method ran. A later row or method may have removed that copy in
turn; `follow_copies` follows it when a person asks, so that it is not stored twice. The text before is not stored twice
either: it is read from the stage that was deduplicated, if that folder is still beside this one. Marks are characters
and colors both, so that a pipe shows what a terminal does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors, shards
from corpusforge.report.plain import visible
from corpusforge.report.tables import reason_style
from corpusforge.shards import Manifest

Row = dict[str, Any]
"""A row of REPEATS."""

HOPS = 16
"""Rows followed at most; each costs a look through the table."""

_HEAD, _LEAST = 24, 6
"""Letters that identify a passage: a few words; and fewer at the truncated end of a text."""

_SLACK = 0.1
"""Copies that count as equal may differ in length by white space, punctuation and case: so much of it, at most."""

IN_INDEX = "page:in-index"
"""The copy is in another run."""


def follow_copies(folder: str, manifest: Manifest, cuts: Sequence[Row]) -> list[list[Row]]:
    """For each row: the row that removed its kept copy, then the row that removed that row's copy, and so on."""
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


def describe_copy(cut: Row, trail: Sequence[Row]) -> str:
    """Where the copy of a row was kept, and what happened to it later.

    >>> cut = {"document": "a", "kept_document": "b", "kept_start": 5, "reason": "line:repeated", "method": "lines"}
    >>> gone = {**cut, "document": "b", "kept_document": None, "kept_start": None, "reason": "page:few-words"}
    >>> describe_copy(cut, []), describe_copy(cut, [gone])
    ('kept in b at byte 5', 'kept in b at byte 5, which itself was dropped by lines (page:few-words)')
    """
    if cut["kept_document"] is None:
        return ""
    first, text = cut, _place(cut)
    for row in trail:
        done = "dropped" if _is_page(row) else "cut"
        text += f", {_how_much(cut, row)} was {done} by {row['method']} ({row['reason']})"
        if row["kept_document"] is not None:
            text += f" and {_place(row)}"
        cut = row
    if trail and _is_page(cut) and cut["kept_document"] == first["document"]:
        text += ", which is this document: no copy of it need be left"
    return text + (", and so on" if len(trail) == HOPS else "")


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
    """Rows of the method that names the copy and of later methods: earlier cuts were no part of the copy."""
    if cut["method"] not in methods:
        return list(rows)
    return [row for row in rows if row["method"] in methods[methods.index(cut["method"]) :]]


def _taker(cut: Row, rows: Sequence[Row]) -> Row | None:
    """Of the rows of the document with the copy, the one that removed the copy or a part of it."""
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


COLORS = {"lines": "yellow", "exact-spans": "red", "near-spans": "magenta", "documents": "cyan"}
OTHER = "blue"
"""Of a method that this version does not know."""


class Before(NamedTuple):
    """The text as it entered the stage. ``why_not``: one line explaining why it is None, else ""."""

    text: str | None
    why_not: str


def text_before(folder: str, manifest: Manifest, document: str) -> Before:
    """The text as it entered the stage, if the stage it came from is still beside this one and readable."""
    if shards.is_remote(folder):
        return Before(None, "the text before is not shown: it is only searched for beside local folders")
    trouble = "no folder beside this one holds the deduplicated text"
    try:
        for beside, upstream in _beside(folder):
            if upstream.content.get("documents") == manifest.upstream.get("documents"):
                try:
                    text = _text_of(upstream.paths(beside, "documents"), document)
                except (OSError, errors.CorpusForgeError) as error:
                    trouble = " ".join(str(error).split())  # another folder may hold a copy that can be read
                    continue
                if text is not None:
                    return Before(text, "")
    except OSError as error:
        trouble = f"{error.filename}: {error.strerror}"
    return Before(None, f"the text before is missing: {visible(trouble)}")


def _beside(folder: str) -> Iterator[tuple[str, Manifest]]:
    """The finished stages in the parent folder of this one; anything else there is skipped."""
    for beside in sorted(Path(folder).resolve().parent.iterdir()):
        try:
            found = Manifest.load(str(beside)) if beside.is_dir() else None
        except (OSError, errors.CorpusForgeError):
            continue
        if found:
            yield str(beside), found


def _text_of(paths: Sequence[str], document: str) -> str | None:
    for path in paths:
        for batch in shards.read_shard(path):
            row = pc.index(batch.column("id"), document).as_py()
            if row >= 0:
                return str(batch.column("text")[row].as_py())
    return None


def mark_cuts(text: str, cuts: Sequence[dict[str, Any]]) -> Text:
    """The text with every cut between marks, in the color of its method; ``cuts``: rows of REPEATS.

    If several methods cut it, each mark names its method. Text dropped with its page is marked as well.

    >>> row = {"reason": "span:repeated", "method": "exact-spans", "start": 4, "stop": 8}
    >>> page = {"reason": "page:few-words", "method": "exact-spans", "start": 0, "stop": 11}
    >>> mark_cuts("One. Two. Three.", [row]).plain, mark_cuts("One. Two. Three.", [row, page]).plain
    ('One.[- Two-]. Three.', '[-page:few-words: One.-][-exact-spans:  Two-][-page:few-words: . Three.-]')
    """
    raw = text.encode()
    owner = np.full(len(raw), -1)
    names = list(dict.fromkeys(_name(cut) for cut in cuts))
    methods = {_name(cut): cut["method"] for cut in cuts}
    # A dropped page is the rest after all cuts, so its marks are drawn first. A cut may contain an earlier method's
    # cut: the shorter of two rows is the earlier one, and drawn on top.
    for cut in sorted(cuts, key=lambda row: (not _is_page(row), row["start"] - row["stop"])):
        place = slice(None) if _is_page(cut) else slice(cut["start"], cut["stop"])
        owner[place] = names.index(_name(cut))
    edges = np.r_[0, np.flatnonzero(np.diff(owner)) + 1, len(raw)]
    shown = Text()
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        piece = "\n".join(visible(line) for line in raw[first:last].decode(errors="replace").split("\n"))
        name = names[owner[first]] if first < last and owner[first] >= 0 else ""
        label = f"{name}: " if len(names) > 1 else ""
        shown.append(f"[-{label}{piece}-]" if name else piece, COLORS.get(methods[name], OTHER) if name else "")
    return shown


def _name(cut: dict[str, Any]) -> str:
    return str(cut["reason"] if _is_page(cut) else cut["method"])


def show_before(folder: str, manifest: Manifest, document: str, cuts: Sequence[Row]) -> list[RenderableType]:
    """The text as it entered the stage, and why the page was dropped if it was; nothing if no text was removed."""
    if not cuts:
        return []
    went = [
        Text(f"the page was dropped: {row['reason']}, by {row['method']}", f"bold {reason_style(row['reason'])}")
        for row in cuts
        if row["reason"].startswith("page:")
    ]
    found = text_before(folder, manifest, document)
    if found.text is None:
        return [*went, Text(found.why_not, "dim")]
    title = Text("before, with what was cut [-between marks-]:", "bold")
    return [*went, title, mark_cuts(found.text, cuts)]


def show_cuts(folder: str, manifest: Manifest, cuts: Sequence[Row]) -> list[RenderableType]:
    """Every removed passage, where its copy was kept, and what happened to that copy."""
    ordered = sorted(cuts, key=lambda row: (row["start"], row["reason"]))
    try:
        trails = follow_copies(folder, manifest, ordered)
    except (OSError, errors.CorpusForgeError):
        trails = [[] for _ in ordered]  # shards moved away: the rows at hand are still valid
    shown: list[RenderableType] = []
    for cut, trail in zip(ordered, trails, strict=True):
        kept = describe_copy(cut, trail)
        similar = f", similarity {cut['similarity']:.2f}" if cut.get("similarity") is not None else ""
        head = f"{cut['reason']}: bytes {cut['start']} to {cut['stop']}{similar}{', ' * bool(kept)}{kept}"
        shown += [Text(visible(head), f"bold {reason_style(cut['reason'])}"), Text(visible(cut["text"]), "red")]
    return shown
