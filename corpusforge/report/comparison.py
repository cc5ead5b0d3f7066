"""Two rule packs on the same input, side by side: one HTML page.

The page counts what happened to each document on both sides, and shows examples of each disagreement with the lines of
the page marked as each side judged them. The counts take 24 bytes of memory per document (64 bits of its id, its fate,
64 bits of its kept text), for one range of ids at a time, so that `ROUND` bounds the memory for any corpus. A fate is
"kept" or the reason why a page was dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors, shards
from corpusforge.arrays import U64, Bools
from corpusforge.report import document_view, html
from corpusforge.report.gather import rows_by_id
from corpusforge.report.plain import number
from corpusforge.shards import Manifest

SHOWN = 12
"""Kinds of disagreement that are shown with examples: the most frequent ones."""

EXAMPLES = 4
"""Documents shown for a pair of fates."""

PAGE_LINES = 200
"""Lines shown of a page."""

ROUND = 20_000_000
"""Documents of a side compared at once: about a gigabyte for both sides."""

KEPT = "kept"
Pair = tuple[str, str]
"""The fates of a document on both sides."""


def write_comparison(first: str, second: str, path: str) -> str:
    """Compare two clean stages on the same input, write the page to a path or URL, and return the path.

    Raises `errors.StageMismatch` if the two cannot be compared, `errors.ExtraMissing` without plotly.
    """
    pairing = pair(first, second)
    names = _names(first, second)
    different = [(count, fates) for fates, count in pairing.counts.items() if fates[0] != fates[1]]
    frequent = sorted(different, reverse=True)[:SHOWN]
    ids = {name for _, fates in frequent for name in pairing.examples.get(fates, [])} | set(pairing.changed_examples)
    sides = tuple(_Side(folder, ids) for folder in (first, second))
    body = [
        _summary(pairing, names),
        html.section("Fates", "fates", _matrix(pairing, names)),
        _disagreements(pairing, frequent, names, sides),
        _changed(pairing, names, sides),
    ]
    shards.write_bytes(path, html.frame(f"{names[0]} against {names[1]}", body).encode())
    return path


def _names(first: str, second: str) -> tuple[str, str]:
    """The names of the packs if they differ, else of the folders, as short as is unambiguous."""
    packs = [Manifest.load(folder).recipe.get("clean", {}).get("rules", "") for folder in (first, second)]
    shown = [" + ".join(pack) if isinstance(pack, list | tuple) else str(pack) for pack in packs]
    if shown[0] != shown[1]:
        return shown[0], shown[1]
    short = [folder.rsplit("/", 1)[-1] for folder in (first, second)]
    return (short[0], short[1]) if short[0] != short[1] else (first, second)


def _summary(pairing: Pairing, names: tuple[str, str]) -> str:
    kept = {side: sum(c for fates, c in pairing.counts.items() if fates[side] == KEPT) for side in (0, 1)}
    both = pairing.counts[(KEPT, KEPT)]
    total = sum(pairing.counts.values())
    tiles = [
        ("documents and records", number(total)),
        ("kept by both", number(both)),
        (f"only by {names[0]}", number(kept[0] - both)),
        (f"only by {names[1]}", number(kept[1] - both)),
        ("dropped by both", number(total - kept[0] - kept[1] + both)),
        ("kept by both, different text", number(pairing.changed)),
    ]
    notes = [f"{number(n)} occur only in {name}." for n, name in zip(pairing.only, names, strict=True) if n]
    return html.tiles(tiles) + "".join(html.paragraph(note) for note in notes)


def _matrix(pairing: Pairing, names: tuple[str, str]) -> str:
    """Fates of one side as rows, of the other as columns."""
    rows, columns = (_ordered(pairing, side) for side in (0, 1))
    counts = pairing.counts
    table = [[_label(row), *(number(counts[row, c]) if counts[row, c] else "" for c in columns)] for row in rows]
    header = [f"{names[0]} \\ {names[1]}", *columns]
    return html.table(header, table, numbers=range(1, len(columns) + 1))


def _label(reason: str) -> html.Markup:
    return html.Markup(f'<span class="label">{html.text(reason)}</span>')


def _ordered(pairing: Pairing, side: int) -> list[str]:
    """Kept first, then reasons by frequency."""
    totals: dict[str, int] = {KEPT: 0}
    for fates, count in pairing.counts.items():
        totals[fates[side]] = totals.get(fates[side], 0) + count
    return sorted(totals, key=lambda name: (name != KEPT, -totals[name], name))


def _disagreements(
    pairing: Pairing, frequent: Sequence[tuple[int, Pair]], names: tuple[str, str], sides: tuple[_Side, ...]
) -> str:
    parts = []
    for count, fates in frequent:
        title = f"{names[0]}: {fates[0]}; {names[1]}: {fates[1]} ({number(count)} documents)"
        parts.append(html.details(title, _examples(pairing.examples.get(fates, []), names, sides)))
    if not parts:
        parts.append(html.paragraph("Both agree on every document."))
    return html.section("Disagreements", "disagree", *parts)


def _changed(pairing: Pairing, names: tuple[str, str], sides: tuple[_Side, ...]) -> str:
    if not pairing.changed:
        return ""
    title = f"{number(pairing.changed)} documents are kept by both with different text"
    return html.section(
        "Same page, different lines",
        "lines",
        html.details(title, _examples(pairing.changed_examples, names, sides)),
    )


class _Side:
    """The rows of the documents in ``ids`` in a clean stage."""

    def __init__(self, folder: str, ids: set[str]) -> None:
        self.manifest = Manifest.load(folder)
        self.kept = rows_by_id(folder, self.manifest, "documents", ids)
        self.rejected = rows_by_id(folder, self.manifest, "rejects", ids)

    def show(self, name: str) -> html.Markup:
        """A page line by line, as this side judged it."""
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


@dataclass
class Pairing:
    """``counts``: documents by the fates on both sides. ``changed``: kept by both, with different text.

    ``only``: documents that occur on one side alone. ``examples``: ids, the smallest first.
    """

    counts: Counter[Pair] = field(default_factory=Counter)
    changed: int = 0
    only: tuple[int, int] = (0, 0)
    examples: dict[Pair, list[str]] = field(default_factory=dict)
    changed_examples: list[str] = field(default_factory=list)


def pair(first: str, second: str) -> Pairing:
    """Compare two clean stages. Raises `errors.StageMismatch` unless both are clean stages that read the same input."""
    folders = (first, second)
    manifests = tuple(Manifest.load(folder) for folder in folders)
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.stage != "clean":
            raise errors.StageMismatch(folder, f"is a stage '{manifest.stage}'", "name two folders that clean wrote")
        if "rejects" not in manifest.shards:
            mend = "run clean with --rejects all"
            raise errors.StageMismatch(folder, "kept no rejects, so the fates of dropped pages are unknown", mend)
    if manifests[0].upstream.get("input") != manifests[1].upstream.get("input"):
        mend = "compare runs over the same files"
        raise errors.StageMismatch(second, f"read another input than {first}", mend)
    rounds = max(1, -(-max(sum(manifest.rows.values()) for manifest in manifests) // ROUND))
    pairing = Pairing()
    for at in range(rounds):
        sides = [_fates(folder, manifest, at, rounds) for folder, manifest in zip(folders, manifests, strict=True)]
        _compare(pairing, sides[0], sides[1])
    keys = {key for examples in (*pairing.examples.values(), pairing.changed_examples) for key in examples}
    ids = _ids(first, manifests[0], keys)
    pairing.examples = {fates: [ids[key] for key in examples] for fates, examples in pairing.examples.items()}
    pairing.changed_examples = [ids[key] for key in pairing.changed_examples]
    return pairing


@dataclass(frozen=True)
class _Fates:
    """Documents of a side by ascending key. ``fates``: indices into ``names``; ``texts``: hashes of kept text or 0."""

    keys: U64
    fates: npt.NDArray[np.int16]
    texts: U64
    names: list[str]


def _fates(folder: str, manifest: Manifest, at: int, rounds: int) -> _Fates:
    names = {KEPT: 0}
    parts: list[tuple[U64, npt.NDArray[np.int16], U64]] = []
    for batch in _batches(folder, manifest, "documents"):
        keys, chosen = _keys(batch.column("id"), at, rounds)
        texts = batch.column("text").filter(pa.array(chosen)).cast(pa.binary()).to_pylist()
        # A Python loop: one C call per document, which hashes kilobytes of text.
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
    """64 bits of each id of this round, and a mask of its rows. Ids are 32 hex digits of a hash."""
    digits = "".join(pc.utf8_slice_codeunits(ids, 0, 16).to_pylist())
    keys = np.frombuffer(bytes.fromhex(digits), ">u8").astype(np.uint64)
    chosen = (keys >> np.uint64(32)) * np.uint64(rounds) >> np.uint64(32) == number
    return keys[chosen], chosen


def _compare(pairing: Pairing, first: _Fates, second: _Fates) -> None:
    keys, left, right = np.intersect1d(first.keys, second.keys, return_indices=True)
    pairing.only = (
        pairing.only[0] + len(first.keys) - len(keys),
        pairing.only[1] + len(second.keys) - len(keys),
    )
    fates = first.fates[left].astype(np.int64) * len(second.names) + second.fates[right]
    for code in np.unique(fates).tolist():  # a loop over pairs of reasons: a few hundred at most
        fate = first.names[code // len(second.names)], second.names[code % len(second.names)]
        rows = np.flatnonzero(fates == code)
        pairing.counts[fate] += len(rows)
        if fate[0] != fate[1]:
            _extend(pairing.examples.setdefault(fate, []), keys[rows[:EXAMPLES]])
    changed = keys[(fates == 0) & (first.texts[left] != second.texts[right])]
    pairing.changed += len(changed)
    _extend(pairing.changed_examples, changed[:EXAMPLES])


def _extend(examples: list[str], keys: U64) -> None:
    examples += [f"{key:016x}" for key in keys[: EXAMPLES - len(examples)].tolist()]


def _ids(folder: str, manifest: Manifest, keys: set[str]) -> dict[str, str]:
    """Full ids by their first 16 digits, from one side: examples are documents of both."""
    full: dict[str, str] = {}
    value_set = pa.array(sorted(keys), pa.string())
    for table, column in (("documents", "id"), ("rejects", "document")):
        for batch in _batches(folder, manifest, table):
            ids = batch.column(column)
            hits = ids.filter(pc.is_in(pc.utf8_slice_codeunits(ids, 0, 16), value_set=value_set))
            full |= {name[:16]: name for name in hits.to_pylist()}
    return full
