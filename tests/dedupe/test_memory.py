"""A budget of memory: what fits in it, what is refused, and what is measured against it."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors, schemas, shards
from corpusforge.dedupe import memory
from corpusforge.dedupe.memory import exact_bytes, exact_rounds, largest_document, mark_rounds, pair_rounds
from corpusforge.units import ShardUnit


@given(st.integers(400, 1 << 16), st.integers(1, 256), st.integers(0, 10**14))
def test_a_plan_keeps_to_its_budget(megabytes: int, workers: int, text: int) -> None:
    planned = memory.plan(megabytes << 20, workers, text)
    assert planned.peak_bytes <= megabytes << 20
    assert 1 <= planned.workers <= workers
    assert planned.spans * memory.SPAN_BYTES <= planned.rounds * planned.shuffle_bytes


def test_the_smallest_budget_that_works_is_named_and_works() -> None:
    with pytest.raises(errors.RecipeInvalid, match="set it to 400 or more"):
        memory.plan(399 << 20, 1, 0)
    assert memory.plan(400 << 20, 8, 10**12).workers == 1


def test_the_memory_of_a_span_is_that_of_the_plan() -> None:
    assert abs(memory.SPAN_BYTES - exact_bytes(10**6, 1, 64) / 10**6) < 1


def test_words_state_the_expected_peak() -> None:
    planned = memory.plan(1 << 30, 16, 10**9)
    assert planned.words(10**9) == (
        "about 7,812,500 spans in 1,000 MB of text: 2 workers, 2 rounds of comparison, an expected peak of 1,024 MiB"
    )


def test_a_large_document_counts_and_one_that_is_too_large_is_reported() -> None:
    assert memory.plan(2 << 30, 16, 10**9, 4 << 20) == memory.plan(2 << 30, 16, 10**9)
    fits, exceeds = (memory.plan(1 << 30, 16, 10**8, size << 20) for size in (20, 40))
    assert fits.peak_bytes <= 1 << 30 < exceeds.peak_bytes
    assert exceeds.workers == 1
    assert fits.words(10**8).endswith("MiB of it for the largest document")
    assert exceeds.words(10**8).endswith("an expected peak of 1,264 MiB, up to 864 MiB of it for the largest document: "
                                         "more than --memory-budget")  # fmt: skip


@pytest.mark.slow
def test_the_largest_document_is_read_from_footers(tmp_path: Path) -> None:
    def unit(name: str, *texts: str) -> ShardUnit:
        writer = shards.ShardWriter(str(tmp_path), name, schemas.DOCUMENTS, "parquet")
        for text in texts:
            row = {"id": "a", "source": "s", "position": 0, "text": text}
            writer.write(pa.RecordBatch.from_pylist([row], schema=schemas.DOCUMENTS))
        return ShardUnit(0, str(tmp_path / name), len(texts), writer.finish().bytes)

    dice = random.Random(0)
    usual, large = ("".join(dice.choices("abcdefgh ", k=size)) for size in (1 << 20, 9 << 20))
    assert largest_document([unit("usual.parquet", usual, usual)]) == 0
    largest_size = largest_document([unit("usual.parquet", usual), unit("large.parquet", usual, large)])
    assert len(large) <= largest_size < 1.01 * len(large)


@given(st.integers(0, 10**11), st.integers(1, 1 << 36), st.integers(1, 512))
def test_planned_rounds_fit_the_budget(total: int, budget: int, partitions: int) -> None:
    rounds = exact_rounds(total, budget, partitions)
    assert exact_bytes(total, rounds, partitions) <= budget
    assert rounds == 1 or exact_bytes(total, 1, partitions) > budget


def test_rounds_grow_with_the_corpus() -> None:
    assert pair_rounds(0, 0, 1 << 30) == mark_rounds(0, 1 << 30, 16) == 1
    assert mark_rounds(10**9, 1 << 30, 16) > mark_rounds(10**9, 1 << 31, 16)
    assert pair_rounds(10**8, 10**8, 1 << 30) > pair_rounds(10**8, 10**7, 1 << 30)
