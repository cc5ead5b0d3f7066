"""Number the batches of a pipeline, so that steps can refer to each other's rows.

A batch is named by the ids in it and numbered by the rank of that name among all, so that a bundle that a runner
repeats gets the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from corpusforge import errors
from corpusforge.beam.sdk import as_itself, beam


class NumberBatches(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches -> (number, batch), without empty ones; one 64-bit mark a batch is gathered.

    ``what``: the transform that asks, for its errors.
    """

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def expand(self, documents: Any) -> Any:
        marks = documents | "Mark" >> beam.ParDo(_Mark()) | "Gather" >> beam.CombineGlobally(SortedMarks())
        return documents | "Number" >> beam.ParDo(_Number(self.what), beam.pvalue.AsSingleton(marks))


def mark_of(documents: pa.RecordBatch) -> int:
    """64 bits that name a batch by the ids in it."""
    return xxhash.xxh3_64_intdigest("\n".join(documents.column("id").to_pylist()).encode())


class SortedMarks(beam.CombineFn):  # type: ignore[misc, name-defined]
    """Marks of all batches, ascending, packed as uint64."""

    def create_accumulator(self) -> list[int]:
        return []

    def add_input(self, marks: list[int], mark: int) -> list[int]:
        marks.append(mark)
        return marks

    def merge_accumulators(self, many: Iterable[list[int]]) -> list[int]:
        return [mark for marks in many for mark in marks]

    def extract_output(self, marks: list[int]) -> bytes:
        return np.sort(np.array(marks, "<u8")).tobytes()


class _Mark(beam.DoFn):  # type: ignore[misc, name-defined]
    """A batch -> its mark."""

    def process(self, documents: pa.RecordBatch) -> Iterator[int]:
        if documents.num_rows:
            yield mark_of(documents)


class _Number(beam.DoFn):  # type: ignore[misc, name-defined]
    """A batch -> (its number, the batch)."""

    def __init__(self, what: str) -> None:
        self.what = what

    def process(self, documents: pa.RecordBatch, packed: bytes) -> Iterator[tuple[int, pa.RecordBatch]]:
        marks = np.frombuffer(packed, "<u8")
        if not documents.num_rows:
            return
        mark = np.uint64(mark_of(documents))
        first, behind = np.searchsorted(marks, mark, "left"), np.searchsorted(marks, mark, "right")
        if behind - first != 1:
            first_id = documents.column("id")[0].as_py()
            with as_itself():
                raise errors.StageMismatch(
                    self.what, f"the documents from id {first_id} on come twice", "give every document once"
                )
        yield int(first), documents
