"""What deduplication did to one document: the text before with its cuts marked, and where each copy is kept now.

A row of REPEATS names the copy that was kept when its method ran. A later row or method may have removed that copy in
turn; `follow_copies` finds this out on request, so that it need not be stored. Nor is the text before stored twice: it
is read from the stage that was deduplicated, if that folder is still beside this one. Marks are both characters and
colors, so that a pipe shows what a terminal does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors, shards
from corpusforge.report.gather import rows_by_id
from corpusforge.report.plain import visible
from corpusforge.report.tables import reason_style
from corpusforge.shards import Manifest

Row = dict[str, Any]
"""A row of REPEATS."""

HOPS = 16
"""Most rows that are followed; each step reads the table once."""

_HEAD_LETTERS, _MIN_LETTERS = 24, 6
"""Letters that identify a passage (a few words), and the fewest at the truncated end of a text."""

_LENGTH_TOLERANCE = 0.1
"""Equal copies may differ in white space, punctuation and case, and so by at most this share of their length."""

IN_INDEX = "page:in-index"
"""The copy is in another run."""


def follow_copies(folder: str, manifest: Manifest, cuts: Sequence[Row]) -> list[list[Row]]:
    """For each row its trail: the row that removed its kept copy, then the row that removed that row's copy, ..."""
    trails: list[list[Row]] = [[] for _ in cuts]
    last = dict(enumerate(cuts))
    methods = list(manifest.recipe.get("dedupe", {}).get("method", []))
    for _ in range(HOPS):
        last = {k: row for k, row in last.items() if row["kept_document"] is not None and row["reason"] != IN_INDEX}
        rows = rows_by_id(folder, manifest, "repeats", {row["kept_document"] for row in last.values()})
        later = {k: _since(row, rows.get(row["kept_document"], []), methods) for k, row in last.items()}
        removals = {k: _removal(row, later[k]) for k, row in last.items()}
        followed = {k: _copy_within(last[k], row) for k, row in removals.items() if row is not None}
        last = {k: row for k, row in followed.items() if row not in trails[k]}
        for k, row in last.items():  # a few rows: those of the document that is shown
            trails[k].append(row)
    return trails


def describe_copy(cut: Row, trail: Sequence[Row]) -> str:
    """Where the copy of a row was kept, and what happened to it later.

    >>> cut = {"document": "a", "kept_document": "b", "kept_start": 5, "reason": "line:repeated", "method": "lines"}
    >>> gone = {**cut, "document": "b", "kept_document": None, "kept_start": None, "reason": "page:few-words"}
    >>> describe_copy(cut, []), describe_copy(cut, [gone])
    ('kept in b at byte 5', 'kept in b at byte 5, which itself was dropped by lines (page:few-words)')
    """
    if cut["kept_document"] is None:
        return ""
    first, text = cut, _location(cut)
    for row in trail:
        removed = "dropped" if _is_page(row) else "cut"
        text += f", {_extent(cut, row)} was {removed} by {row['method']} ({row['reason']})"
        if row["kept_document"] is not None:
            text += f" and {_location(row)}"
        cut = row
    if trail and _is_page(cut) and cut["kept_document"] == first["document"]:
        text += ", which is this document: there may be no copy left"
    return text + (", and so on" if len(trail) == HOPS else "")


def _extent(cut: Row, row: Row) -> str:
    """How much of the copy of ``cut`` was removed by ``row``."""
    if _is_page(row):
        return "which itself"
    if not _begins_in(cut, row):
        return "part of which"
    shortest = (1 - _LENGTH_TOLERANCE) * len(cut["text"].encode())
    return "which itself" if row["stop"] - cut["kept_start"] >= shortest else "the beginning of which"


def _location(row: Row) -> str:
    if row["reason"] == IN_INDEX:
        return f"kept in {row['kept_document']} of an index"
    at = "" if row["kept_start"] is None or _is_page(row) else f" {row.get('at', 'at')} byte {row['kept_start']}"
    return f"kept in {row['kept_document']}{at}"


