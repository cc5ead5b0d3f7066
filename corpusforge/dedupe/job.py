"""What every deduplication method uses: its job, rounds that survive a crash, and documents in slices.

A method is a module with a function ``run(job)``. It reads the units of the job, writes ``documents/`` and ``repeats/``
to its output, and does not know which methods come before or after it in the chain (`methods`). Inside a chain the
documents carry the column of `offset_map`; the last method leaves it out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from corpusforge import schemas, shards
from corpusforge.arrays import U64
from corpusforge.dedupe.offset_map import OFFSET_MAP
from corpusforge.dedupe.spans import pack
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.sections import Dedupe
from corpusforge.text import text_bytes
from corpusforge.units import ShardUnit, UnitResult, UnitWork

SLICE_BYTES = 4 << 20
"""Text that goes through the kernels at once: small enough for the cache, large enough for vector operations."""

_MAPPED_DOCUMENTS = schemas.DOCUMENTS.append(OFFSET_MAP)


@dataclasses.dataclass(frozen=True)
class ChainUnit(ShardUnit):
    """A unit of a method that is not the last: the documents that it writes carry an offset map."""


@dataclasses.dataclass(frozen=True)
class Job:
    """The arguments of a method. ``audit_only``: a dry run, which writes no documents."""

    engine: Engine
    settings: Dedupe
    units: Sequence[ShardUnit]
    output: str
    scratch: str  # for the method's own files, which it removes when it is done
    progress: Progress
    audit_only: bool = False

    @property
    def memory_bytes(self) -> int:
        """The memory that one round of a comparison may take on a local engine."""
        return self.settings.memory_megabytes << 20

    def map(
        self, work: UnitWork, *, label: str, folder: str, units: Sequence[ShardUnit] | None = None
    ) -> list[UnitResult]:
        """Run ``work``, which writes to ``folder``, for the units of the job or for others."""
        units = self.units if units is None else units
        sizes = [unit.bytes for unit in units]
        return self.engine.map(work, units, sizes, label=label, folder=folder, progress=self.progress)

    def run_rounds(self, label: str, folder: str, rounds: int, run_round: Callable[[int], None]) -> None:
        """Fill ``folder`` round by round, and mark each round that is complete; marked rounds are not run again."""
        self.progress.start(label, rounds, "rounds")
        try:
            for number in range(rounds):
                mark = round_mark(folder, number)
                if not shards.exists(mark):
                    run_round(number)
                    shards.write_json(mark, {"round": number, "rounds": rounds})
                self.progress.advance(1)
        finally:
            self.progress.finish()


def round_mark(folder: str, number: int) -> str:
    """The file whose presence means that a round is complete."""
    return shards.join(folder, f"round-{number}.json")


def write_round(folder: str, unit: int, round: int, columns: Sequence[U64], schema: pa.Schema) -> None:
    """Write the result of a round for one unit."""
    writer = shards.ShardWriter(folder, _round_name(unit, round), schema, "arrow")
    writer.write(pa.record_batch([pa.array(column) for column in columns], schema=schema))
    writer.finish()


def read_rounds(folder: str, unit: int, rounds: int) -> Iterator[bytes]:
    """The results of all rounds for one unit, as packed blocks (`spans.pack`)."""
    for path in (shards.join(folder, _round_name(unit, round)) for round in range(rounds)):
        if shards.exists(path):
            yield from (pack(*(column.to_numpy() for column in batch.columns)) for batch in shards.read_shard(path))


def _round_name(unit: int, round: int) -> str:
    return f"part-{unit:05d}-{round:05d}.arrow"


def documents_schema(unit: ShardUnit) -> pa.Schema:
    """The schema that a method writes the documents of a unit with."""
    return _MAPPED_DOCUMENTS if isinstance(unit, ChainUnit) else schemas.DOCUMENTS


def as_schema(documents: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Documents with or without their offset map, as ``schema`` (of `documents_schema`) demands."""
    if OFFSET_MAP.name in schema.names and OFFSET_MAP.name not in documents.schema.names:
        documents = documents.append_column(OFFSET_MAP, pa.nulls(documents.num_rows, OFFSET_MAP.type))
    return documents.select(schema.names)


def slices(path: str, skip: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows of a document shard from ``skip`` on, in batches of about `SLICE_BYTES` of text.

    Where slices end depends on the rows alone; resuming at the end of one gives the same slices after it.
    """
    for stored in shards.read_shard(path):
        is_mapped = OFFSET_MAP.name in stored.schema.names
        # Parquet has no timestamps in whole seconds and returns milliseconds
        batch = stored.cast(_MAPPED_DOCUMENTS if is_mapped else schemas.DOCUMENTS)
        first, skip = min(skip, batch.num_rows), max(0, skip - batch.num_rows)
        _, ends = text_bytes(batch.column("text"))
        while first < batch.num_rows:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + SLICE_BYTES, "right")) - 1)
            yield batch.slice(first, last - first)
            first = last


def text_size(documents: pa.RecordBatch) -> int:
    """Bytes of text in a batch."""
    _, ends = text_bytes(documents.column("text"))
    return int(ends[-1] - ends[0])
