"""Cleaning on Beam: the stage `clean`, and the transform for anyone's pipeline.

The stage is one map over the units of the input: reading, cleaning and writing are fused and text never passes between
steps; where only the newest page of a URL stays, `corpusforge.beam.urls` runs before it. `CleanDocuments` is the same
cleaner over batches that some other step made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corpusforge import shards
from corpusforge.beam import urls
from corpusforge.beam.io import REJECTS, in_batches
from corpusforge.beam.sdk import as_itself, beam, count
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.units import UnitResult

if TYPE_CHECKING:
    from corpusforge.clean.cleaner import Cleaner
    from corpusforge.clean.work import CleanWork
    from corpusforge.documents.plan import Unit


SCRATCH = "scratch"
"""Folder below the output for what is removed when the stage is through."""


def run(
    engine: Engine,
    work: CleanWork,
    units: Sequence[Unit],
    sizes: Sequence[int],
    folder: str,
    progress: Progress,
    *,
    newest_memory: int = 0,
) -> list[UnitResult]:
    """Clean every unit into ``folder``; ``sizes`` are the units' input bytes.

    ``newest_memory``: bytes for comparing URLs first, so that of pages with one URL only the newest is cleaned; 0: all
    are.
    """
    if not newest_memory:
        return engine.map(work, units, sizes, label="clean", folder=folder, progress=progress)
    scratch = shards.join(folder, SCRATCH)
    found = urls.older_copies(engine, work.options, units, sizes, scratch, newest_memory, progress)
    work = dataclasses.replace(work, older=found)
    results = engine.map(work, units, sizes, label="clean", folder=folder, progress=progress)
    urls.forget(found)
    return results


class CleanDocuments(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to those that stay; what was dropped, with its reasons, is the output ``rejects``.

    ``cleaner``: a `clean.cleaner.Cleaner`. Its `check` is called here, so that a missing word list stops the program that
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
