"""Span hashes, duplicates and blocks: each against a few lines of plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import arrays, seeds
from corpusforge.dedupe import spans
from tests.dedupe.in_process import documents_batch

LENGTHS = st.lists(st.integers(0, 6), max_size=6)


def u64(values: list[int]) -> arrays.U64:
    return np.array(values, np.uint64)


@given(LENGTHS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_span_hashes_compare_like_tuples(lengths: list[int], length: int, dice: random.Random) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    sentences = [dice.randrange(3) for _ in range(offsets[-1])]
    hashes = spans.span_hashes(u64(sentences), np.array([s == 0 for s in sentences], bool), offsets, length)
    named: dict[int, tuple[int, ...]] = {}
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for row in range(first, last):
            span = tuple(sentences[row : row + length])
            if row + length > last or not any(span):
                assert hashes[row] == 0
            else:
                assert named.setdefault(int(hashes[row]), span) == span
    assert len(set(named.values())) == len(named)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(0, 5)), max_size=30),
    st.integers(1, 5),
)
def test_duplicates_are_all_but_the_first(rows: list[tuple[int, int, int, int]], count: int) -> None:
    rows = list({(unit, row): (h, k, unit, row) for h, k, unit, row in rows}.values())
    places = [int(spans.place(unit, np.array([row]))[0]) for _, _, unit, row in rows]
    groups: dict[int, list[tuple[int, int]]] = {}
    for (value, key, _, _), place in zip(rows, places, strict=True):
        groups.setdefault(value, []).append((key, place))
    expected = {place: min(group)[1] for group in groups.values() for _, place in sorted(group)[1:]}
    blocks = [
        spans.pack(u64([r[0] for r in part]), u64([r[1] for r in part]), u64(at))
        for part, at in ((rows[i::count], places[i::count]) for i in range(count))
    ]
    packed_pairs = spans.find_duplicates(blocks)
    assert [unit for unit, _ in packed_pairs] == sorted({place >> 40 for place in expected})
    dropped, kept = spans.unpack_duplicates(packed for _, packed in packed_pairs)
    assert dict(zip(dropped.tolist(), kept.tolist(), strict=True)) == expected
    for unit, packed in packed_pairs:
        assert set(spans.unit_of(spans.unpack_duplicates([packed])[0])) == {unit}
        assert len(packed) % spans.PAIR_BYTES == 0


def test_nothing_in_nothing_out() -> None:
    assert spans.find_duplicates([]) == []
    assert [len(column) for column in spans.unpack_duplicates([])] == [0, 0]


def test_blocks_are_little_endian_columns() -> None:
    block = spans.pack(u64([1]), u64([2]), spans.place(1, np.array([3])))
    assert block == (1).to_bytes(8, "little") + (2).to_bytes(8, "little") + ((1 << 40) + 3).to_bytes(8, "little")
    assert len(block) == spans.BLOCK_BYTES


def test_spans_rows_hold_offsets_into_each_text() -> None:
    texts = ["One. Two.\nThree été. Four!", "", "  Lone  "]
    rows = spans.hash_documents(documents_batch([(str(i), t) for i, t in enumerate(texts)])).to_pylist()
    for text, row in zip(texts, rows, strict=True):
        cut = [text.encode()[a:b].decode() for a, b in zip(row["starts"], row["stops"], strict=True)]
        assert " ".join(cut) == " ".join(text.split())
        assert len(row["hashes"]) == len(cut)
    assert [bool(h) for h in rows[0]["hashes"]] == [True, True, False, False]
    assert rows[0]["key"] == seeds.document_keys(["0"])[0]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_batch_and_its_slices_hash_alike(at: int) -> None:
    batch = documents_batch([("a", "A. B. C. D."), ("b", "É. F. G."), ("c", "A. B. C.")])
    whole = spans.hash_documents(batch).to_pylist()
    parts = [*spans.hash_documents(batch.slice(0, at)).to_pylist(), *spans.hash_documents(batch.slice(at)).to_pylist()]
    assert whole == parts
    assert whole[0]["hashes"][0] == whole[2]["hashes"][0]
