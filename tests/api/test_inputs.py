"""Input of clean that is no file: any form of it gives the same documents."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusforge as cf
from corpusforge import errors
from corpusforge.api import inputs
from corpusforge.progress import Silent
from corpusforge.sections import Input

QUICK: dict[str, Any] = {"language": "", "badwords": "off", "sentences": "builtin", "rules": [], "progress": False}
ROWS = [{"text": f"Page {n} has this text.", "url": f"http://x.org/{n}", "more": n} for n in range(2500)]


def _polars() -> Any:
    return pytest.importorskip("polars").DataFrame(ROWS)


def _datasets(streaming: bool = False) -> Any:
    dataset = pytest.importorskip("datasets").Dataset.from_list(ROWS)
    return dataset.to_iterable_dataset() if streaming else dataset


FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: pa.Table.from_pylist(ROWS),
    "batch": lambda: pa.RecordBatch.from_pylist(ROWS),
    "reader": lambda: pa.Table.from_pylist(ROWS).to_reader(300),
    "large and dictionary types": lambda: pa.table(
        {
            "text": pa.array([row["text"] for row in ROWS], pa.large_string()),
            "url": pa.array([row["url"] for row in ROWS]).dictionary_encode(),
        }
    ),
    "pandas": lambda: pytest.importorskip("pandas").DataFrame(ROWS),
    "polars": _polars,
    "dataset": _datasets,
    "streamed dataset": lambda: _datasets(streaming=True),
    "list of dicts": lambda: ROWS,
    "iterator of dicts": lambda: iter(ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_documents(form: str) -> None:
    table = cf.clean(FORMS[form](), **QUICK).table()
    assert table["text"].to_pylist() == [row["text"] for row in ROWS]
    assert table["url"].to_pylist() == [row["url"] for row in ROWS]


def test_texts_come_from_an_iterator_and_paths_from_a_list(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A file with one text.")
    assert cf.clean((row["text"] for row in ROWS), **QUICK).table().num_rows == len(ROWS)
    for paths in (tmp_path / "a.txt", str(tmp_path), [tmp_path / "a.txt"], f"{tmp_path}/*.txt"):
        assert cf.clean(paths, **QUICK).table()["text"].to_pylist() == ["A file with one text."]
    with pytest.raises(errors.InputMissing):
        cf.clean(["A text that was passed in a list, which means a path."], **QUICK)


def test_missing_values_and_columns_that_change_are_read() -> None:
    rows = [{"text": "One text."}] * 1500 + [{"text": "Two texts.", "url": "http://x"}] * 1500 + [{"text": None}]
    result = cf.clean(iter(rows), **QUICK)
    assert result.table()["url"].null_count == 1500 and result.table().num_rows == 3000
    assert sum(row["rows"] for reason, row in result.counts.items() if reason != "kept") == 1


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (iter([]), errors.InputMissing, "has no rows"),
        ("", errors.InputMissing, "an empty path"),
        (iter(["x", 2]), errors.InputUnreadable, "row 1 of the input: is a int"),
        ([{"body": "x"}], errors.InputMissing, "no column 'text'.*there are: body"),
        (iter([{"text": "x"}, {"text": 3}]), errors.InputUnreadable, "row 1 of the input: its 'text' is a int"),
        ([{"text": "x", "url": "a"}, {"text": "y", "url": 3}], errors.InputUnreadable, "'url' of rows 0 to 1.*alike"),
        ([{"url": "x"}], errors.InputMissing, "no column 'text'"),
        (3, errors.InputUnreadable, "a int cannot be read"),
        ([], errors.InputMissing, "no input is named"),
    ],
)
def test_bad_input_is_one_line(given: Any, error: type[errors.CorpusForgeError], message: str) -> None:
    with pytest.raises(error, match=message):
        cf.clean(given, **QUICK)


def test_the_same_rows_are_the_same_run(tmp_path: Path) -> None:
    """So that a run that was interrupted resumes when it is called again with them."""
    first = cf.clean(iter(ROWS), output=tmp_path / "out", **QUICK)
    again = cf.clean(iter(ROWS), output=tmp_path / "out", **QUICK)
    assert not first.skipped and again.skipped
    with pytest.raises(errors.OutputTaken, match="other input"):
        cf.clean(iter(ROWS[1:]), output=tmp_path / "out", **QUICK)


@pytest.mark.slow
def test_an_iterator_is_written_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the text takes no more memory: what is held are a batch and the writer's row group."""
    monkeypatch.setattr(inputs, "FILE_BYTES", 1 << 20)

    def texts(count: int) -> Iterator[str]:
        letters = np.random.default_rng(0)
        for _ in range(count):
            yield letters.bytes(1000).hex()

    def peak(count: int) -> int:
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        most = 0
        with inputs.as_files(texts(count), Input(), Silent()) as paths:
            assert sum(pq.read_metadata(path).num_rows for path in paths) == count
            most = max(most, pa.total_allocated_bytes() - before)
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return python + most

    peak(1000)
    assert peak(9000) < 1.2 * peak(3000)


def test_series_and_arrays_are_texts() -> None:
    pandas, texts = pytest.importorskip("pandas"), ["One text.", "Two texts."]
    for given in (pandas.Series(texts), pa.array(texts), pa.chunked_array([texts]), np.array(texts)):
        assert cf.clean(given, **QUICK).table()["text"].to_pylist() == texts


def test_a_frame_is_read_by_its_wanted_columns_alone() -> None:
    """A column that Arrow cannot take does not matter; whole numbers as URLs stay, as text."""
    frame = pytest.importorskip("pandas").DataFrame({"text": ["One text.", "Two texts."], "n": [7, 8], "z": [1, "a"]})
    assert cf.clean(frame, url_column="n", **QUICK).table()["url"].to_pylist() == ["7", "8"]
    with pytest.raises(errors.InputUnreadable, match="one type"):
        cf.clean(frame, text_column="z", **QUICK)
    with pytest.raises(errors.InputUnreadable, match="column 'n' is int64, not text"):
        cf.clean(frame, text_column="n", **QUICK)


def test_what_is_no_text_is_rejected_and_half_a_surrogate_replaced() -> None:
    rows = [None, "A half \ud800 of a pair.", None]
    result = cf.clean(iter(rows), **QUICK)
    assert result.table()["text"].to_pylist() == ["A half \ufffd of a pair."]
    assert result.counts["record:no-text"]["rows"] == 2
    dicts = [{"text": "One text."}, {"text": float("nan")}]
    assert cf.clean(dicts, **QUICK).counts["record:no-text"]["rows"] == 1
