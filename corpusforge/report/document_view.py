"""One document in a terminal: a page with every line marked as kept or dropped, or the instances built from it.

The lines of a kept page are merged from its kept and its rejected lines by line number. The lines of a dropped page
were not stored one by one, so the packs in the stage's manifest judge it again. Instances are looked up by their 64-bit
key, a hash of the document's id (`seeds.document_keys`).
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

    ``rows``, ``skip``: which of its instances to show, in a folder of instances.
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
        what = "no document has this id" if not names else f"{len(names)} documents have ids that begin so"
        mend = "look for one with: corpusforge inspect SHARD" if not names else "write more characters of the id"
        raise errors.InputMissing(f"{folder}: {prefix}", what, mend)
    if manifest.stage == "dedupe" or cuts:
        lines: list[Line] = [(n, line, None) for row in kept for n, line in enumerate(row["text"].split("\n"))]
        left = page(lines) if kept else Text("no text is left", "bold red")
        after = [Text("after:", "bold"), left] if cuts else [left]
        before = duplicates.show_before(folder, manifest, next(iter(names)), cuts)
        return [_about(kept, cuts), *before, *after, *duplicates.show_cuts(folder, manifest, cuts)]
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
    row = next((row for row in rejected if row["line"] is None), None)
    if row is None:
        return Judged("", "", merge(kept[0]["text"] if kept else "", rejected))
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
    rows: list[dict[str, Any]] = []
    for path in manifest.paths(folder, table):
        for batch in shards.read_shard(path):
            hits = batch.filter(pc.starts_with(batch.column(column), prefix))
            rows += hits.to_pylist() if hits.num_rows else []
    return rows


def _about(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> RenderableType:
    row = (rows or others)[0]
    names = ("id", "document", "url", "source", "position", "timestamp", "language")
    return pairs("Document", {name: row[name] for name in names if row.get(name) is not None})


def merge(text: str, rejected: list[dict[str, Any]]) -> list[Line]:
    """Kept and rejected lines of a page in order. Rejected lines have numbers; kept ones fill the gaps.

    >>> merge("b\\nd", [{"line": 0, "text": "a", "reason": "line:x"}, {"line": 2, "text": "c", "reason": "line:y"}])
    [(0, 'a', 'line:x'), (1, 'b', None), (2, 'c', 'line:y'), (3, 'd', None)]
    """
    dropped = {row["line"]: row for row in rejected if row["line"] is not None}
    kept = text.split("\n") if text else []
    gaps = (number for number in itertools.count() if number not in dropped)
    lines: list[Line] = [(number, line, None) for number, line in zip(gaps, kept, strict=False)]
    lines += [(number, row["text"], row["reason"]) for number, row in dropped.items()]
    return sorted(lines)


COLORS = ("cyan", "yellow", "magenta", "green", "blue", "red", "bright_cyan", "bright_magenta")


def shades(lines: list[Line]) -> dict[str, int]:
    """A number for each rule that dropped a line, the most frequent rules first, modulo the number of `COLORS`.

    >>> shades([(0, "Menu", "line:x"), (1, "Stay.", None), (2, "Home", "line:x"), (3, "It.", "line:y")])
    {'line:x': 0, 'line:y': 1}
    """
    counts = Counter(reason for _, text, reason in lines if reason and text)
    ordered = sorted(counts, key=lambda reason: (-counts[reason], reason))
    return {reason: number % len(COLORS) for number, reason in enumerate(ordered)}


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
    """The lines of a page judged again, without language and word lists: the verdict on the page is known."""
    from corpusforge.clean.cleaner import cleaner_of, explain
    from corpusforge.sections import Clean

    cleaner = cleaner_of(Clean(language="", sentences="builtin", badwords="off"), packs=_packs(manifest))
    return [(number, line, reason) for number, line, reason in explain(text, cleaner)[0]]


def _packs(manifest: Manifest) -> list[Pack]:
    """The packs of a stage with the values in its manifest; if it has none (older versions), the present packs."""
    from corpusforge.clean.packs import load_pack, recorded_pack

    steps = [step for step in manifest.recipe.get("steps", []) if "pack" in step]
    recorded = [recorded_pack(step["step"], step["pack"]) for step in steps]
    if recorded and None not in recorded:
        return [pack for pack in recorded if pack]
    names = manifest.recipe.get("clean", {}).get("rules", ["c4-tfds-3.1"])
    return [load_pack(name) for name in ([names] if isinstance(names, str) else names)]


ID_DIGITS, KEY_DIGITS = 32, 16
"""Hex digits of DOCUMENTS.id and of INSTANCES.document (`schemas`)."""


def show_instances_of(folder: str, manifest: Manifest, name: str, rows: int, skip: int) -> list[RenderableType]:
    """The instances of a document in each table: ``rows`` of them after the first ``skip``.

    ``name``: its id, its key, or the first digits of its key. Raises `errors.InputMissing` if none or several match.
    """
    low, high = _keys(folder, name)
    shown: list[RenderableType] = []
    documents: set[int] = set()
    for table in manifest.shards:
        batches = []
        for path in manifest.paths(folder, table):
            for batch in shards.read_shard(path):
                keys = batch.column("document").to_numpy()
                matches = (keys >= low) & (keys <= high)
                if matches.any():
                    batches.append(batch.filter(pa.array(matches)))
        if batches:
            instances = pa.Table.from_batches(batches)
            documents |= set(pc.unique(instances["document"]).to_pylist())
            shown += _table(shards.join(folder, table), instances, rows, skip)
    if len(documents) > 1:
        what = f"{len(documents)} documents have keys that begin so"
        raise errors.InputMissing(f"{folder}: {name}", what, "write more characters of the key")
    if not documents:
        mend = f"see keys with: corpusforge inspect {folder}/train; or write all {ID_DIGITS} digits of a document's id"
        raise errors.InputMissing(f"{folder}: {name}", "no instance belongs to this document", mend)
    return shown


def _table(path: str, instances: pa.Table, rows: int, skip: int) -> list[RenderableType]:
    selected = instances.slice(skip, rows)
    if not selected.num_rows:
        return [Text(f"{path}, of this document: no rows after the first {instances.num_rows:,}", "bold")]
    title = f"{path}, of this document: rows {skip} to {skip + selected.num_rows - 1} of {instances.num_rows:,}"
    return [Text(title, "bold"), *tables.show_instances(f"{path}/part", selected)]


def _keys(folder: str, name: str) -> tuple[np.uint64, np.uint64]:
    """The lowest and the highest key that matches."""
    digits = name.lower()
    if re.fullmatch(f"[0-9a-f]{{{ID_DIGITS}}}", digits):
        key = seeds.document_keys([digits])[0]
        return key, key
    if not re.fullmatch(f"[0-9a-f]{{1,{KEY_DIGITS}}}", digits):
        mend = f"write 1 to {KEY_DIGITS} hex digits of the key that rows show, or the {ID_DIGITS} of a document's id"
        raise errors.InputMissing(f"{folder}: {name}", "is neither a key nor an id", mend)
    return np.uint64(int(digits.ljust(KEY_DIGITS, "0"), 16)), np.uint64(int(digits.ljust(KEY_DIGITS, "f"), 16))
