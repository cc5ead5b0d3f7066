"""Input of `clean` that is no file: tables, frames, datasets and iterators, written to Parquet files in bounded memory.

The files are cleaned as any others are, by any number of workers. Only the columns that are read are written.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import errors
from corpusforge.progress import Progress
from corpusforge.sections import Input

FILE_BYTES = 64 << 20
"""Bytes of Arrow data in a file: about a work unit."""

ROWS = 1000
"""Rows of an iterator or dataset that become one batch."""


@contextmanager
def as_files(inputs: Any, settings: Input, progress: Progress) -> Iterator[list[str]]:
    """Files with the rows of ``inputs``, which exist while the block runs.

    The same rows give the same files, so a run that was interrupted resumes when it is called with them again.
    """
    with tempfile.TemporaryDirectory(prefix="corpusforge-input-") as folder:
        wanted = [*settings.text_column.split(","), settings.url_column, settings.timestamp_column]
        progress.start("read input", 0, "rows")
        paths = list(_write(_counted(_batches(inputs, wanted), progress), wanted, Path(folder)))
        progress.finish()
        if not paths:
            raise errors.InputMissing("the input", "has no rows", "pass at least one text")
        yield paths


def _counted(batches: Iterable[pa.RecordBatch], progress: Progress) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)


def _write(batches: Iterable[pa.RecordBatch], wanted: list[str], folder: Path) -> Iterator[str]:
    writer: pq.ParquetWriter | None = None
    size = number = 0
    try:
        for batch in batches:
            columns = [name for name in wanted if name in batch.schema.names]
            if not columns:
                has = ", ".join(batch.schema.names)
                mend = f"name the column that holds the text by text_column; there are: {has}"
                raise errors.InputMissing("the input", f"has no column '{wanted[0]}'", mend)
            table = _readable(pa.Table.from_batches([batch]).select(columns))
            if writer is not None and (size > FILE_BYTES or not writer.schema.equals(table.schema)):
                writer.close()
                writer = None
            if writer is None:
                path = folder / f"part-{number:05d}.parquet"
                writer = pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1)
                size, number = 0, number + 1
                yield str(path)
            writer.write_table(table)
            size += table.nbytes
    finally:
        if writer is not None:
            writer.close()


def _readable(table: pa.Table) -> pa.Table:
    """The table with columns of nulls, and of views of strings, as strings, so that files of one input are alike."""
    views = (pa.string_view(), pa.null())
    types = [pa.string() if field.type in views else field.type for field in table.schema]
    return table.cast(pa.schema([(name, kind) for name, kind in zip(table.column_names, types, strict=True)]))


def _batches(inputs: Any, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of any input that is data, batch by batch."""
    if isinstance(inputs, pa.RecordBatch):
        yield inputs
    elif isinstance(inputs, pa.Table):
        yield from inputs.to_batches(max_chunksize=1 << 16)
    elif hasattr(inputs, "with_format") and hasattr(inputs, "iter"):  # datasets: Dataset and IterableDataset
        for table in inputs.with_format("arrow").iter(batch_size=ROWS):
            yield from (table if isinstance(table, pa.Table) else pa.table(table)).to_batches()
    elif hasattr(inputs, "__arrow_c_stream__"):  # frames of pandas and polars, readers of Arrow, relations of DuckDB
        yield from pa.RecordBatchReader.from_stream(inputs)
    elif hasattr(inputs, "collect_schema"):
        raise errors.InputUnreadable("the input", "is a lazy frame", "pass its .collect(), or the files it reads")
    elif isinstance(inputs, Iterable) and not isinstance(inputs, bytes | Mapping):
        yield from _from_rows(iter(inputs), wanted)
    else:
        mend = "pass paths, a table, a frame, a dataset, or an iterator of texts or dicts"
        raise errors.InputUnreadable("the input", f"a {type(inputs).__name__} cannot be read", mend)


def _from_rows(rows: Iterator[Any], wanted: list[str]) -> Iterator[pa.RecordBatch]:
    first = next(rows, None)
    if first is None:
        return
    rows = itertools.chain([first], rows)
    if isinstance(first, str):
        rows = ({wanted[0]: text} for text in rows)
    elif not isinstance(first, Mapping):
        mend = "an iterator gives texts, or dicts with a text in each"
        raise errors.InputUnreadable("the input", f"its first row is a {type(first).__name__}", mend)
    for number in itertools.count():
        part = list(itertools.islice(rows, ROWS))
        if not part:
            return
        try:
            names = dict.fromkeys(name for row in part for name in row)  # a row may lack what another has
            columns = {name: pa.array([row.get(name) for row in part]) for name in names if name in wanted}
            yield pa.RecordBatch.from_pydict(columns or dict.fromkeys(names, pa.nulls(0)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
            where = f"rows {number * ROWS} to {number * ROWS + len(part) - 1} of the input"
            raise errors.InputUnreadable(where, f"are not alike ({error})", "give every row the same types") from None
