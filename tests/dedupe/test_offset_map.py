"""Offsets in the input text of the stage, after any cuts, against texts that carry their own offsets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.dedupe.offset_map import OFFSET_MAP, map_after_cut, original_offsets, original_stops
from corpusforge.text import text_bytes

MARKED = st.lists(st.lists(st.booleans(), max_size=12), max_size=5)


def cut_once(texts: list[list[int]], cut: list[list[bool]], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cut every marked byte, run by run; only the place of a byte matters, not its value."""
    _, ends = text_bytes(batch.column("text"))
    regions = []
    for document, row in enumerate(cut):
        starts = [i for i, c in enumerate(row) if c and (i == 0 or not row[i - 1])]
        stops = [i + 1 for i, c in enumerate(row) if c and (i + 1 == len(row) or not row[i + 1])]
        regions += [(ends[document] + a, ends[document] + b) for a, b in zip(starts, stops, strict=True)]
    starts, stops = (np.array([region[k] for region in regions], np.int64) for k in (0, 1))
    column = map_after_cut(batch, starts, stops)
    left = ["x" * len(row) for row in texts]
    return pa.RecordBatch.from_arrays([pa.array(left, pa.string()), column], ["text", OFFSET_MAP.name])


@given(MARKED, st.data())
def test_offsets_are_those_of_the_bytes_that_stayed(shape: list[list[bool]], data: st.DataObject) -> None:
    where = [list(range(len(row))) for row in shape]
    batch = pa.record_batch({"text": pa.array(["x" * len(row) for row in shape], pa.string())})
    for _ in range(3):
        cut = [data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row))) for row in where]
        where = [[w for w, c in zip(row, marks, strict=True) if not c] for row, marks in zip(where, cut, strict=True)]
        batch = cut_once(where, cut, batch)
        rows = np.array([i for i, row in enumerate(where) for _ in row], np.int64)
        inside = np.array([k for row in where for k in range(len(row))], np.int64)
        expected = [w for row in where for w in row]
        assert original_offsets(batch, rows, inside).tolist() == expected
        assert original_stops(batch, rows, inside + 1).tolist() == [w + 1 for w in expected]
        for row, pairs in zip(where, batch.column(OFFSET_MAP.name).to_pylist(), strict=True):
            assert (pairs is None) == (row == list(range(len(row))))  # nothing is kept of what needs nothing


def test_slices_of_a_batch_keep_their_map() -> None:
    batch = pa.record_batch({"text": pa.array(["abcd", "efgh", "ijkl"])})
    cut = pa.RecordBatch.from_arrays(
        [pa.array(["cd", "efgh", "il"]), map_after_cut(batch, np.array([0, 9]), np.array([2, 11]))],
        ["text", OFFSET_MAP.name],
    )
    assert original_offsets(cut.slice(2), np.array([0, 0]), np.array([0, 1])).tolist() == [0, 3]
    assert original_offsets(cut.slice(0, 1), np.array([0]), np.array([1])).tolist() == [3]
