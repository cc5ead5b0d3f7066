"""Read and write RecordBatches in a Beam pipeline: raw input, rows, shards, manifests.

`ReadDocuments`, `RowsToDocuments` and `ReadShards` produce RecordBatches of a few MB. `WriteShards` and `WriteManifest`
write them as the folder of a finished stage, which every command reads. A shard is named by the content of its rows: a
bundle that a runner repeats writes the same name, and one that it splits differently leaves a file that no manifest
lists. So only the manifest, written once, from the shards of completed bundles, states what the folder holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc

from corpusforge import errors, shards
from corpusforge.beam.sdk import as_itself, beam, count
from corpusforge.content import ContentDigest, combine
from corpusforge.shards import Manifest, Shard, ShardWriter

if TYPE_CHECKING:
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.read import RawBatch
    from corpusforge.documents.records import ReadOptions

REJECTS = "rejects"
"""Tag of the second output of `ReadDocuments`, `RowsToDocuments` and `CleanDocuments`."""

SHARD_BYTES = 64 << 20
"""Bytes of Arrow data in memory that make one shard."""


class RecordBatchCoder(beam.coders.Coder):  # type: ignore[misc, name-defined]
    """RecordBatches between workers, as Arrow IPC streams: of a sliced batch only the slice is sent."""

    def encode(self, batch: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        with pa.ipc.open_stream(encoded) as reader:
            return reader.read_next_batch()

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return pa.RecordBatch  # type: ignore[no-any-return]


beam.coders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)


def in_batches(outputs: Any) -> Any:
    """Declare all outputs of a step as RecordBatches, so that the coder above is used."""
    for collection in outputs:
        collection.element_type = pa.RecordBatch
    return outputs


def together(collections: Any) -> Any:
    """One PCollection of several, given as a tuple (Beam takes a list for values); a single one unchanged."""
    return collections | "Together" >> beam.Flatten() if isinstance(collections, tuple) else collections


class ReadDocuments(beam.PTransform):  # type: ignore[misc, name-defined]
    """Raw pages to DOCUMENTS RecordBatches; the records that could not be read are the output ``rejects``.

    ``paths``: files, folders, globs or URLs, listed on a worker (a graph holds no list of files).

        documents, rejects = pipeline | ReadDocuments(["crawl/*.warc.gz"])
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: ReadOptions | None = None,
        *,
        format: str = "auto",
        unit_bytes: int = 64 << 20,
        batch_bytes: int = 4 << 20,
    ) -> None:
        super().__init__()
        self.paths, self.options, self.format = tuple(paths), options, format
        self.unit_bytes, self.batch_bytes = unit_bytes, batch_bytes

    def expand(self, pipeline: Any) -> Any:
        reading = beam.ParDo(_Read(self.options, self.batch_bytes)).with_outputs(REJECTS, main="documents")
        return in_batches(
            pipeline
            | "Paths" >> beam.Create([self.paths], reshuffle=False)
            | "Plan" >> beam.ParDo(_Plan(self.format, self.unit_bytes))
            | "Spread" >> beam.Reshuffle()
            | "Read" >> reading
        )


class _Plan(beam.DoFn):  # type: ignore[misc, name-defined]
    """Paths -> units, small and picklable."""

    def __init__(self, format: str, unit_bytes: int) -> None:
        self.format, self.unit_bytes = format, unit_bytes

    def process(self, paths: tuple[str, ...]) -> Iterator[Unit]:
        from corpusforge.documents.plan import plan_units

        with as_itself():
            yield from plan_units(list(paths), format=self.format, unit_bytes=self.unit_bytes)


class _Read(beam.DoFn):  # type: ignore[misc, name-defined]
    """A unit -> batches of its documents, and of its rejects."""

    def __init__(self, options: ReadOptions | None, batch_bytes: int) -> None:
        self.options, self.batch_bytes = options, batch_bytes

    def process(self, unit: Unit) -> Iterator[Any]:
        from corpusforge.documents.read import read_unit
        from corpusforge.documents.records import ReadOptions

        with as_itself():
            for raw in read_unit(unit, self.options or ReadOptions(), batch_bytes=self.batch_bytes):
                yield from _outputs(raw)


