"""Two rule packs on the same input, side by side: one HTML page.

Comes in: two finished folders of clean. Goes out: a file: what became of the documents on both sides, and examples of
each disagreement with the lines of the page marked as each side judged them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import shards
from corpusforge.report import elements, marked
from corpusforge.report.html import frame
from corpusforge.report.paired import KEPT, Pair, Paired, pair
from corpusforge.report.plain import number
from corpusforge.shards import Manifest

_TITLES = {"fates": "Fates", "disagree": "Disagreements", "lines": "Same page, other lines"}

SHOWN = 12
"""Kinds of disagreement with examples: the most frequent ones."""

PAGE_LINES = 200
"""Lines shown of a page."""


def write_comparison(first: str, second: str, path: str) -> str:
    """Compare two clean stages on the same input, write the page to a path or URL, and return it.

    Raises `errors.StageMismatch` where the two cannot be compared, `errors.ExtraMissing` without plotly.
    """
    found = pair(first, second)
    names = _names(first, second)
    split = sorted(((c, fates) for fates, c in found.counts.items() if fates[0] != fates[1]), reverse=True)[:SHOWN]
    wanted = {name for _, fates in split for name in found.examples.get(fates, [])} | set(found.changed_examples)
    sides = tuple(_Side(folder, wanted) for folder in (first, second))
    body = [
        _summary(found, names),
        elements.section("Fates", "fates", _matrix(found, names)),
        _disagreements(found, split, names, sides),
        _changed(found, names, sides),
    ]
    shards.write_bytes(path, frame(f"{names[0]} against {names[1]}", body, _TITLES).encode())
    return path


def _names(first: str, second: str) -> tuple[str, str]:
    """The packs where they differ, else the folders, as short as tells them apart."""
    packs = [Manifest.load(folder).recipe.get("clean", {}).get("rules", "") for folder in (first, second)]
    shown = [" + ".join(pack) if isinstance(pack, list | tuple) else str(pack) for pack in packs]
    if shown[0] != shown[1]:
        return shown[0], shown[1]
    short = [folder.rsplit("/", 1)[-1] for folder in (first, second)]
    return (short[0], short[1]) if short[0] != short[1] else (first, second)


def _summary(found: Paired, names: tuple[str, str]) -> str:
    kept = {side: sum(c for fates, c in found.counts.items() if fates[side] == KEPT) for side in (0, 1)}
    both = found.counts[(KEPT, KEPT)]
    total = sum(found.counts.values())
    tiles = [
        ("documents and records", number(total)),
        ("kept by both", number(both)),
        (f"only by {names[0]}", number(kept[0] - both)),
        (f"only by {names[1]}", number(kept[1] - both)),
        ("dropped by both", number(total - kept[0] - kept[1] + both)),
        ("kept by both, other text", number(found.changed)),
    ]
    lost = [f"{number(n)} are known to {name} alone." for n, name in zip(found.only, names, strict=True) if n]
    return elements.tiles(tiles) + "".join(elements.paragraph(line) for line in lost)


def _matrix(found: Paired, names: tuple[str, str]) -> str:
    """Fates of one side as rows, of the other as columns."""
    rows, columns = (_ordered(found, side) for side in (0, 1))
    table = [
        [_label(row), *(number(found.counts[row, c]) if found.counts[row, c] else "" for c in columns)] for row in rows
    ]
    header = [f"{names[0]} \\ {names[1]}", *columns]
    return elements.table(header, table, numbers=range(1, len(columns) + 1))


def _label(reason: str) -> elements.Markup:
    return elements.Markup(f'<span class="label">{elements.text(reason)}</span>')


def _ordered(found: Paired, side: int) -> list[str]:
    """Kept first, then reasons by how often they occur."""
    totals: dict[str, int] = {KEPT: 0}
    for fates, count in found.counts.items():
        totals[fates[side]] = totals.get(fates[side], 0) + count
    return sorted(totals, key=lambda name: (name != KEPT, -totals[name], name))


def _disagreements(
    found: Paired, split: Sequence[tuple[int, Pair]], names: tuple[str, str], sides: tuple[_Side, ...]
) -> str:
    parts = []
    for count, fates in split:
        title = f"{names[0]}: {fates[0]}; {names[1]}: {fates[1]} ({number(count)} documents)"
        parts.append(elements.details(title, _examples(found.examples.get(fates, []), names, sides)))
    if not parts:
        parts.append(elements.paragraph("Both say the same of every document."))
    return elements.section("Where they disagree", "disagree", *parts)


def _changed(found: Paired, names: tuple[str, str], sides: tuple[_Side, ...]) -> str:
    if not found.changed:
        return ""
    title = f"{number(found.changed)} documents are kept by both with different text"
    return elements.section(
        "Same page, other lines",
        "lines",
        elements.details(title, _examples(found.changed_examples, names, sides)),
    )


class _Side:
    """The rows of some documents in a clean stage."""

    def __init__(self, folder: str, ids: set[str]) -> None:
        self.manifest = Manifest.load(folder)
        self.kept = self._rows(folder, "documents", "id", ids)
        self.rejected = self._rows(folder, "rejects", "document", ids)

    def _rows(self, folder: str, table: str, column: str, ids: set[str]) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        wanted = pa.array(sorted(ids), pa.string())
        for path in self.manifest.paths(folder, table):
            for batch in shards.read_shard(path):
                hits = batch.filter(pc.is_in(batch.column(column), value_set=wanted))
                for row in hits.to_pylist() if hits.num_rows else []:
                    found.setdefault(row[column], []).append(row)
        return found

    def show(self, name: str) -> elements.Markup:
        """A page, line by line, as this side judged it."""
        judged = marked.judge(self.kept.get(name, []), self.rejected.get(name, []), self.manifest)
        shades = marked.shades(judged.lines)
        lines = "".join(_line(line, shades) for line in judged.lines[:PAGE_LINES] if line[1])
        more = len(judged.lines) - PAGE_LINES
        rest = f"<p>and {number(more)} more lines</p>" if more > 0 else ""
        verdict = f"<p>dropped: {elements.text(judged.verdict)}</p>" if judged.verdict else "<p>kept</p>"
        return elements.Markup(f'{verdict}<div class="lines">{lines}</div>{rest}')


def _line(line: marked.Line, shades: Mapping[str, int]) -> str:
    number_, text, reason = line
    kind = f' class="gone shade{shades[reason]}"' if reason else ""
    label = f"<b>{elements.text(reason)}</b>" if reason else ""
    return f"<div{kind}><i>{number_ + 1}</i><bdi>{elements.text(text, 2000)}</bdi>{label}</div>"


def _examples(ids: Sequence[str], names: tuple[str, str], sides: tuple[_Side, ...]) -> str:
    rows = [
        [elements.Markup(f"<code>{elements.text(name[:12])}</code>"), *(s.show(name) for s in sides)] for name in ids
    ]
    return elements.table(["document", *names], rows, wide=True)
