"""Documents held out by URL: as C4 draws them, whatever the seed; by id where there is no URL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import schemas, seeds
from corpusforge.instances.splits import DRAW, is_heldout, split_tokens, with_draws
from tests.oracles import c4_urls


def tokens_of(urls: list[str | None]) -> pa.RecordBatch:
    """TOKENS with draws of documents with these URLs."""
    rows = [{"document": f"{i:032x}", "ids": [7], "sentences": [1]} for i in range(len(urls))]
    bare = pa.RecordBatch.from_pylist(rows, schemas.tokens_schema(100))
    return with_draws(bare, pa.record_batch({"url": pa.array(urls, pa.string())}))


def heldout_numbers(tokens: pa.RecordBatch, seed: int, share: float) -> set[int]:
    part = split_tokens(tokens, seed, share).get("heldout")
    return {int(name, 16) for name in part.column("document").to_pylist()} if part else set()


@given(st.lists(st.one_of(st.none(), st.sampled_from(["", "http://"]), st.text(max_size=6))), st.integers(0, 9))
def test_draws_as_c4_does(urls: list[str | None], seed: int) -> None:
    keys = seeds.document_keys([f"{i:032x}" for i in range(len(urls))])
    by_id = is_heldout(keys, seed, 0.3)
    wanted = {
        i
        for i, url in enumerate(urls)
        if (c4_urls.number(name) % 1000 < 300 if url and (name := c4_urls.normalised(url)) else by_id[i])
    }
    assert heldout_numbers(tokens_of(urls), seed, 0.3) == wanted


def test_c4s_own_validation_part() -> None:
    urls: list[str | None] = [f"https://www.site{i}.org/page/" for i in range(20_000)]
    heldout = heldout_numbers(tokens_of(urls), 5, 0.001)
    assert heldout == {i for i, u in enumerate(urls) if u and c4_urls.number(c4_urls.normalised(u)) % 1000 == 0}
    assert 5 < len(heldout) < 50


@pytest.mark.parametrize("thousandths", [0, 1, 7, 29, 57, 500])
def test_shares_are_exact_in_thousandths(thousandths: int) -> None:
    tokens = tokens_of([None] * 1000)
    draws = pa.array(np.arange(1000, dtype=np.uint16))
    tokens = tokens.set_column(tokens.num_columns - 1, DRAW, draws)
    assert heldout_numbers(tokens, 0, thousandths / 1000) == set(range(thousandths))