def _outputs(raw: RawBatch) -> Iterator[Any]:
    """The documents of a batch, and its rejects as ``rejects``."""
    from corpusforge.clean.work import tally_rejects

    if raw.documents.num_rows:
        yield raw.documents
    if raw.rejects.num_rows:
        count(tally_rejects(raw.rejects))
        yield beam.pvalue.TaggedOutput(REJECTS, raw.rejects)


class RowsToDocuments(beam.PTransform):  # type: ignore[misc, name-defined]
    """Rows as dicts, such as those of BigQuery, to DOCUMENTS RecordBatches; those without text are ``rejects``.

    The columns of text, URL and time are read by name, the others dropped. ``source``: DOCUMENTS.source of them all. A
    document's id follows from its URL and text, so neither the order of the rows nor the runner's bundles change a
    document. Rows of equal URL and text have the same id: remove them before `DedupeSpans` and `DedupeDocuments`, which
    need unique ones. ``batch_bytes``: of all strings of the rows of a batch.

        documents, rejects = rows | RowsToDocuments(text_column="body")
    """

    def __init__(
        self,
        *,
        text_column: str = "text",
        url_column: str = "url",
        timestamp_column: str = "timestamp",
        source: str = "rows",
        batch_bytes: int = 4 << 20,
    ) -> None:
        from corpusforge.documents.records import ReadOptions

        super().__init__()
        self.options = ReadOptions(text_column=text_column, url_column=url_column, timestamp_column=timestamp_column)
        self.source, self.batch_bytes = source, batch_bytes

    def expand(self, rows: Any) -> Any:
        batching = beam.BatchElements(self.batch_bytes, self.batch_bytes, element_size_fn=_row_bytes)
        converting = beam.FlatMap(_convert, self.options, self.source).with_outputs(REJECTS, main="documents")
        return in_batches(rows | "Batch" >> batching | "Convert" >> converting)


def _row_bytes(row: Any) -> int:
    if isinstance(row, dict):
        return 256 + sum(len(value) for value in row.values() if isinstance(value, str | bytes))
    with as_itself():
        what, mend = f"a row is a {type(row).__name__}, not a dict", "convert the rows by a beam.Map before"
        raise errors.InputUnreadable("RowsToDocuments", what, mend)


def _convert(rows: Sequence[Mapping[str, Any]], options: ReadOptions, source: str) -> Iterator[Any]:
    from corpusforge.documents.read import read_rows

    yield from _outputs(read_rows(rows, options, source))


class ReadShards(beam.PTransform):  # type: ignore[misc, name-defined]
    """A table of a finished stage, as RecordBatches of at most ``batch_bytes`` in memory.

    documents = pipeline | ReadShards("corpus/clean", "documents")
    """

    def __init__(self, folder: str, table: str, *, batch_bytes: int = 4 << 20) -> None:
        super().__init__()
        self.folder, self.table, self.batch_bytes = folder, table, batch_bytes

    def expand(self, pipeline: Any) -> Any:
        return (
            pipeline
            | "Folder" >> beam.Create([self.folder], reshuffle=False)
            | "List" >> beam.ParDo(_ListShards(self.table))
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_ReadShard(self.batch_bytes)).with_output_types(pa.RecordBatch)
        )


class _ListShards(beam.DoFn):  # type: ignore[misc, name-defined]
    """Folder of a finished stage -> paths of a table's shards."""

    def __init__(self, table: str) -> None:
        self.table = table

    def process(self, folder: str) -> Iterator[str]:
        with as_itself():
            manifest = Manifest.load(folder)
            if self.table not in manifest.shards:
                mend = f"its tables: {', '.join(sorted(manifest.shards))}"
                raise errors.StageMismatch(folder, f"has no table '{self.table}'", mend)
            yield from manifest.paths(folder, self.table)


