"""Shards, entries and resuming: all or nothing, and the same after any crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from corpusforge import errors, shards
from corpusforge.shards import manifests
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


def test_an_altered_shard_is_written_again(tmp_path: Path) -> None:
    _work(tmp_path)
    before = _files(tmp_path)
    (tmp_path / "rows/part-00000-00001.parquet").write_bytes(b"broken")
    _work(tmp_path)
    assert _files(tmp_path) == before


BROKEN = ["", "{", "[]", "null", "{}", '"x"', '{"tables": 3}', '{"tables": {"rows": {"name": 1}}}', "\udcff"]


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_entry_counts_as_absent(tmp_path: Path, broken: str) -> None:
    _work(tmp_path)
    before = _files(tmp_path)
    path = tmp_path / "entries/part-00000-00001.json"
    path.write_bytes(broken.encode("utf-8", "surrogateescape"))
    assert [entry.shard for entry in shards.load_entries(str(tmp_path))] == [0]
    _work(tmp_path)
    assert _files(tmp_path) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [("unit", 1), ("shard", 0), ("position", "6"), ("last", 0), ("tallies", []), ("statistics", None), ("tables", [])],
)
def test_an_entry_of_the_wrong_shape_counts_as_absent(tmp_path: Path, key: str, value: object) -> None:
    _work(tmp_path)
    before = _files(tmp_path)
    path = tmp_path / "entries/part-00000-00001.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    _work(tmp_path)
    assert _files(tmp_path) == before


def test_a_unit_finds_its_entries_without_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _work(tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError("listed")

    for module in (shards, manifests):
        monkeypatch.setattr(module, "list_names", refuse)
    with UnitOutput(str(tmp_path), 0, TABLES, shard_bytes=30) as output:
        assert output.done and output.position == 10


def test_entries_of_another_cut_are_ignored(tmp_path: Path) -> None:
    for unit in (100_000, 3, 1, 0):
        with UnitOutput(str(tmp_path), unit, TABLES, shard_bytes=30) as output:
            output.finish()
    assert [entry.unit for entry in shards.load_entries(str(tmp_path))] == [0, 1, 3, 100_000]
    assert [entry.unit for entry in shards.load_entries(str(tmp_path), 2)] == [0, 1]


def test_entries_add_up(tmp_path: Path) -> None:
    _work(tmp_path)
    tables, tallies, statistics = shards.gather(shards.load_entries(str(tmp_path)))
    assert tallies == {"kept": {"rows": 10, "bytes": 100}}
    assert statistics == {"x": 45}
    assert [s.rows for s in tables["rows"]] == [3, 3, 3, 1]
    values = [n for s in tables["rows"] for b in shards.read_shard(str(tmp_path / s.name)) for n in b["n"].to_pylist()]
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


def test_a_remote_file_is_written_under_its_final_name() -> None:
    """Object stores get a single PUT."""
    shards.write_json("memory://bucket/a/b.json", {"x": 1})
    assert shards.read_json("memory://bucket/a/b.json") == {"x": 1}
    assert shards.list_names("memory://bucket/a", ".json") == ["b.json"]


def test_parent_folders_are_created_on_every_kind_of_store(tmp_path: Path) -> None:
    for root in (f"file://{tmp_path}", "memory://bucket-of-parents"):
        _work_at(f"{root}/a/b")
        assert shards.exists(f"{root}/a/b/entries/part-00000-00000.json")
        shards.write_json(f"{root}/top.json", {})
        assert shards.read_json(f"{root}/top.json") == {}
    shards.write_json("memory://top.json", {})


def _work_at(folder: str) -> None:
    with UnitOutput(folder, 0, TABLES, shard_bytes=30) as output:
        output.finish()


class RemembersListings(MemoryFileSystem):
    """As the filesystems of object stores do: a listing is cached until invalidated, and decides what exists."""

    protocol = "remembers"
    listings: ClassVar[dict[str, list[Any]]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> Any:
        return super()._strip_protocol(path.removeprefix("remembers://"))

    def exists(self, path: str, **options: Any) -> bool:
        return bool(super(MemoryFileSystem, self).exists(path, **options))  # by `info`

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        if path not in self.listings:
            self.listings[path] = super().ls(path, detail=True, **options)
        files = self.listings[path]
        return files if detail else [file["name"] for file in files]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        known = self.listings.get(path.rpartition("/")[0])
        if known is not None and path not in [file["name"] for file in known]:
            raise FileNotFoundError(path)
        return super().info(path, **options)

    def invalidate_cache(self, path: str | None = None) -> None:
        self.listings.clear()


def test_files_written_by_workers_are_seen() -> None:
    fsspec.register_implementation("remembers", RemembersListings, clobber=True)
    shards.write_json("remembers://seen/a.json", {})
    assert shards.list_names("remembers://seen", ".json") == ["a.json"]
    fsspec.filesystem("memory").pipe_file("/seen/b.json", b"{}")  # by a worker: this filesystem does not notice
    assert shards.exists("remembers://seen/b.json")
    fsspec.filesystem("memory").pipe_file("/seen/c.json", b"{}")
    assert shards.list_names("remembers://seen", ".json") == ["a.json", "b.json", "c.json"]
