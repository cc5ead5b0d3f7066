"""Tables on disk: write RecordBatches of one schema to a Parquet or Arrow file, and read them back.

A finished file has two digests: ``digest`` of its bytes; ``content``, a sum over row hashes, which depends neither on
sharding nor on the order of rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from corpusforge import errors
from corpusforge.content import ContentDigest
from corpusforge.shards.files import atomic_path, file_digest, is_remote, join, open_binary

SUFFIX = {"parquet": ".parquet", "arrow": ".arrow"}


@dataclasses.dataclass(frozen=True)
class Shard:
    """One finished file of a table. ``bytes``: on disk; ``digest``: xxh3-128 of them, hex."""

    name: str  # relative to the stage's folder, "/" between parts
    rows: int
    bytes: int
    digest: str
    content: str


class ShardWriter:
    """Writes RecordBatches of one schema to one file, which becomes visible at `finish`."""

    def __init__(self, folder: str, name: str, schema: pa.Schema, kind: str) -> None:
        self.folder, self.name, self.rows = folder, name, 0
        self._content = ContentDigest()
        self._stack = contextlib.ExitStack()
        self._temporary = self._stack.enter_context(atomic_path(join(folder, name)))
        self._writer: Any
        if kind == "parquet":
            self._writer = pq.ParquetWriter(self._temporary, schema, compression="zstd", compression_level=3)
        else:
            self._writer = pa.ipc.new_stream(self._temporary, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        self._writer.write_batch(batch)
        self._content.add(batch)
        self.rows += batch.num_rows

    def finish(self) -> Shard:
        """Close the file and move it into place."""
        self._writer.close()
        size, digest = Path(self._temporary).stat().st_size, file_digest(self._temporary)
        self._stack.close()
        return Shard(self.name, self.rows, size, digest, self._content.hex())

    def abandon(self) -> None:
        """Close and delete the unfinished file."""
        with contextlib.suppress(Exception):
            self._writer.close()
        with contextlib.suppress(RuntimeError):
            self._stack.__exit__(RuntimeError, RuntimeError("abandoned"), None)


def read_shard(path: str) -> Iterator[pa.RecordBatch]:
    """The RecordBatches of a Parquet or Arrow shard (Arrow files on a local disk are memory-mapped).

    Raises `errors.ManifestInvalid` if the file is missing or truncated.
    """
    try:
        if str(path).endswith(".parquet"):
            with open_binary(path) as file:
                table = pq.ParquetFile(file)
                for group in range(table.num_row_groups):  # a batch never spans groups: a shard is not read whole
                    yield from table.iter_batches(1 << 20, row_groups=[group])
        elif is_remote(path):
            with open_binary(path) as file:
                yield from pa.ipc.open_stream(file)
        else:
            yield from pa.ipc.open_stream(pa.memory_map(str(path)))
    except (OSError, pa.ArrowInvalid) as error:
        raise errors.ManifestInvalid(str(path), f"unreadable shard ({error})", "run the stage that writes it") from None
