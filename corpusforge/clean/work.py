"""The stage clean: read raw records, apply the rules, write documents and rejects.

The stage is one map over the units of the input. Reading, cleaning and writing a unit are fused, and text never passes
between processes. Where only the newest page of each URL stays, `url_duplicates` compares URLs first.

A unit writes ``documents/`` and, if kept, ``rejects/`` (both Parquet) with the reader's reasons and the rules'. A shard
ends where the text read reaches ``shard_bytes``, always between two batches of the reader, so a unit that resumes after
a crash reads the same batches as an uninterrupted run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import shards
from corpusforge.clean.url_duplicates import OLDER_COPY, OlderCopies, forget, leave_out, older_copies
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.schemas import DOCUMENTS, REJECTS
from corpusforge.shards import Tallies, add_tallies
from corpusforge.units import Advance, UnitOutput, UnitResult

if TYPE_CHECKING:
    from corpusforge.clean.cleaner import Cleaned, Cleaner
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.read import RawBatch
    from corpusforge.documents.records import ReadOptions


SCRATCH = "scratch"
"""Folder below the output for files that are removed when the stage is complete."""


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

    ``newest_memory``: bytes for comparing URLs first, so that of pages with one URL only the newest is cleaned; 0:
    clean all of them.
    """
    if not newest_memory:
        return engine.map(work, units, sizes, label="clean", folder=folder, progress=progress)
    scratch = shards.join(folder, SCRATCH)
    older = older_copies(engine, work.options, units, sizes, scratch, newest_memory, progress)
    work = dataclasses.replace(work, older=older)
    results = engine.map(work, units, sizes, label="clean", folder=folder, progress=progress)
    forget(older)
    return results


@dataclass(frozen=True)
class CleanWork:
    """The stage `clean` for one unit. ``keep_rejects``: write dropped text, or only count it.

    ``older``: older copies of URLs, which are dropped before the rules are applied.
    """

    output: str
    options: ReadOptions
    cleaner: Cleaner
    shard_bytes: int
    keep_rejects: bool = True
    older: OlderCopies | None = None

    def __call__(self, unit: Unit, advance: Advance) -> UnitResult:
        """Clean a unit, after the part that its finished shards already cover."""
        from corpusforge.documents.read import read_unit

        tables = {"documents": (DOCUMENTS, "parquet")}
        if self.keep_rejects:
            tables["rejects"] = (REJECTS, "parquet")
        with UnitOutput(self.output, unit.number, tables, self.shard_bytes) as output:
            if output.done:
                return output.result(resumed=True)
            position = output.position
            older = self.older.of_unit(unit.number) if self.older else None
            for read in read_unit(unit, self.options, skip=position):
                raw = leave_out(read, older) if older else read
                cleaned = self.cleaner.clean(raw.documents)
                position += raw.records
                batches = {"documents": cleaned.documents}
                if self.keep_rejects:
                    batches["rejects"] = all_rejects(raw, cleaned)
                output.write(
                    batches,
                    position=position,
                    size=cleaned.statistics["text_bytes_in"],
                    tallies=all_tallies(raw, cleaned),
                    statistics=all_statistics(raw, cleaned),
                )
                advance(raw.raw_bytes)
            return output.finish()


def all_rejects(raw: RawBatch, cleaned: Cleaned) -> pa.RecordBatch:
    """The reader's rejects and the rules', in that order."""
    if not raw.rejects.num_rows:
        return cleaned.rejects
    both = pa.Table.from_batches([raw.rejects]), pa.Table.from_batches([cleaned.rejects])
    return pa.concat_tables(both).unify_dictionaries().combine_chunks().to_batches()[0]


def all_tallies(raw: RawBatch, cleaned: Cleaned) -> Tallies:
    """Rows and bytes per reason, of unreadable records and of what the rules dropped."""
    tallies = tally_rejects(raw.rejects)
    return add_tallies(tallies, cleaned.tallies)


def tally_rejects(rejects: pa.RecordBatch) -> Tallies:
    """Rows and UTF-8 bytes of text per reason of a REJECTS batch."""
    if not rejects.num_rows:
        return {}
    columns = {"reason": rejects["reason"].cast(pa.string()), "bytes": pc.binary_length(rejects["text"])}
    sums = pa.table(columns).group_by("reason").aggregate([("bytes", "sum"), ("bytes", "count")]).to_pylist()
    return {row["reason"]: {"rows": row["bytes_count"], "bytes": row["bytes_sum"]} for row in sums}


def all_statistics(raw: RawBatch, cleaned: Cleaned) -> dict[str, Any]:
    """Counts of a batch: raw records read, and what the rules counted.

    Raw bytes are not counted: a unit that resumes after a crash reads some of them twice.
    """
    statistics = {**cleaned.statistics, "records_in": raw.records}
    if OLDER_COPY in (tallies := tally_rejects(raw.rejects)):  # documents too, though the rules never saw them
        statistics["documents_in"] += tallies[OLDER_COPY]["rows"]
        statistics["text_bytes_in"] += tallies[OLDER_COPY]["bytes"]
    return statistics
