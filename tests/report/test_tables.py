"""The listing of clusters: the largest first, with its least similar members; ids cannot control the terminal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from corpusforge.report.inspect import inspect
from corpusforge.schemas import CLUSTERS
from corpusforge.shards import ShardWriter
from tests.report.handmade_run import HOSTILE


def shown(path: Path, **options: int) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(*inspect(str(path), **options), sep="\n")  # type: ignore[arg-type]
    return console.export_text()


def write(folder: Path, shards: list[list[tuple[str, str, int, float]]]) -> Path:
    for number, rows in enumerate(shards):
        writer = ShardWriter(str(folder), f"clusters/part-{number:05d}-00000.parquet", CLUSTERS, "parquet")
        records = [dict(zip(CLUSTERS.names, row, strict=True)) for row in rows]
        writer.write(pa.RecordBatch.from_pylist(records, schema=CLUSTERS))
        writer.finish()
    return folder / "clusters"


def test_the_largest_clusters_come_first(tmp_path: Path) -> None:
    one = [("a", "a", 2, 1.0), ("b", "b", 5, 1.0), ("b", "b1", 5, 0.91), ("b", "b2", 5, 0.83)]
    path = write(tmp_path, [one, [("a", "a1", 2, 0.9), ("b", "b3", 5, 0.95), ("b", "b4", 5, 0.75)]])
    lines = shown(path).splitlines()
    assert lines[0].startswith("2 clusters of 7 documents; 1 to 2")
    assert lines[1].startswith("b  5 documents, similarity to it at least 0.75, 0.86 on average")
    assert [line.split()[-1] for line in lines[2:5]] == ["b4", "b2", "b1"]
    assert lines[5].startswith("a  2 documents")
    assert "b  5" not in shown(path, rows=1, skip=1)
    assert "no clusters" in shown(path, skip=2)


def test_an_empty_first_shard_is_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, [[], [("a", "a", 2, 1.0), ("a", "a1", 2, 0.9)]])
    assert shown(path).splitlines()[0].startswith("1 clusters of 2 documents; 1 to 1")


def test_ids_cannot_control_the_terminal(tmp_path: Path) -> None:
    assert "\x1b" not in shown(write(tmp_path, [[(HOSTILE, HOSTILE, 2, 1.0), (HOSTILE, "x", 2, 0.9)]]))


def test_folders_of_older_versions_are_read(tmp_path: Path) -> None:
    rows = [("b", "b", 2, 1.0), ("b", "b1", 2, 0.9)]
    new, old = write(tmp_path / "new", [rows]), write(tmp_path / "old", [rows])
    path = old / "part-00000-00000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.rename_columns(["survivor", *table.column_names[1:]]), path)
    assert shown(old) == shown(new).replace(str(new), str(old))
