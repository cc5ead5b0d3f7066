"""Several names for a column: each file is read by the one it has."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusforge import errors
from corpusforge.documents.plan import plan_units
from corpusforge.documents.read import check_columns, read_unit
from corpusforge.documents.records import ReadOptions


def _texts(folder: Path, options: ReadOptions) -> list[str]:
    units = plan_units([str(folder)])
    check_columns(units, options)
    return sorted(t for u in units for b in read_unit(u, options) for t in b.documents.column("text").to_pylist())


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text('{"text": "one", "url": "http://a"}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'\nnot json\n{"content": "two"}\n'))
    pq.write_table(pa.table({"body": ["three"]}), tmp_path / "c.parquet")
    return tmp_path


def test_each_file_by_the_column_it_has(mixed: Path) -> None:
    assert _texts(mixed, ReadOptions(text_column="text, content,body")) == ["one", "three", "two"]


def test_a_file_with_none_of_them_is_reported_before_any_work(mixed: Path) -> None:
    with pytest.raises(errors.InputUnreadable, match=r"c\.parquet.*there are: body"):
        _texts(mixed, ReadOptions(text_column="text,content"))
    with pytest.raises(errors.InputUnreadable, match=r"b\.jsonl\.gz.*there are: content"):
        _texts(mixed, ReadOptions(text_column="text"))
