"""One document in a terminal: a page with every line marked as kept or dropped, or the instances made from it.

The lines of a kept page are merged from its kept and its rejected lines, by line number. The lines of a page that was
dropped whole were not written one by one, so the packs of the stage's manifest judge it again. Instances are looked up
by the 64-bit key that their rows carry, a hash of the document's id (`seeds.document_keys`).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from corpusforge import errors, seeds, shards
from corpusforge.report import duplicates, tables
from corpusforge.report.plain import visible
from corpusforge.report.tables import pairs, reason_style
from corpusforge.shards import Manifest

if TYPE_CHECKING:
    from corpusforge.clean.pack import Pack

Line = tuple[int, str, str | None]
"""Number of a line from 0, its text, and the reason why it was dropped."""


def show_document(path: str, prefix: str, rows: int = 5, skip: int = 0) -> list[RenderableType]:
    """The document whose id begins with ``prefix``. Raises `errors.InputMissing` if none or several do.

    ``rows``, ``skip``: of its instances, in a folder of those.
    """
    folder = _stage_folder(path)
    manifest = Manifest.load(folder)
    if manifest.stage == "build-instances":
        return show_instances_of(folder, manifest, prefix, rows, skip)
    kept = _rows(manifest, folder, "documents", "id", prefix)
    rejected = _rows(manifest, folder, "rejects", "document", prefix)
    cuts = _rows(manifest, folder, "repeats", "document", prefix)
    names = {row["id"] for row in kept} | {row["document"] for row in (*rejected, *cuts)}
    if len(names) != 1:
        what = "no document of that id" if not names else f"{len(names)} documents begin so"
        mend = "look for one with: corpusforge inspect SHARD" if not names else "write more characters of the id"
        raise errors.InputMissing(f"{folder}: {prefix}", what, mend)
    if manifest.stage == "dedupe" or cuts:
        lines: list[Line] = [(n, line, None) for row in kept for n, line in enumerate(row["text"].split("\n"))]
        left = page(lines) if kept else Text("nothing of it is left", "bold red")
        after = [Text("after:", "bold"), left] if cuts else [left]
        came = duplicates.show_before(folder, manifest, next(iter(names)), cuts)
        return [_about(kept, cuts), *came, *after, *duplicates.show_cuts(folder, manifest, cuts)]
    judged = judge(kept, rejected, manifest)
    shown = [_about(kept, rejected)]
    if judged.verdict:
        shown.append(Text(f"the page was dropped: {judged.verdict}", f"bold {reason_style(judged.verdict)}"))
    if judged.note:
        shown.append(Text(judged.note, "dim"))
    return [*shown, page(judged.lines)]


class Judged(NamedTuple):
    """A page and its lines. ``verdict``: why the page was dropped, "" if it was kept. ``note``: what is unknown."""

    verdict: str
    note: str
    lines: list[Line]


def judge(kept: list[dict[str, Any]], rejected: list[dict[str, Any]], manifest: Manifest) -> Judged:
    """A page from its row of DOCUMENTS, if it was kept, and its rows of REJECTS."""
    whole = [row for row in rejected if row["line"] is None]
    if not whole:
        return Judged("", "", merge(kept[0]["text"] if kept else "", rejected))
    row = whole[0]
    verdict = f"{row['reason']} ({visible(row['detail'])})" if row["detail"] else str(row["reason"])
    plain: list[Line] = [(number, line, None) for number, line in enumerate(row["text"].split("\n"))]
    try:
        return Judged(verdict, "", _judge(row["text"], manifest) or plain)
    except (errors.CorpusForgeError, ImportError) as error:
        return Judged(verdict, f"its lines are not marked: {error}", plain)


def _stage_folder(path: str) -> str:
    """The folder with the manifest: the path itself or up to two levels above it."""
    folder = path
    for _ in range(3):
        if shards.exists(shards.join(folder, shards.MANIFEST)):
            return folder
        folder = folder.rsplit("/", 1)[0] if "/" in folder else "."
    raise errors.ManifestInvalid(path, "belongs to no finished stage", "name a stage's folder or a shard in it")


def _rows(manifest: Manifest, folder: str, table: str, column: str, prefix: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in manifest.paths(folder, table):
        for batch in shards.read_shard(path):
            hits = batch.filter(pc.starts_with(batch.column(column), prefix))
            found += hits.to_pylist() if hits.num_rows else []
    return found


def _about(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> RenderableType:
    row = (rows or others)[0]
    names = ("id", "document", "url", "source", "position", "timestamp", "language")
    return pairs("Document", {name: row[name] for name in names if row.get(name) is not None})


def merge(text: str, rejected: list[dict[str, Any]]) -> list[Line]:
    """Kept and rejected lines of a page in their order. Rejected lines have numbers; kept ones fill the gaps.

    >>> merge("b\\nd", [{"line": 0, "text": "a", "reason": "line:x"}, {"line": 2, "text": "c", "reason": "line:y"}])
    [(0, 'a', 'line:x'), (1, 'b', None), (2, 'c', 'line:y'), (3, 'd', None)]
    """
    dropped = {row["line"]: row for row in rejected if row["line"] is not None}
    kept = text.split("\n") if text else []
    places = (number for number in itertools.count() if number not in dropped)
    lines: list[Line] = [(number, line, None) for number, line in zip(places, kept, strict=False)]
    lines += [(number, row["text"], row["reason"]) for number, row in dropped.items()]
    return sorted(lines)


COLORS = ("cyan", "yellow", "magenta", "green", "blue", "red", "bright_cyan", "bright_magenta")


def shades(lines: list[Line], shades: int = len(COLORS)) -> dict[str, int]:
    """A shade for each rule that took a line, the most frequent rules first; from ``shades`` on they come back.

    >>> shades([(0, "Menu", "line:x"), (1, "Stay.", None), (2, "Home", "line:x"), (3, "It.", "line:y")])
    {'line:x': 0, 'line:y': 1}
    """
    counts = Counter(reason for _, text, reason in lines if reason and text)
    ordered = sorted(counts, key=lambda reason: (-counts[reason], reason))
    return {reason: number % shades for number, reason in enumerate(ordered)}


def page(lines: list[Line]) -> RenderableType:
    """One row per line: number, reason, text; dropped lines in the color of their rule. Blank lines are omitted."""
    colors = shades(lines)
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="dim")
    table.add_column(no_wrap=True)
    table.add_column()
    for number, text, reason in lines:
        if not text:
            continue
        style = COLORS[colors[reason]] if reason else ""
        table.add_row(str(number + 1), Text(reason or "", style), Text(visible(text), style))
    return table


def _judge(text: str, manifest: Manifest) -> list[Line]:
    """Lines of a page judged again, without language and word lists: the page's own verdict is known already."""
    from corpusforge.clean.cleaner import cleaner_of, explain
    from corpusforge.sections import Clean

    cleaner = cleaner_of(Clean(language="", sentences="builtin", badwords="off"), packs=_packs(manifest))
    return [(number, line, reason) for number, line, reason in explain(text, cleaner)[0]]


