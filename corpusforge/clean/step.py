"""What a step of cleaning is: it looks at documents and says what becomes of each.

Comes in: a batch of DOCUMENTS. Goes out: a `Verdict`: one code a document, the text of those that stay, the lines
taken from them. A step decides about a document by that document alone, so that batches may be cut anywhere. Steps
are frozen, picklable dataclasses; what is large (models, lists) is loaded where it is used. `apply.Cleaner` runs them
one after another; a step sees only what the steps before it kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.arrays import I64, U8, Bools
from corpusforge.text import byte_slices, text_bytes

KEPT = 0
"""The code of what stays, of pages and of lines."""

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True)
class DroppedLines:
    """Lines taken from documents; of those that the step itself drops none need be named.

    ``documents``: number of the document in the batch, ascending. ``numbers``: of the line in the text that came to
    the step (`str.splitlines`), ascending in a document. ``codes``: see `Verdict.line_reasons`. The text of line i is
    ``data[starts[i]:stops[i]]``. ``details``: makes the column of details, for when rejects are asked for.
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
        """Some of them."""
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
    """`DroppedLines` of texts that are a column already."""
    data, offsets = text_bytes(texts)
    kept = details if details is not None else pa.nulls(len(texts), pa.string())
    return DroppedLines(documents, numbers, codes, data, offsets[:-1], offsets[1:], lambda: kept)


class Edits(NamedTuple):
    """Pieces of text changed inside documents that stay: counted under ``reasons``, not kept one by one.

    ``codes``: one an edit, an index into ``reasons``. ``sizes``: bytes of the text that was replaced.
    ``documents``: number of the document in the batch.
    """

    reasons: tuple[str, ...]
    documents: I64
    codes: Codes
    sizes: I64


class LineCounts(NamedTuple):
    """Lines of every document: as it ``came`` to a step that reads lines, and those that ``stay``."""

    came: I64
    stay: I64


@dataclass(frozen=True)
class Verdict:
    """What a step found.

    ``reasons``: names of the codes of documents (``page:*``); the first is "kept". ``codes``: one a document.
    ``details``: ``{document number: what the rule saw}``, of dropped documents. ``texts``: the text of all documents
    behind the step, the column that came in where nothing changed; of dropped documents it may be anything but null.
    ``lines``, ``line_reasons``: lines taken from documents that stay, and the names of their codes (the first unused).
    ``language``: the language of all documents, where the step looked at it. ``edits``: text changed in place.
    ``counts``: where the step read lines.
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
        """Raises an error of `errors` where a run could not succeed: before the run, in the program that starts it."""

    def resources(self) -> dict[str, Any]:
        """What the output depends on beyond code and settings, as JSON: digests of lists, versions of libraries."""

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Decide about a batch of DOCUMENTS."""


def page_verdict(
    documents: pa.RecordBatch, reason: str, dropped: Bools, details: dict[int, str] | None = None
) -> Verdict:
    """The verdict of a step that drops whole pages for one reason and changes no text."""
    return Verdict(("kept", reason), dropped.astype(np.int8), documents["text"], details or {})
