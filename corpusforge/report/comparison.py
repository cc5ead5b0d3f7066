"""Two rule packs on the same input, side by side: one HTML page.

The page counts what happened to each document on both sides, and shows examples of each disagreement with the lines of
the page marked as each side judged them. For the counts, 24 bytes per document are held (64 bits of its id, its fate,
64 bits of its kept text) for a range of ids at a time, so memory is bounded by `ROUND` whatever the corpus. A fate is
"kept" or the reason a page was dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors, shards
from corpusforge.arrays import U64, Bools
from corpusforge.report import document_view, html
from corpusforge.report.plain import number
from corpusforge.shards import Manifest

_TITLES = {"fates": "Fates", "disagree": "Disagreements", "lines": "Same page, other lines"}

SHOWN = 12
"""Kinds of disagreement with examples: the most frequent ones."""

PAGE_LINES = 200
"""Lines shown of a page."""


def write_comparison(first: str, second: str, path: str) -> str:
    """Compare two clean stages on the same input, write the page to a path or URL, and return it.

    Raises `errors.StageMismatch` if the two cannot be compared, `errors.ExtraMissing` without plotly.
    """
    found = pair(first, second)
    names = _names(first, second)
    split = sorted(((c, fates) for fates, c in found.counts.items() if fates[0] != fates[1]), reverse=True)[:SHOWN]
    wanted = {name for _, fates in split for name in found.examples.get(fates, [])} | set(found.changed_examples)
    sides = tuple(_Side(folder, wanted) for folder in (first, second))
    body = [
        _summary(found, names),
        html.section("Fates", "fates", _matrix(found, names)),
        _disagreements(found, split, names, sides),
        _changed(found, names, sides),
    ]
    shards.write_bytes(path, html.frame(f"{names[0]} against {names[1]}", body, _TITLES).encode())
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
    return html.tiles(tiles) + "".join(html.paragraph(line) for line in lost)


def _matrix(found: Paired, names: tuple[str, str]) -> str:
    """Fates of one side as rows, of the other as columns."""
    rows, columns = (_ordered(found, side) for side in (0, 1))
    table = [
        [_label(row), *(number(found.counts[row, c]) if found.counts[row, c] else "" for c in columns)] for row in rows
    ]
    header = [f"{names[0]} \\ {names[1]}", *columns]
    return html.table(header, table, numbers=range(1, len(columns) + 1))


def _label(reason: str) -> html.Markup:
    return html.Markup(f'<span class="label">{html.text(reason)}</span>')


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
        parts.append(html.details(title, _examples(found.examples.get(fates, []), names, sides)))
    if not parts:
        parts.append(html.paragraph("Both say the same of every document."))
    return html.section("Where they disagree", "disagree", *parts)


def _changed(found: Paired, names: tuple[str, str], sides: tuple[_Side, ...]) -> str:
    if not found.changed:
        return ""
    title = f"{number(found.changed)} documents are kept by both with different text"
    return html.section(
        "Same page, other lines",
        "lines",
        html.details(title, _examples(found.changed_examples, names, sides)),
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

    def show(self, name: str) -> html.Markup:
        """A page, line by line, as this side judged it."""
        judged = document_view.judge(self.kept.get(name, []), self.rejected.get(name, []), self.manifest)
        shades = document_view.shades(judged.lines)
        lines = "".join(_line(line, shades) for line in judged.lines[:PAGE_LINES] if line[1])
        more = len(judged.lines) - PAGE_LINES
        rest = f"<p>and {number(more)} more lines</p>" if more > 0 else ""
        verdict = f"<p>dropped: {html.text(judged.verdict)}</p>" if judged.verdict else "<p>kept</p>"
        return html.Markup(f'{verdict}<div class="lines">{lines}</div>{rest}')


def _line(line: document_view.Line, shades: Mapping[str, int]) -> str:
    number_, text, reason = line
    kind = f' class="gone shade{shades[reason]}"' if reason else ""
    label = f"<b>{html.text(reason)}</b>" if reason else ""
    return f"<div{kind}><i>{number_ + 1}</i><bdi>{html.text(text, 2000)}</bdi>{label}</div>"


def _examples(ids: Sequence[str], names: tuple[str, str], sides: tuple[_Side, ...]) -> str:
    rows = [[html.Markup(f"<code>{html.text(name[:12])}</code>"), *(s.show(name) for s in sides)] for name in ids]
    return html.table(["document", *names], rows, wide=True)


KEPT = "kept"
EXAMPLES = 4
"""Documents shown for a pair of fates."""

ROUND = 20_000_000
"""Documents of a side compared at once: about a gigabyte for both."""

Pair = tuple[str, str]


@dataclass
class Paired:
    """``counts``: documents by the fates on both sides. ``changed``: kept by both, with different text.

    ``only``: documents of which one side knows nothing (it read another input). ``examples``: ids, the smallest first.
    """

    counts: Counter[Pair] = field(default_factory=Counter)
    changed: int = 0
    only: tuple[int, int] = (0, 0)
    examples: dict[Pair, list[str]] = field(default_factory=dict)
    changed_examples: list[str] = field(default_factory=list)


def pair(first: str, second: str) -> Paired:
    """Compare two clean stages. Raises `errors.StageMismatch` unless both are, and read the same input."""
    folders = (first, second)
    manifests = tuple(Manifest.load(folder) for folder in folders)
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.stage != "clean":
            raise errors.StageMismatch(folder, f"is a stage '{manifest.stage}'", "name two folders written by clean")
        if "rejects" not in manifest.shards:
            mend = "run clean with --rejects all"
            raise errors.StageMismatch(folder, "kept no rejects, so the fates of dropped pages are unknown", mend)
    if manifests[0].upstream.get("input") != manifests[1].upstream.get("input"):
        mend = "compare runs over the same files"
        raise errors.StageMismatch(second, f"read another input than {first}", mend)
    rounds = -(-max(sum(manifest.rows.values()) for manifest in manifests) // ROUND)
    found = Paired()
    for at in range(max(1, rounds)):
        sides = [
            _side(folder, manifest, at, max(1, rounds)) for folder, manifest in zip(folders, manifests, strict=True)
        ]
        _compare(found, sides[0], sides[1])
    wanted = {key for keys in (*found.examples.values(), found.changed_examples) for key in keys}
    names = _ids(folders, manifests, wanted)
    found.examples = {fates: [names[key] for key in keys] for fates, keys in found.examples.items()}
    found.changed_examples = [names[key] for key in found.changed_examples]
    return found


@dataclass(frozen=True)
class _Fates:
    """Documents of a side by ascending key. ``fates``: index into ``names``; ``texts``: hash of what was kept, or 0."""

    keys: U64
    fates: npt.NDArray[np.int16]
    texts: U64
    names: list[str]


def _side(folder: str, manifest: Manifest, at: int, rounds: int) -> _Fates:
    names = {KEPT: 0}
    parts: list[tuple[U64, npt.NDArray[np.int16], U64]] = []
    for batch in _batches(folder, manifest, "documents"):
        keys, chosen = _keys(batch.column("id"), at, rounds)
        texts = batch.column("text").filter(pa.array(chosen)).cast(pa.binary()).to_pylist()
        # Python loop with a reason: one C call a document, against kilobytes of text each.
        hashes = np.fromiter((xxhash.xxh3_64_intdigest(text) for text in texts), np.uint64, len(texts))
        parts.append((keys, np.zeros(len(keys), np.int16), hashes))
    for batch in _batches(folder, manifest, "rejects"):
        pages = batch.filter(pc.is_null(batch.column("line")))
        keys, chosen = _keys(pages.column("document"), at, rounds)
        reasons = pages.column("reason").cast(pa.string()).filter(pa.array(chosen)).dictionary_encode()
        numbers = [names.setdefault(name, len(names)) for name in reasons.dictionary.to_pylist()]
        fates = np.array([*numbers, 0], np.int16)[reasons.indices.to_numpy()]
        parts.append((keys, fates, np.zeros(len(keys), np.uint64)))
    columns = [np.concatenate([part[k] for part in parts]) if parts else np.zeros(0) for k in range(3)]
    order = np.argsort(columns[0], kind="stable")
    return _Fates(
        columns[0][order].astype(np.uint64),
        columns[1][order].astype(np.int16),
        columns[2][order].astype(np.uint64),
        list(names),
    )


def _batches(folder: str, manifest: Manifest, table: str) -> Iterator[pa.RecordBatch]:
    for path in manifest.paths(folder, table):
        yield from shards.read_shard(path)


def _keys(ids: pa.Array, number: int, rounds: int) -> tuple[U64, Bools]:
    """64 bits of each id of this round, and which rows these are. Ids are 32 hex digits of a hash."""
    digits = "".join(pc.utf8_slice_codeunits(ids, 0, 16).to_pylist())
    keys = np.frombuffer(bytes.fromhex(digits), ">u8").astype(np.uint64)
    chosen = (keys >> np.uint64(32)) * np.uint64(rounds) >> np.uint64(32) == number
    return keys[chosen], chosen


def _compare(found: Paired, first: _Fates, second: _Fates) -> None:
    keys, left, right = np.intersect1d(first.keys, second.keys, return_indices=True)
    found.only = (
        found.only[0] + len(first.keys) - len(keys),
        found.only[1] + len(second.keys) - len(keys),
    )
    fates = first.fates[left].astype(np.int64) * len(second.names) + second.fates[right]
    for code in np.unique(fates).tolist():  # a loop over pairs of reasons, of which there are a few hundred at most
        fate = first.names[code // len(second.names)], second.names[code % len(second.names)]
        rows = np.flatnonzero(fates == code)
        found.counts[fate] += len(rows)
        if fate[0] != fate[1]:
            _extend(found.examples.setdefault(fate, []), keys[rows[:EXAMPLES]])
    changed = keys[(fates == 0) & (first.texts[left] != second.texts[right])]
    found.changed += len(changed)
    _extend(found.changed_examples, changed[:EXAMPLES])


def _extend(examples: list[str], keys: U64) -> None:
    examples += [f"{key:016x}" for key in keys[: EXAMPLES - len(examples)].tolist()]


def _ids(folders: tuple[str, ...], manifests: tuple[Manifest, ...], wanted: set[str]) -> dict[str, str]:
    """Whole ids by their first 16 digits."""
    found: dict[str, str] = {}
    values = pa.array(sorted(wanted), pa.string())
    places = [("documents", "id"), ("rejects", "document")]
    for table, column in places:  # of the first side: what is compared is known to both
        for batch in _batches(folders[0], manifests[0], table):
            ids = batch.column(column)
            hits = ids.filter(pc.is_in(pc.utf8_slice_codeunits(ids, 0, 16), value_set=values))
            found |= {name[:16]: name for name in hits.to_pylist()}
    return found
