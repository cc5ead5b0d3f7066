"""Planning: which files are found, how they are named, grouped and cut."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusforge import errors
from corpusforge.documents.plan import plan_units, unit_size
from tests.documents.raw_inputs import read_all

Write = Callable[[str, bytes], Path]


def _sources(*paths: object, format: str = "text", leave_out: object = "") -> list[str]:
    units = plan_units([str(p) for p in paths], format=format, leave_out=str(leave_out))
    return [p.source for u in units for p in u.parts]


def test_sources_are_relative_to_what_was_named(write: Write, tmp_path: Path) -> None:
    for name in ("in/b.txt", "in/x/a.txt", "in/x/y/c.txt", "in/.hidden.txt", "in/_SUCCESS"):
        write(name, b"text")
    root = tmp_path / "in"
    assert _sources(root) == ["b.txt", "x/a.txt", "x/y/c.txt"]
    assert _sources(root / "x/a.txt") == ["a.txt"]
    assert _sources(f"{root}/*/*.txt") == ["x/a.txt"]
    assert _sources(f"{root}/**/*.txt") == ["b.txt", "x/a.txt", "x/y/c.txt"]
    assert _sources(f"{root}/x*") == ["x/a.txt", "x/y/c.txt"]
    assert _sources(f"file://{root}") == ["b.txt", "x/a.txt", "x/y/c.txt"]
    assert _sources(f"file://{root}/x/*.txt") == ["a.txt"]


def test_a_relative_path_gives_the_same_sources(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("in/b.txt", b"text")
    monkeypatch.chdir(tmp_path)
    assert _sources("in") == _sources("in/*") == _sources("in/b.txt") == ["b.txt"]
    assert _sources("*/b.txt") == ["in/b.txt"]


def test_a_file_given_twice_is_read_once_and_colliding_names_are_distinguished(write: Write, tmp_path: Path) -> None:
    for name in ("p/x/a.txt", "q/x/a.txt", "q/b.txt"):
        write(name, b"text")
    assert _sources(tmp_path / "p", tmp_path / "p/x") == ["x/a.txt"]
    assert _sources(tmp_path / "p", tmp_path / "q") == ["b.txt", "p/x/a.txt", "q/x/a.txt"]
    assert _sources(tmp_path / "p/x/a.txt", tmp_path / "q/x/a.txt") == ["p/x/a.txt", "q/x/a.txt"]


def test_an_output_inside_the_input_is_left_out(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("in/a.txt", "in/out/b.txt", "in/out/x/c.txt", "in/output/d.txt"):
        write(name, b"text")
    root, left = tmp_path / "in", ["a.txt", "output/d.txt"]
    (tmp_path / "link").symlink_to(root)
    for out in (root / "out", f"{root}/out/", tmp_path / "link/out", f"file://{root}/out", "in/out"):
        monkeypatch.chdir(tmp_path)
        for named in (root, f"{root}/**/*.txt", f"{root}/*", f"{root}/**", tmp_path / "link", f"file://{root}"):
            assert _sources(named, leave_out=out) == left, (named, out)
        with pytest.raises(errors.InputMissing):
            _sources(root / "out/x/c.txt", leave_out=out)
    assert _sources(root, leave_out="gs://bucket/in") == ["a.txt", "out/b.txt", "out/x/c.txt", "output/d.txt"]


def test_a_url_inside_the_input_is_left_out() -> None:
    import fsspec

    for name in ("a.txt", "out/b.txt", "output/c.txt"):
        fsspec.filesystem("memory").pipe_file(f"/left-out/{name}", b"text")
    assert _sources("memory://left-out", leave_out="memory://left-out/out/") == ["a.txt", "output/c.txt"]


MANIFEST = json.dumps({"stage": "clean", "digest": "0", "shards": {}}).encode()


def test_of_a_stage_only_its_documents_are_read(write: Write, tmp_path: Path) -> None:
    for name in ("documents/a.parquet", "documents/b.json", "rejects/a.parquet", "entries/a.json", "run.json"):
        write(f"in/stage/{name}", b"text")
        write(f"in/other/{name}", b"text")
    write("in/stage/manifest.json", MANIFEST)
    write("in/other/manifest.json", b'["not ours"]')
    write("in/c.txt", b"text")
    stage, root = tmp_path / "in/stage", tmp_path / "in"
    other = ["documents/a.parquet", "documents/b.json", "entries/a.json", "manifest.json", "rejects/a.parquet"]
    for named in (stage, f"{stage}/*", f"{stage}/**", f"file://{stage}"):
        assert _sources(named) == ["documents/a.parquet"]
    for named in (root, f"{root}/*", f"{root}/**/*", f"file://{root}"):
        assert _sources(named) == [
            "c.txt",
            *(f"other/{name}" for name in [*other, "run.json"]),
            "stage/documents/a.parquet",
        ]
    assert _sources(stage / "rejects") == _sources(f"{stage}/rejects/*") == ["a.parquet"]  # named as such


def test_links_to_folders_are_followed_and_circles_end(write: Write, tmp_path: Path) -> None:
    for name in ("in/z/a.txt", "in/z/y/b.txt", "elsewhere/c.txt", "elsewhere/.d.txt"):
        write(name, b"text")
    root = tmp_path / "in"
    (root / "a").symlink_to(root / "z")  # the same files by another name
    (root / "z/up").symlink_to(root)
    (root / "z/y/gone").symlink_to(tmp_path / "gone")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/back").symlink_to(root / "z")
    for named in (root, f"{root}/**/*.txt", f"{root}/**"):
        assert _sources(named) == ["link/c.txt", "z/a.txt", "z/y/b.txt"]
    assert _sources(root / "link", leave_out=root) == ["c.txt"]


@pytest.mark.parametrize("pattern", ["", "/*", "/**/*.txt"])
def test_a_folder_below_that_may_not_be_read(
    pattern: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = write("in/x/closed/a.txt", b"text").parent
    write("in/x/b.txt", b"text")
    closed.chmod(0)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and access(path, mode))  # root may
    try:
        with pytest.raises(errors.InputUnreadable, match="closed: the folder may not be read"):
            _sources(f"{tmp_path}/in{pattern}")
        assert _sources(f"{tmp_path}/in{pattern}", leave_out=closed) == ["x/b.txt"]
    finally:
        closed.chmod(0o700)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.warc.gz", b"", "warc"),
        ("a.warc.wet.gz", b"", "wet"),
        ("a.warc.wat.gz", b"", "warc"),
        ("a.arc", b"", "warc"),
        ("a.jsonl.zst", b"", "jsonl"),
        ("a.parquet", b"", "parquet"),
        ("a.TXT", b"", "text"),
        ("a.dat", b"WARC/1.1\r\nWARC-Type: response\r\n", "warc"),
        ("a.dat", b'{"text": "a"}\n', "jsonl"),
        ("a.dat", b"PAR1....", "parquet"),
        ("README", b"Read me.\n", "text"),
    ],
)
def test_formats_by_name_and_content(write: Write, name: str, content: bytes, expected: str) -> None:
    assert plan_units([str(write(name, content))])[0].parts[0].format == expected


def test_an_unknown_format_is_an_error(write: Write) -> None:
    with pytest.raises(errors.InputUnreadable, match="format cannot be detected"):
        plan_units([str(write("a.bin", b"\0\1\2\3" * 99))])


def test_no_path_is_an_error() -> None:
    with pytest.raises(errors.InputMissing, match="no path is named"):
        plan_units([])


@pytest.mark.parametrize("path", ["missing.txt", "empty", "no*match"])
def test_a_path_without_files_is_an_error(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    for base in (str(tmp_path), f"file://{tmp_path}"):
        with pytest.raises(errors.InputMissing):
            plan_units([f"{base}/{path}"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(write: Write) -> None:
    path = write("a.txt", b"x")
    path.chmod(0)
    with pytest.raises(errors.InputUnreadable, match="may not be read"):
        plan_units([str(path)])


def test_a_file_that_vanishes(write: Write) -> None:
    from corpusforge.documents.read import read_unit
    from corpusforge.documents.records import ReadOptions

    path = write("a.txt", b"x")
    (unit,) = plan_units([str(path)])
    path.unlink()
    with pytest.raises(errors.InputMissing, match="has gone"):
        list(read_unit(unit, ReadOptions()))


def test_small_files_are_grouped_and_large_ones_cut(write: Write, tmp_path: Path) -> None:
    for i in range(6):
        write(f"in/{i}.jsonl", b'{"text": "%d"}\n' % i)  # 14 bytes each
    write("in/6.jsonl", b'{"text": "6"}\n' * 10)
    write("in/7.warc", b"x" * 500)
    units = plan_units([str(tmp_path / "in")], unit_bytes=60)
    assert [unit.number for unit in units] == list(range(len(units)))
    assert [[(p.source, p.start, p.stop) for p in u.parts] for u in units] == [
        [(f"{i}.jsonl", 0, -1) for i in range(4)],
        [("4.jsonl", 0, -1), ("5.jsonl", 0, -1)],
        [("6.jsonl", 0, 60)],
        [("6.jsonl", 60, 120)],
        [("6.jsonl", 120, -1)],
        [("7.warc", 0, -1)],
    ]
    assert [unit_size(unit) for unit in units] == [56, 28, 60, 60, 20, 500]
    json.dumps([dataclasses.asdict(unit) for unit in units])


@pytest.mark.slow
def test_ids_depend_on_source_and_position_alone(write: Write, tmp_path: Path) -> None:
    for i in range(5):
        write(f"in/{i}.jsonl", b"".join(b'{"text": "%d %d"}\n' % (i, k) for k in range(50)))
    write("in/t.txt", b"one\n\ntwo")
    whole = read_all(tmp_path / "in", text_split="blank-line")
    assert len({row["id"] for row in whole.documents}) == len(whole.documents) == 252
    for unit_bytes in (1, 100, 700, 2000):
        assert read_all(tmp_path / "in", unit_bytes=unit_bytes, text_split="blank-line") == whole
