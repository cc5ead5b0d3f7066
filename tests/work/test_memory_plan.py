"""A budget of memory: what fits in it, what is refused, and what is measured against it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.work import memory
from corpusforge.work.dedupe import peak_bytes


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


def test_a_span_takes_what_rounds_are_planned_with() -> None:
    assert abs(memory.SPAN_BYTES - peak_bytes(10**6, 1, 64) / 10**6) < 1


def test_words_say_what_is_expected() -> None:
    planned = memory.plan(1 << 30, 16, 10**9)
    assert planned.words(10**9) == (
        "about 7,812,500 spans in 1,000 MB of text: 2 workers, 2 rounds of comparison, an expected peak of 1,024 MiB"
    )
