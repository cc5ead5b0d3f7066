"""What stages and pipelines leave in folders and counters, to compare the two; an engine that plays a remote one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from corpusforge import shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.beam.sdk import NAMESPACE
from corpusforge.content import ContentDigest, combine
from tests.beam.documents_on_disk import documents

ROWS = documents(90)


def content(folder: Path, table: str) -> tuple[str, int]:
    written = [entry.tables[table] for entry in shards.load_entries(str(folder)) if table in entry.tables]
    return combine(shard.content for shard in written), sum(shard.rows for shard in written)


def finished(folder: Path, table: str) -> tuple[str, int]:
    manifest = shards.Manifest.load(str(folder))
    for path, shard in zip(manifest.paths(str(folder), table), manifest.shards[table], strict=True):
        read = ContentDigest()
        for batch in shards.read_shard(path):
            read.add(batch)
        assert read.hex() == shard.content == Path(path).stem.removeprefix("part-")
    return manifest.content[table], manifest.rows[table]


def counters(result: Any) -> dict[str, int]:
    """The counters per reason of a finished pipeline."""
    metrics = result.metrics().query(beam.metrics.MetricsFilter().with_namespace(NAMESPACE))["counters"]
    return {metric.key.metric.name: int(metric.result) for metric in metrics}


def pipeline() -> Any:
    return beam.Pipeline(runner=FnApiRunner())


def batches(rows: pa.RecordBatch, size: int) -> list[pa.RecordBatch]:
    return [rows.slice(first, size) for first in range(0, rows.num_rows, size)]


class Elsewhere(BeamEngine):
    """A runner that is not this machine's, played by the local one."""

    is_local = False  # type: ignore[assignment]
