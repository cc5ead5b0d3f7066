"""The public transform `CleanDocuments`: the cleaner of the stage `clean` over batches that another step made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corpusforge.beam.io import REJECTS, in_batches
from corpusforge.beam.sdk import as_itself, beam, count

if TYPE_CHECKING:
    from corpusforge.clean.cleaner import Cleaner


class CleanDocuments(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to those that stay; what was dropped, with its reasons, is the output ``rejects``.

    ``cleaner``: a `clean.cleaner.Cleaner`. Its `check` runs here, so that a missing word list stops the program that
    builds the graph and not a worker an hour later.

        kept, rejects = documents | CleanDocuments(cleaner)
    """

    def __init__(self, cleaner: Cleaner) -> None:
        super().__init__()
        cleaner.check()
        self.cleaner = cleaner

    def expand(self, documents: Any) -> Any:
        cleaning = beam.ParDo(_Clean(self.cleaner)).with_outputs(REJECTS, main="documents")
        return in_batches(documents | "Clean" >> cleaning)


class _Clean(beam.DoFn):  # type: ignore[misc, name-defined]
    """A batch -> what stays of it, and its rejects."""

    def __init__(self, cleaner: Cleaner) -> None:
        self.cleaner = cleaner

    def process(self, documents: pa.RecordBatch) -> Iterator[Any]:
        with as_itself():
            cleaned = self.cleaner.clean(documents)
        count(cleaned.tallies)
        if cleaned.documents.num_rows:
            yield cleaned.documents
        if cleaned.rejects.num_rows:
            yield beam.pvalue.TaggedOutput(REJECTS, cleaned.rejects)
