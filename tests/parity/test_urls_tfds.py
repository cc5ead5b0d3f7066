"""Normalized URLs and the draws from them against tensorflow-datasets' own functions.

Runs where tensorflow-datasets is installed (``benchmarks/requirements-tfds.txt`` beside CorpusForge). Of tensorflow
they need only ``as_text``, which returns str unchanged.
"""

from __future__ import annotations

import random
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("tensorflow_datasets", reason="needs tensorflow-datasets (benchmarks/requirements-tfds.txt)")

from tensorflow_datasets.text import c4_utils

from corpusforge.clean.urls import is_drawn, md5_remainders, normalize_urls
from corpusforge.documents.plan import plan_units
from corpusforge.documents.read import read_origins
from corpusforge.documents.records import ReadOptions

PARTS = ["http://", "https://", "www.", "HTTP://", "?utm_", "?ref", "?feed", "?", "/", "//", "a.org", "é", "\n", "\r",
          "\x85", "\u2028", "x=1", "&utm_", "#", ":80"]  # fmt: skip


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Their module with the one function of tensorflow that it needs."""
    compat = types.SimpleNamespace(as_text=lambda text: text)
    monkeypatch.setattr(c4_utils, "tf", types.SimpleNamespace(compat=compat))
    return c4_utils


def urls(data: Path) -> list[str]:
    """100,000 random ones from the parts that the rule matches, and those of real crawls."""
    chance = random.Random(0)
    made = ["".join(chance.choices(PARTS, k=chance.randint(0, 8))) for _ in range(100_000)]
    units = plan_units([str(data / "warc"), str(data / "warc_wrapped")])
    real = [url for unit in units for found, _ in read_origins(unit, ReadOptions()) for url in found["url"].to_pylist()]
    assert len(real) > 1000
    return made + [url for url in real if url]


def test_normalized_urls_and_draws(theirs: types.ModuleType, shared_data: Path) -> None:
    given = urls(shared_data)
    found = normalize_urls(pa.array(given))
    assert found.to_pylist() == [theirs.normalize_url(url) for url in given]
    held = theirs.get_hashed_url_filter_fn(lambda number: number % 1000 == 0)
    gone = theirs.get_hashed_url_filter_fn(
        lambda number: not number % float.as_integer_ratio(0.999)[1] >= float.as_integer_ratio(0.999)[0]
    )
    pages = [theirs.PageFeatures(normalized_url=url) for url in found.to_pylist()]
    assert (md5_remainders(found, 1000) == 0).tolist() == [held(page) for page in pages]
    assert is_drawn(found, 0.999).tolist() == [gone(page) for page in pages]
    assert 0 < np.count_nonzero(md5_remainders(found, 1000) == 0) < len(given) / 100