def _since(cut: Row, rows: Sequence[Row], methods: Sequence[str]) -> list[Row]:
    """Rows of the method that names the copy and of later ones: what was cut earlier was not part of the copy."""
    if cut["method"] not in methods:
        return list(rows)
    return [row for row in rows if row["method"] in methods[methods.index(cut["method"]) :]]


def _removal(cut: Row, rows: Sequence[Row]) -> Row | None:
    """Of the rows of the document with the copy, the one that removed the copy or a part of it."""
    pages = [row for row in rows if _is_page(row)]
    passages = [] if _is_page(cut) else [row for row in rows if not _is_page(row)]
    containing = [row for row in passages if _begins_in(cut, row)]
    overlapping = [row for row in passages if _overlaps(cut, row)]
    if containing:  # a row may contain what an earlier method had cut: the shorter of two is the earlier one
        return min(containing, key=lambda row: row["stop"] - row["start"])
    return next(iter((*pages, *overlapping)), None)


def _copy_within(cut: Row, row: Row) -> Row:
    """The row that removed a copy, its own kept copy beginning where the copy of ``cut`` does.

    Equal copies may differ in length, so this position is approximate.
    """
    if _is_page(row) or _is_page(cut) or not _begins_in(cut, row):
        return row
    inside = cut["kept_start"] - row["start"]
    text = cut["text"].encode()[: row["stop"] - cut["kept_start"]].decode("utf-8", "ignore")
    return {**row, "kept_start": row["kept_start"] + inside, "at": "near" if inside else "at", "text": text}


def _is_page(row: Row) -> bool:
    return bool(row["reason"].startswith("page:"))


def _begins_in(cut: Row, row: Row) -> bool:
    """Whether the copy of ``cut`` begins in what ``row`` removed."""
    return bool(row["start"] <= cut["kept_start"] < row["stop"])


def _overlaps(cut: Row, row: Row) -> bool:
    """Whether ``row`` removed a later part of the copy: its position fits, and it begins with words of the cut.

    Equal copies may differ in length, so positions alone do not show where the copy ends.
    """
    if not cut["kept_start"] < row["start"] < cut["kept_start"] + len(cut["text"].encode()):
        return False
    removed, copy = _letters(row["text"])[:_HEAD_LETTERS], _letters(cut["text"])
    starts = (k for k in range(len(copy)) if copy.startswith(removed[:_MIN_LETTERS], k))
    return any(removed.startswith(copy[k : k + len(removed)]) for k in starts)


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


COLORS = {"lines": "yellow", "exact-spans": "red", "near-spans": "magenta", "documents": "cyan"}
OTHER = "blue"
"""The color of a method that this version does not know."""


class Before(NamedTuple):
    """The text as it entered the stage. ``why_not``: one line explaining why it is None, else ""."""

    text: str | None
    why_not: str


def text_before(folder: str, manifest: Manifest, document: str) -> Before:
    """The text as it entered the stage, if the stage it came from is still beside this one and readable."""
    if shards.is_remote(folder):
        return Before(None, "the text before is not shown: it is searched for only beside local folders")
    problem = "no folder beside this one holds the text that was deduplicated"
    try:
        for beside, upstream in _beside(folder):
            if upstream.content.get("documents") == manifest.upstream.get("documents"):
                try:
                    text = _text_of(upstream.paths(beside, "documents"), document)
                except (OSError, errors.CorpusForgeError) as error:
                    problem = " ".join(str(error).split())  # another folder may hold a readable copy
                    continue
                if text is not None:
                    return Before(text, "")
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
    return Before(None, f"the text before is missing: {visible(problem)}")


def _beside(folder: str) -> Iterator[tuple[str, Manifest]]:
    """The finished stages in the parent folder of this one."""
    for beside in sorted(Path(folder).resolve().parent.iterdir()):
        try:
            manifest = Manifest.load(str(beside)) if beside.is_dir() else None
        except (OSError, errors.CorpusForgeError):
            continue
        if manifest:
            yield str(beside), manifest


