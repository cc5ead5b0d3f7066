"""Hugging Face `datasets`: a hub name or a local folder, streamed.

A record's position is its row in the split. Rows are streamed in the order of the dataset's own files, and a resumed
unit skips finished rows (`IterableDataset.skip`), so nothing is stored and nothing depends on a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusforge import errors
from corpusforge.documents.parquet import text_records
from corpusforge.documents.records import FilePart, ReaderOutput, ReadOptions, Skip

_ROWS = 512


def read(part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    """The rows of a dataset's split; ``part.path``: its hub name or a folder.

    Raises `errors.ExtraMissing` without the package `datasets`, `errors.InputMissing` for an unknown dataset,
    configuration or split, `errors.InputUnreadable` if it has no such text column.
    """
    name, columns = part.path, options.columns
    stream = _open(name, options.hub_config, options.hub_split)
    position = skip.left
    if position:
        stream, skip.left = stream.skip(position), 0
    table = stream.with_format("arrow")
    for rows in _guarded(table.iter(batch_size=_ROWS), name):
        for batch in rows.combine_chunks().to_batches():
            if columns.text not in batch.schema.names:
                mend = f"name the text column; there are: {', '.join(batch.schema.names[:20])}"
                raise errors.InputUnreadable(name, f"no column '{columns.text}'", mend)
            yield text_records(batch, position, columns, options.max_record_bytes), batch.get_total_buffer_size()
            position += batch.num_rows


def _open(name: str, config: str, split: str) -> Any:
    try:
        import datasets
    except ImportError:
        mend = "install it: pip install 'corpusforge[hub]'"
        raise errors.ExtraMissing("format hub", "the package 'datasets' is not installed", mend) from None
    try:
        return datasets.load_dataset(name, config or None, split=split, streaming=True)
    except (FileNotFoundError, ConnectionError, datasets.exceptions.DatasetNotFoundError) as error:
        raise errors.InputMissing(name, f"no such dataset ({_line(error)})", "check the name and the network") from None
    except (ValueError, OSError) as error:
        mend = "check hub_config and hub_split"
        raise errors.InputMissing(f"{name} [{config or 'default'}, {split}]", _line(error), mend) from None


def _guarded(batches: Iterator[pa.Table], name: str) -> Iterator[pa.Table]:
    """The same batches; errors of the dataset's libraries become ours."""
    try:
        yield from batches
    except (OSError, pa.ArrowException, ValueError) as error:
        what = f"cannot be read ({_line(error)})"
        raise errors.InputUnreadable(name, what, "check the files of the dataset, or run again to resume") from None


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def source_of(name: str) -> str:
    """DOCUMENTS.source for a dataset: its hub name, or the name of a local folder.

    >>> source_of("allenai/c4")
    'allenai/c4'
    """
    return Path(name).name if Path(name).exists() else name
