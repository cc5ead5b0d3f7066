"""What was dropped, as rows: one a dropped page, one a dropped line of a kept page.

Comes in: an `Outcome`. Goes out: a REJECTS batch in the order of the documents and their lines. Lines are numbered as
in the text that came to the run, also where a step saw what another had left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64
from corpusforge.clean.step import Codes, DroppedLines, Edits
from corpusforge.schemas import REJECTS

Tallies = dict[str, dict[str, int]]
"""As in `shards`: ``{reason: {"rows": n, "bytes": n}}``."""


class StepLines(NamedTuple):
    """Lines that one step took. ``lines``: documents are numbers in the whole batch, lines are as the step saw them."""

    step: int
    reasons: tuple[str, ...]
    lines: DroppedLines


class Outcome(NamedTuple):
    """What became of a batch.

    ``documents``: as they came. ``steps``: names of the steps. ``dropped_by``: number of the step that dropped each
    document, -1: it stays; ``codes``: that step's code; ``reasons``: of each step. ``details``: ``{document: text}``.
    ``lines``, ``edits``: of each step that took lines or changed text, of documents that stay.
    """

    documents: pa.RecordBatch
    steps: tuple[str, ...]
    dropped_by: npt.NDArray[np.int16]
    codes: Codes
    reasons: tuple[tuple[str, ...], ...]
    details: dict[int, str]
    lines: tuple[StepLines, ...]
    edits: tuple[Edits, ...]


def rejects_of(outcome: Outcome) -> pa.RecordBatch:
    """All dropped pages and lines of a batch."""
    documents, pages = outcome.documents, np.flatnonzero(outcome.dropped_by >= 0)
    names = _Names()
    reasons = [names.of(outcome.reasons[s])[outcome.codes[pages[at]]] for s, at in _by_step(outcome.dropped_by[pages])]
    order = [at for _, at in _by_step(outcome.dropped_by[pages])]
    page_reasons = np.zeros(len(pages), np.int16)
    if order:
        page_reasons[np.concatenate(order)] = np.concatenate(reasons)
    parts = [part.lines for part in outcome.lines]
    owners = np.concatenate([pages, *(part.documents for part in parts)])
    numbers = np.concatenate([np.full(len(pages), -1), *_as_they_came(outcome.lines)])
    codes = np.concatenate([page_reasons, *(names.of(part.reasons)[part.lines.codes] for part in outcome.lines)])
    steps = np.concatenate(
        [outcome.dropped_by[pages], *(np.full(len(part.lines.codes), part.step, np.int16) for part in outcome.lines)]
    )
    details = pa.array([outcome.details.get(page) for page in pages.tolist()], pa.string())
    columns = {name: documents[name].take(pa.array(owners)) for name in ("url", "source", "position")}
    columns |= {
        "document": documents["id"].take(pa.array(owners)),
        "line": pa.array(numbers, pa.int32(), mask=numbers < 0),
        "reason": pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), pa.array(names.all, pa.string())),
        "step": pa.DictionaryArray.from_arrays(pa.array(steps, pa.int16()), pa.array(outcome.steps, pa.string())),
        "detail": pa.concat_arrays([details, *(part.details() for part in parts)]),
        "text": pa.concat_arrays([documents["text"].take(pa.array(pages)), *(part.texts() for part in parts)]),
    }
    rows = pa.array(np.lexsort((numbers, owners)))
    return pa.record_batch([columns[name].take(rows) for name in REJECTS.names], schema=REJECTS)


class _Names:
    """The dictionary of reasons of a batch: each name once, in the order it is met."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def of(self, reasons: tuple[str, ...]) -> npt.NDArray[np.int16]:
        """The place of each name of a step."""
        self.all += [name for name in dict.fromkeys(reasons) if name not in self.all]
        return np.array([self.all.index(name) for name in reasons], np.int16)


def _by_step(dropped_by: npt.NDArray[np.int16]) -> list[tuple[int, I64]]:
    """The steps that dropped something, each with the places of what it dropped."""
    return [(step, np.flatnonzero(dropped_by == step)) for step in np.unique(dropped_by).tolist()]


def _as_they_came(parts: tuple[StepLines, ...]) -> list[I64]:
    """Line numbers of each step as they were in the text that came, before earlier steps took lines.

    Of a document whose lines ``d_0 < d_1 < ...`` are gone, line k of what is left was line k + (how many of the
    ``d_j - j`` are at most k). Documents are told apart by adding a multiple of a number larger than all lines.
    """
    found: list[I64] = []
    gone = np.empty(0, np.int64)  # document and line in one number, ascending
    for part in parts:
        numbers = part.lines.numbers
        if len(gone):
            base = part.lines.documents << _SHIFT
            first = np.searchsorted(gone, gone >> _SHIFT << _SHIFT)  # of the same document
            shifted = gone - (np.arange(len(gone)) - first)
            before = np.searchsorted(gone, base)
            numbers = numbers + np.searchsorted(shifted, base + numbers, "right") - before
        found.append(numbers)
        gone = np.sort(np.concatenate([gone, (part.lines.documents << _SHIFT) + numbers]))
    return found


_SHIFT = 32  # a text of Arrow's string type has fewer lines than this many bits can count


def tallies_of(outcome: Outcome) -> Tallies:
    """Rows and bytes per reason of a batch; ``bytes`` of the page as it came, of the stripped line, or of the piece of
    text that was replaced."""
    tallies: Tallies = {}
    sizes = np.asarray(pc.binary_length(outcome.documents["text"]))
    for step, pages in _by_step(outcome.dropped_by):
        if step >= 0:
            _add(tallies, outcome.codes[pages], sizes[pages], outcome.reasons[step])
    for part in outcome.lines:
        _add(tallies, part.lines.codes, part.lines.stops - part.lines.starts, part.reasons)
    for edits in outcome.edits:
        _add(tallies, edits.codes, edits.sizes, edits.reasons)
    return tallies


def _add(tallies: Tallies, codes: Codes, sizes: npt.NDArray[np.integer], names: tuple[str, ...]) -> None:
    rows = np.bincount(codes, minlength=len(names))
    total = np.zeros(len(names), np.int64)
    np.add.at(total, codes, sizes)
    for code in np.flatnonzero(rows).tolist():
        mine = tallies.setdefault(names[code], {"rows": 0, "bytes": 0})
        mine["rows"] += int(rows[code])
        mine["bytes"] += int(total[code])
