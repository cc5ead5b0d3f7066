"""Which columns of a file to read, where settings name several: ``text,content`` reads whichever a file has.

Comes in: an open JSONL or Parquet file and names parted by commas. Goes out: `Columns` with one name each. The first
record decides; so a folder whose files disagree on the name of the text column is read in one run.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import BinaryIO

from corpusforge import errors
from corpusforge.documents.jsonl import Columns, first_lines


def fit_columns(file: BinaryIO, path: str, format: str, columns: Columns) -> Columns:
    """The columns of this file; ``file`` is left at its beginning.

    Raises `errors.InputUnreadable` where it has none of the names for the text.
    """
    if not any("," in name for name in columns):
        return columns
    present = _parquet_names(file) if format == "parquet" else _jsonl_names(file)
    file.seek(0)
    text = _first_of(columns.text, present)
    if present and text not in present:
        mend = f"name the text column; there are: {', '.join(list(present)[:20])}"
        raise errors.InputUnreadable(path, f"no column '{columns.text}'", mend)
    return Columns(text, _first_of(columns.url, present), _first_of(columns.timestamp, present))


def _first_of(names: str, present: Collection[str]) -> str:
    """The first of the names that is present, else the first.

    >>> _first_of("text,content", {"content"}), _first_of("text,content", {"x"})
    ('content', 'text')
    """
    wanted = [name.strip() for name in names.split(",")]
    return next((name for name in wanted if name in present), wanted[0])


def _parquet_names(file: BinaryIO) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.ParquetFile(file).schema_arrow.names)
    except (pa.ArrowInvalid, OSError):
        return []  # the reader says what is wrong with it


def _jsonl_names(file: BinaryIO) -> list[str]:
    for line in first_lines(file):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return list(value)
    return []
