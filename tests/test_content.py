"""The content digest depends on every value, and not on sharding or order."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.content import ContentDigest, combine

ROWS = st.lists(
    st.tuples(
        st.text(max_size=8),
        st.one_of(st.none(), st.integers(-(2**40), 2**40)),
        st.lists(st.integers(0, 65_535), max_size=5),
        st.one_of(st.none(), st.sampled_from(["a", "b"])),
    ),
    max_size=12,
)
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.int64()),
        ("ids", pa.list_(pa.uint16())),
        ("reason", pa.dictionary(pa.int16(), pa.string())),
    ]
)


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [list(c) for c in zip(*rows, strict=True)] or [[] for _ in SCHEMA]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def _digest(*batches: pa.RecordBatch) -> str:
    digest = ContentDigest()
    for batch in batches:
        digest.add(batch)
    return digest.hex()


@given(ROWS, st.data())
def test_the_digest_does_not_depend_on_batches_and_order(rows: list[tuple[object, ...]], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    batch = _batch(shuffled)
    parts = batch.slice(0, cut), batch.slice(cut)
    assert _digest(_batch(rows)) == _digest(*parts) == combine(_digest(p) for p in parts)


@given(ROWS, st.integers(0, 11), st.sampled_from([0, 1, 2, 3]))
def test_any_changed_value_changes_the_digest(rows: list[tuple[object, ...]], at: int, field: int) -> None:
    if not rows:
        return
    at %= len(rows)
    changed = list(rows)
    other = {0: f"{rows[at][0]}x", 1: (rows[at][1] or 0) + 1, 2: [*rows[at][2], 0], 3: "c"}[field]  # type: ignore[operator, misc]
    changed[at] = (*rows[at][:field], other, *rows[at][field + 1 :])
    assert _digest(_batch(rows)) != _digest(_batch(changed))


def test_null_is_not_zero_or_empty() -> None:
    rows = [("", 0, [], "a")], [("", None, [], "a")], [("", 0, [], None)]
    assert len({_digest(_batch(r)) for r in rows}) == 3