def _packs(manifest: Manifest) -> list[Pack]:
    """The packs of a stage with the values they had then; of manifests that keep no values, as they are now."""
    from corpusforge.clean.packs import load_pack, recorded_pack

    kept = [step for step in manifest.recipe.get("steps", []) if "pack" in step]
    recorded = [recorded_pack(step["step"], step["pack"]) for step in kept]
    if recorded and None not in recorded:
        return [pack for pack in recorded if pack]
    names = manifest.recipe.get("clean", {}).get("rules", ["c4-tfds-3.1"])
    return [load_pack(name) for name in ([names] if isinstance(names, str) else names)]


ID_DIGITS, KEY_DIGITS = 32, 16
"""Hex digits of DOCUMENTS.id and of INSTANCES.document (`schemas`)."""


def show_instances_of(folder: str, manifest: Manifest, wanted: str, rows: int, skip: int) -> list[RenderableType]:
    """Its rows in each table: ``rows`` of them after the first ``skip``.

    Raises `errors.InputMissing` if none or several documents are meant.
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
    which = (
        f"rows {skip} to {skip + some.num_rows - 1} of {found.num_rows:,}" if some.num_rows else "no rows after these"
    )
    title = Text(f"{path}, of this document: {which}", "bold")
    return [title, *tables.show_instances(f"{path}/part", some)] if some.num_rows else [title]


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
