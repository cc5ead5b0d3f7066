"""Parquet: types, cuts by row group, files that are not Parquet."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusforge import errors
from tests.documents.raw_inputs import read_all


def _write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.slow
def test_rows_of_any_cut_are_the_same(tmp_path: Path) -> None:
    texts = [f"{i} " + "word " * (i % 300) for i in range(5000)]
    moments = pa.array([i * 1000 for i in range(5000)], pa.timestamp("ms"))
    columns = {"text": texts, "url": [f"u{i}" for i in range(5000)], "timestamp": moments, "other": list(range(5000))}
    path = _write(tmp_path / "a.parquet", columns, row_group_size=700)
    whole = read_all(path)
    assert whole.texts == texts
    assert [r["position"] for r in whole.documents] == list(range(5000))
    assert whole.documents[9]["timestamp"] == datetime.datetime.fromtimestamp(9, datetime.UTC)
    for unit_bytes in (100, 20_000, 100_000):
        assert read_all(path, unit_bytes=unit_bytes) == whole
    for skip in (1, 700, 1399, 4999, 5000):
        assert read_all(path, skip=skip).documents == whole.documents[skip:]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_every_kind_of_text(tmp_path: Path, kind: pa.DataType) -> None:
    column = pa.array(["a", None, "Zoë\0"], pa.string()).cast(kind)
    out = read_all(_write(tmp_path / "a.parquet", {"text": column}))
    assert out.texts == ["a", "Zoë"]
    assert out.reasons == ["record:no-text"]
    assert out.rejects[0]["position"] == 1


def test_a_text_above_the_limit_is_rejected(tmp_path: Path) -> None:
    out = read_all(_write(tmp_path / "a.parquet", {"text": ["a", "b" * 2000]}), max_record_bytes=1000)
    assert (out.texts, out.reasons) == (["a"], ["record:too-large"])


@pytest.mark.parametrize("columns", [{"content": ["a"]}, {"text": [1]}])
def test_a_missing_column_is_named(tmp_path: Path, columns: dict[str, Any]) -> None:
    with pytest.raises(errors.InputUnreadable, match="column 'text'"):
        read_all(_write(tmp_path / "a.parquet", columns))


@pytest.mark.parametrize("data", [b"", b"garbage", b"PAR1garbagePAR1"])
def test_a_file_that_is_not_parquet_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    if not data:
        assert read_all(path).records == 0
        return
    with pytest.raises(errors.InputUnreadable, match="not a Parquet file"):
        read_all(path)


def _damaged(path: Path, number: int, at: float) -> Path:
    """Three row groups of a thousand rows in pages of a hundred or so, one damaged from a part of its bytes on."""
    columns = {"text": [f"{i} " * 50 for i in range(3000)]}
    _write(path, columns, row_group_size=1000, use_dictionary=False, data_page_size=2000, write_batch_size=100)
    group = pq.ParquetFile(path).metadata.row_group(number).column(0)
    data = bytearray(path.read_bytes())
    start = group.data_page_offset + int(group.total_compressed_size * at)
    data[start : start + 200] = b"\xff" * 200
    path.write_bytes(bytes(data))
    return path


def test_a_damaged_row_group_is_one_reject(tmp_path: Path) -> None:
    out = read_all(_damaged(tmp_path / "a.parquet", 1, 0))
    assert len(out.texts) == 2000
    assert out.reasons == ["record:unreadable"]
    assert out.rejects[0]["position"] == 1000


@pytest.mark.parametrize("at", [0, 0.7])
def test_resuming_after_a_damaged_row_group_is_exact(tmp_path: Path, at: float) -> None:
    path = _damaged(tmp_path / "a.parquet", 0, at)
    whole = read_all(path)
    ids = [row["id"] for row in whole.documents]
    rows = [*range(len(ids) - 2000), None, *range(len(ids) - 2000, len(ids))]  # the reject stands between the groups
    assert 2001 <= whole.records < 3000
    for skip in (0, 1, 2, 512, 513, 514, 1000, 1001, 1512, 1513, 2000, whole.records):
        rest = read_all(path, skip=skip)
        assert [row["id"] for row in rest.documents] == [ids[i] for i in rows[skip:] if i is not None]
        assert rest.records == whole.records - skip
