"""What a step of cleaning is and returns, and the table of rejects made of its verdicts.

A step takes a batch of DOCUMENTS and returns a `Verdict`: a code for each document, the text of those that stay, and
the lines removed from them. It decides about a document by that document alone, so batches may be cut anywhere. Steps
are frozen, picklable dataclasses; large resources (models, lists) are loaded where they are used. `cleaner.Cleaner`
applies the steps of a run. REJECTS has a row for each dropped page and each line dropped from a kept page, in the order
of documents and lines; lines are numbered as in the input text, even if an earlier step had removed some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, U8, Bools
from corpusforge.schemas import REJECTS
from corpusforge.text import byte_slices, text_bytes

if TYPE_CHECKING:
    from corpusforge.shards import Tallies

KEPT = 0
"""The code of pages and lines that stay."""

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True)
class DroppedLines:
    """Lines dropped from documents; those of documents that the step drops whole may be left out.

    ``documents``: number of the document in the batch, ascending. ``numbers``: of the line in the text that the
    step got (`str.splitlines`), ascending in a document. ``codes``: see `Verdict.line_reasons`. The text of line i is
    ``data[starts[i]:stops[i]]``. ``details``: returns the column of details; called when rejects are requested.
    """

    documents: I64
    numbers: I64
    codes: Codes
    data: U8
    starts: I64
    stops: I64
    details: Callable[[], pa.StringArray]

    def texts(self) -> pa.StringArray:
        """The lines as a column."""
        return byte_slices(self.data, self.starts, self.stops)

    def choose(self, mask: Bools) -> DroppedLines:
        """The lines that a mask chooses."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        return DroppedLines(
            self.documents[mask],
            self.numbers[mask],
            self.codes[mask],
            self.data,
            self.starts[mask],
            self.stops[mask],
            lambda: self.details().filter(chosen),
        )


def dropped_lines(
    documents: I64, numbers: I64, codes: Codes, texts: pa.StringArray, details: pa.StringArray | None = None
) -> DroppedLines:
    """`DroppedLines` of a column of texts."""
    data, offsets = text_bytes(texts)
    column = details if details is not None else pa.nulls(len(texts), pa.string())
    return DroppedLines(documents, numbers, codes, data, offsets[:-1], offsets[1:], lambda: column)


class Edits(NamedTuple):
    """Parts of text replaced inside documents that stay; they are counted under ``reasons``, not kept one by one.

    ``codes``: of each edit, an index into ``reasons``. ``sizes``: bytes of the text that was replaced.
    ``documents``: number of the document in the batch.
    """

    reasons: tuple[str, ...]
    documents: I64
    codes: Codes
    sizes: I64


class LineCounts(NamedTuple):
    """The number of lines of every document before and after a step that reads lines."""

    before: I64
    after: I64


@dataclass(frozen=True)
class Verdict:
    """The decisions of a step about a batch.

    ``reasons``: names of the codes of documents (``page:*``); the first is "kept". ``codes``: of each document.
    ``details``: ``{document number: what the rule saw}``, of dropped documents. ``texts``: the text of all documents
    after the step, the input column if nothing changed; of dropped documents it may be anything but null. ``lines``,
    ``line_reasons``: lines dropped from documents that stay, and the names of their codes (the first is unused).
    ``language``: of all documents, if the step detects it. ``edits``: text replaced in place. ``counts``: if the step
    reads lines.
    """

    reasons: tuple[str, ...]
    codes: Codes
    texts: pa.StringArray
    details: dict[int, str] = field(default_factory=dict)
    lines: DroppedLines | None = None
    line_reasons: tuple[str, ...] = ("kept",)
    language: pa.StringArray | None = None
    edits: Edits | None = None
    counts: LineCounts | None = None


class Step(Protocol):
    """One step of cleaning. Its fields are its settings; they are part of the stage's digest."""

    @property
    def name(self) -> str:
        """What rejects say dropped a page: the name of a pack ("c4-tfds-3.1"), or "urls", "language", "badwords"..."""

    def check(self) -> None:
        """Raises an error of `errors` if a run cannot succeed. Called before the run, in the program that starts it."""

    def resources(self) -> dict[str, Any]:
        """What the output depends on besides code and settings, as JSON: digests of lists, versions of libraries."""

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Decide about the documents of a batch."""


class FieldsOnly:
    """Pickles the fields of a step without the resources that it has cached (attributes that begin with "_")."""

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if not key.startswith("_")}


def page_verdict(
    documents: pa.RecordBatch, reason: str, dropped: Bools, details: dict[int, str] | None = None
) -> Verdict:
    """The verdict of a step that drops whole pages for one reason and changes no text."""
    return Verdict(("kept", reason), dropped.astype(np.int8), documents["text"], details or {})


class StepLines(NamedTuple):
    """Lines that one step dropped. ``lines``: documents are numbered as in the whole batch, lines as the step saw
    them."""

    step: int
    reasons: tuple[str, ...]
    lines: DroppedLines


class Outcome(NamedTuple):
    """The result of all steps for a batch.

    ``documents``: the input. ``steps``: names of the steps. ``dropped_by``: number of the step that dropped each
    document, -1 if it stays; ``codes``: that step's code; ``reasons``: of each step. ``details``: ``{document: text}``.
    ``lines``, ``edits``: of each step that dropped lines or replaced text, in documents that stay.
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
    numbers = np.concatenate([np.full(len(pages), -1), *_original_numbers(outcome.lines)])
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
    """The dictionary of reasons of a batch: each name once, in the order of first use."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def of(self, reasons: tuple[str, ...]) -> npt.NDArray[np.int16]:
        """The index of each reason of a step."""
        self.all += [name for name in dict.fromkeys(reasons) if name not in self.all]
        return np.array([self.all.index(name) for name in reasons], np.int16)


def _by_step(dropped_by: npt.NDArray[np.int16]) -> list[tuple[int, I64]]:
    """The steps that dropped documents, each with the indices of these."""
    return [(step, np.flatnonzero(dropped_by == step)) for step in np.unique(dropped_by).tolist()]


def _original_numbers(parts: tuple[StepLines, ...]) -> list[I64]:
    """Line numbers of each step as in the input text, before earlier steps dropped lines.

    Of a document whose lines ``d_0 < d_1 < ...`` were dropped, line k of the rest was line k + (how many of the
    ``d_j - j`` are at most k). Documents are distinguished by adding a multiple of a number larger than all lines.
    """
    originals: list[I64] = []
    dropped = np.empty(0, np.int64)  # document and line in one number, ascending
    for part in parts:
        numbers = part.lines.numbers
        if len(dropped):
            base = part.lines.documents << _SHIFT
            first = np.searchsorted(dropped, dropped >> _SHIFT << _SHIFT)  # of the same document
            shifted = dropped - (np.arange(len(dropped)) - first)
            before = np.searchsorted(dropped, base)
            numbers = numbers + np.searchsorted(shifted, base + numbers, "right") - before
        originals.append(numbers)
        dropped = np.sort(np.concatenate([dropped, (part.lines.documents << _SHIFT) + numbers]))
    return originals


_SHIFT = 32  # bits that hold the number of any line: a text of Arrow's string type has less than 2^31 bytes


def tallies_of(outcome: Outcome) -> Tallies:
    """Rows and bytes per reason of a batch; bytes of the input page, of the stripped line, or of the replaced text."""
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
        tally = tallies.setdefault(names[code], {"rows": 0, "bytes": 0})
        tally["rows"] += int(rows[code])
        tally["bytes"] += int(total[code])
