"""Shards, entries and resume: whole or not at all, and the same after any crash."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from corpusforge import errors, shards
from corpusforge.units import UnitOutput

SCHEMA = pa.schema([("n", pa.int64())])
TABLES = {"rows": (SCHEMA, "parquet"), "more": (SCHEMA, "arrow")}


class Crash(Exception):
    pass


def _work(folder: Path, rows: int = 10, crash_at: int | None = None) -> None:
    with UnitOutput(str(folder), 0, TABLES, shard_bytes=30) as output:
        for n in range(output.position, rows):
            if n == crash_at:
                raise Crash
            batch = pa.record_batch([pa.array([n])], schema=SCHEMA)
            tally = {"kept": {"rows": 1, "bytes": 10}}
            output.write({"rows": batch, "more": batch}, position=n + 1, size=10, tallies=tally, statistics={"x": n})
        output.finish()


def _files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("crash_at", range(10))
def test_a_crash_anywhere_then_resume_gives_the_same_files(tmp_path: Path, crash_at: int) -> None:
    _work(tmp_path / "whole")
    with pytest.raises(Crash):
        _work(tmp_path / "crashed", crash_at=crash_at)
    assert not [p for p in (tmp_path / "crashed").rglob("*") if p.name.startswith(".unfinished")]
    _work(tmp_path / "crashed")
    assert _files(tmp_path / "crashed") == _files(tmp_path / "whole")


def test_an_altered_shard_is_made_again(tmp_path: Path) -> None:
    _work(tmp_path)
    before = _files(tmp_path)
    (tmp_path / "rows/part-00000-00001.parquet").write_bytes(b"broken")
    _work(tmp_path)
    assert _files(tmp_path) == before


def test_entries_add_up(tmp_path: Path) -> None:
    _work(tmp_path)
    found, tallies, statistics = shards.gather(shards.load_entries(str(tmp_path)))
    assert tallies == {"kept": {"rows": 10, "bytes": 100}}
    assert statistics == {"x": 45}
    assert [s.rows for s in found["rows"]] == [3, 3, 3, 1]
    values = [n for s in found["rows"] for b in shards.read_shard(str(tmp_path / s.name)) for n in b["n"].to_pylist()]
    assert values == list(range(10))


def test_a_broken_shard_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "x.arrow").write_bytes(b"\x00\x01")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    for name in ("x.arrow", "x.parquet", "missing.arrow"):
        with pytest.raises(errors.ManifestInvalid, match=name):
            list(shards.read_shard(str(tmp_path / name)))


def test_statistics_add_numbers_lists_and_dicts() -> None:
    total = shards.add_statistics({}, {"n": 1, "h": [1, 2], "d": {"a": 1}})
    assert shards.add_statistics(total, {"n": 2, "h": [1, 1, 1], "d": {"a": 1, "b": 5}}) == {
        "n": 3,
        "h": [2, 3, 1],
        "d": {"a": 2, "b": 5},
    }


def test_memory_filesystem_is_written_whole() -> None:
    """Object stores get one PUT of the final name."""
    shards.write_json("memory://bucket/a/b.json", {"x": 1})
    assert shards.read_json("memory://bucket/a/b.json") == {"x": 1}
    assert shards.list_names("memory://bucket/a", ".json") == ["b.json"]
