"""Input of `clean` that is no file: tables, frames, datasets and iterators, written to Parquet files in bounded memory.

The files are cleaned as any others are, by any number of workers. Only the columns that are read are written.
"""

from __future__ import annotations

import itertools
import re
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
        texts = settings.text_column.split(",")
        wanted = [*texts, settings.url_column, settings.timestamp_column]
        progress.start("read input", 0, "rows")
        paths = list(_write(_counted(_guarded(inputs, wanted), progress), wanted, texts, Path(folder)))
        progress.finish()
        if not paths:
            raise errors.InputMissing("the input", "has no rows", "pass at least one text")
        yield paths


def _counted(batches: Iterable[pa.RecordBatch], progress: Progress) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)


def _write(batches: Iterable[pa.RecordBatch], wanted: list[str], texts: list[str], folder: Path) -> Iterator[str]:
    writer: pq.ParquetWriter | None = None
    size = number = 0
    try:
        for batch in batches:
            columns = [name for name in wanted if name in batch.schema.names]
            if not set(columns) & set(texts):
                has = ", ".join(batch.schema.names)
                mend = f"name the column that holds the text by text_column; there are: {has}"
                raise errors.InputMissing("the input", f"has no column '{wanted[0]}'", mend)
            table = _readable(pa.Table.from_batches([batch]).select(columns), wanted[-2])
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


def _readable(table: pa.Table, url_column: str) -> pa.Table:
    """The table with columns of nulls, of views of strings, and of whole numbers that stand for URLs as strings."""

    def is_cast(field: pa.Field) -> bool:
        is_number = field.name == url_column and pa.types.is_integer(field.type)
        return is_number or field.type in (pa.string_view(), pa.null())

    types = [pa.string() if is_cast(field) else field.type for field in table.schema]
    return table.cast(pa.schema([(name, kind) for name, kind in zip(table.column_names, types, strict=True)]))


def _guarded(inputs: Any, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """`_batches`, with what Arrow says of data that it cannot take as an error of ours."""
    try:
        yield from _batches(inputs, wanted)
    except pa.ArrowException as error:
        what = f"cannot be read as a table ({str(error).splitlines()[0]})"
        raise errors.InputUnreadable("the input", what, "give each column one type") from None


def _batches(inputs: Any, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of any input that is data, batch by batch."""
    if isinstance(inputs, pa.RecordBatch):
        yield inputs
    elif isinstance(inputs, pa.Array | pa.ChunkedArray):
        yield from pa.table({wanted[0]: inputs}).to_batches()
    elif hasattr(inputs, "to_frame") and hasattr(inputs, "to_list"):  # a series of pandas or polars
        yield from _from_rows(iter(inputs.to_list()), wanted)
    elif isinstance(inputs, pa.Table):
        yield from inputs.to_batches(max_chunksize=1 << 16)
    elif hasattr(inputs, "with_format") and hasattr(inputs, "iter"):  # datasets: Dataset and IterableDataset
        for table in inputs.with_format("arrow").iter(batch_size=ROWS):
            yield from (table if isinstance(table, pa.Table) else pa.table(table)).to_batches()
    elif hasattr(inputs, "__arrow_c_stream__"):  # frames of pandas and polars, readers of Arrow, relations of DuckDB
        names = [name for name in wanted if name in getattr(inputs, "columns", ())]
        yield from pa.RecordBatchReader.from_stream(inputs[names] if names else inputs)
    elif hasattr(inputs, "collect_schema"):
        raise errors.InputUnreadable("the input", "is a lazy frame", "pass its .collect(), or the files it reads")
    elif isinstance(inputs, Iterable) and not isinstance(inputs, bytes | Mapping):
        yield from _from_rows(iter(inputs), wanted)
    else:
        mend = "pass paths, a table, a frame, a dataset, or an iterator of texts or dicts"
        raise errors.InputUnreadable("the input", f"a {type(inputs).__name__} cannot be read", mend)


def _from_rows(rows: Iterator[Any], wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """Batches of texts, or of dicts, of which a row may lack what another has; NaN is no text, as in pandas."""
    numbered = enumerate(rows)
    while part := list(itertools.islice(numbered, ROWS)):
        named = [_row(number, row, wanted) for number, row in part]
        names = dict.fromkeys(name for row in named for name in row)
        columns = {
            name: _column([row.get(name) for row in named], name, part[0][0]) for name in names if name in wanted
        }
        yield pa.RecordBatch.from_pydict(columns or {name: pa.nulls(len(part)) for name in names})


def _row(number: int, row: Any, wanted: list[str]) -> Mapping[str, Any]:
    """A row as a dict. A text that is no string is an error that names the row."""
    named = {wanted[0]: row} if row is None or isinstance(row, str) else row
    mend = "an iterator gives texts, or dicts with a text in each"
    if not isinstance(named, Mapping):
        raise errors.InputUnreadable(f"row {number} of the input", f"is a {type(row).__name__}", mend)
    for name in wanted[:-2]:
        text = named.get(name)
        if not isinstance(text, str | bytes | float | None):
            raise errors.InputUnreadable(f"row {number} of the input", f"its '{name}' is a {type(text).__name__}", mend)
    return named


def _column(values: list[Any], name: str, first: int) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except UnicodeEncodeError:  # half of a surrogate pair, which no UTF-8 has
        return pa.array([SURROGATE.sub("\ufffd", v) if isinstance(v, str) else v for v in values], from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        where = f"column '{name}' of rows {first} to {first + len(values) - 1}"
        raise errors.InputUnreadable(where, f"values are not alike ({error})", "give them one type") from None


SURROGATE = re.compile("[\ud800-\udfff]")