class _ReadShard(beam.DoFn):  # type: ignore[misc, name-defined]
    """Path of a shard -> its rows in batches of bounded size."""

    def __init__(self, batch_bytes: int) -> None:
        self.batch_bytes = batch_bytes

    def process(self, path: str) -> Iterator[pa.RecordBatch]:
        with as_itself():
            for batch in shards.read_shard(path):
                rows = max(1, batch.num_rows * self.batch_bytes // max(1, batch.nbytes))
                yield from (batch.slice(first, rows) for first in range(0, batch.num_rows, rows))


class WriteShards(beam.PTransform):  # type: ignore[misc, name-defined]
    """RecordBatches to ``<folder>/<table>/part-<content>.parquet`` (or ``.arrow``), and (table, Shard) rows.

    Several PCollections, as a tuple, go into one table.

        written = documents | WriteShards("corpus/clean", "documents")
    """

    def __init__(self, folder: str, table: str, *, kind: str = "parquet", shard_bytes: int = SHARD_BYTES) -> None:
        super().__init__()
        self.folder, self.table, self.kind, self.shard_bytes = folder, table, kind, shard_bytes

    def expand(self, batches: Any) -> Any:
        writing = _WriteShards(self.folder, self.table, self.kind, self.shard_bytes)
        return together(batches) | "Write" >> beam.ParDo(writing)


class _WriteShards(beam.DoFn):  # type: ignore[misc, name-defined]
    """Gathers the batches of a bundle to shards."""

    def __init__(self, folder: str, table: str, kind: str, shard_bytes: int) -> None:
        self.folder, self.table, self.kind, self.shard_bytes = folder, table, kind, shard_bytes

    def start_bundle(self) -> None:
        self._waiting: list[pa.RecordBatch] = []
        self._size = 0

    def process(self, batch: pa.RecordBatch) -> Iterator[tuple[str, Shard]]:
        if batch.num_rows:
            self._waiting.append(batch)
            self._size += batch.nbytes
        if self._size >= self.shard_bytes:
            yield self.table, self._write()

    def finish_bundle(self) -> Iterator[Any]:
        from apache_beam.transforms.window import GlobalWindows

        if self._waiting:
            yield GlobalWindows.windowed_value((self.table, self._write()))

    def _write(self) -> Shard:
        content = ContentDigest()
        for batch in self._waiting:
            content.add(batch)
        name = f"{self.table}/part-{content.hex()}{shards.SUFFIX[self.kind]}"
        writer = ShardWriter(self.folder, name, self._waiting[0].schema, self.kind)
        for batch in self._waiting:
            writer.write(batch)
        self.start_bundle()
        return writer.finish()


class WriteManifest(beam.PTransform):  # type: ignore[misc, name-defined]
    """(table, Shard) rows of all `WriteShards` of a folder to its ``manifest.json``, which makes it a finished stage.

    ``tables``: tables that the manifest names even where nothing was written to them.

        (written, dropped) | WriteManifest("corpus/clean", "clean", ("documents", "rejects"))
    """

    def __init__(self, folder: str, stage: str, tables: Sequence[str]) -> None:
        super().__init__()
        self.folder, self.stage, self.tables = folder, stage, tuple(tables)

    def expand(self, written: Any) -> Any:
        return (
            together(written)
            | "Gather" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
            | "Write" >> beam.Map(_write_manifest, self.folder, self.stage, self.tables)
        )


def _write_manifest(written: Iterable[tuple[str, Shard]], folder: str, stage: str, tables: Sequence[str]) -> str:
    listed: dict[str, list[Shard]] = {table: [] for table in tables}
    for table, shard in sorted(written, key=lambda row: row[1].name):
        listed.setdefault(table, []).append(shard)
    content = {table: combine(shard.content for shard in own) for table, own in listed.items()}
    manifest = Manifest(
        stage=stage,
        digest=combine(content.values()),  # of the content: a pipeline of your own has no recipe with a digest
        content=content,
        rows={table: sum(shard.rows for shard in own) for table, own in listed.items()},
        bytes={table: sum(shard.bytes for shard in own) for table, own in listed.items()},
        shards=listed,
        tallies={},
        statistics={},
        recipe={},
        upstream={},
        versions={"apache-beam": beam.__version__},
    )
    manifest.save(folder)
    return shards.join(folder, shards.MANIFEST)