def _text_of(paths: Sequence[str], document: str) -> str | None:
    for path in paths:
        for batch in shards.read_shard(path):
            row = pc.index(batch.column("id"), document).as_py()
            if row >= 0:
                return str(batch.column("text")[row].as_py())
    return None


def mark_cuts(text: str, cuts: Sequence[dict[str, Any]]) -> Text:
    """The text with every cut between marks, in the color of its method. ``cuts``: rows of REPEATS.

    If several methods cut the text, each mark names its method. Text dropped with its page is marked as well.

    >>> row = {"reason": "span:repeated", "method": "exact-spans", "start": 4, "stop": 8}
    >>> page = {"reason": "page:few-words", "method": "exact-spans", "start": 0, "stop": 11}
    >>> mark_cuts("One. Two. Three.", [row]).plain, mark_cuts("One. Two. Three.", [row, page]).plain
    ('One.[- Two-]. Three.', '[-page:few-words: One.-][-exact-spans:  Two-][-page:few-words: . Three.-]')
    """
    raw = text.encode()
    owner = np.full(len(raw), -1)
    names = list(dict.fromkeys(_name(cut) for cut in cuts))
    methods = {_name(cut): cut["method"] for cut in cuts}
    # A dropped page is what all cuts left, so its marks are drawn first. A cut may contain an earlier method's cut: the
    # shorter of two rows is the earlier one, and drawn on top.
    for cut in sorted(cuts, key=lambda row: (not _is_page(row), row["start"] - row["stop"])):
        removed = slice(None) if _is_page(cut) else slice(cut["start"], cut["stop"])
        owner[removed] = names.index(_name(cut))
    edges = np.r_[0, np.flatnonzero(np.diff(owner)) + 1, len(raw)]
    shown = Text()
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = "\n".join(visible(line) for line in raw[first:last].decode(errors="replace").split("\n"))
        name = names[owner[first]] if first < last and owner[first] >= 0 else ""
        label = f"{name}: " if len(names) > 1 else ""
        shown.append(f"[-{label}{part}-]" if name else part, COLORS.get(methods[name], OTHER) if name else "")
    return shown


def _name(cut: dict[str, Any]) -> str:
    return str(cut["reason"] if _is_page(cut) else cut["method"])


def show_before(folder: str, manifest: Manifest, document: str, cuts: Sequence[Row]) -> list[RenderableType]:
    """The text as it entered the stage, and why the page was dropped if it was; nothing if no text was removed."""
    if not cuts:
        return []
    drops = [
        Text(f"the page was dropped: {row['reason']}, by {row['method']}", f"bold {reason_style(row['reason'])}")
        for row in cuts
        if _is_page(row)
    ]
    before = text_before(folder, manifest, document)
    if before.text is None:
        return [*drops, Text(before.why_not, "dim")]
    title = Text("before, with what was cut [-between marks-]:", "bold")
    return [*drops, title, mark_cuts(before.text, cuts)]


def show_cuts(folder: str, manifest: Manifest, cuts: Sequence[Row]) -> list[RenderableType]:
    """Every removed passage, where its copy was kept, and what happened to that copy."""
    ordered = sorted(cuts, key=lambda row: (row["start"], row["reason"]))
    try:
        trails = follow_copies(folder, manifest, ordered)
    except (OSError, errors.CorpusForgeError):
        trails = [[] for _ in ordered]  # the shards were moved: the rows already read are still valid
    shown: list[RenderableType] = []
    for cut, trail in zip(ordered, trails, strict=True):
        kept = describe_copy(cut, trail)
        similar = f", similarity {cut['similarity']:.2f}" if cut.get("similarity") is not None else ""
        head = f"{cut['reason']}: bytes {cut['start']} to {cut['stop']}{similar}{', ' * bool(kept)}{kept}"
        shown += [Text(visible(head), f"bold {reason_style(cut['reason'])}"), Text(visible(cut["text"]), "red")]
    return shown
