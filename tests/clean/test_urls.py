"""URLs by columns against the rule written out one at a time, and lists of domains and substrings."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.clean.urls import is_drawn, md5_remainders, md5_words, normalize_urls
from tests.oracles import c4_urls

PIECES = ["http://", "https://", "www.", "http:/", "?utm_", "?ref", "?feed", "?", "&utm_", "/", "//", "a.org", "B",
          "é", "好", "x=1", "\n", "HTTP://", "https://www.", ":80", "#top", " ", "?u", "web/2020"]  # fmt: skip
URLS = st.lists(st.one_of(st.none(), st.lists(st.sampled_from(PIECES), max_size=9).map("".join), st.text(max_size=9)))


@given(URLS)
def test_normalised_as_tensorflow_datasets_does(urls: list[str | None]) -> None:
    found = normalize_urls(pa.array(urls, pa.string())).to_pylist()
    assert found == [None if url is None else c4_urls.normalised(url) for url in urls]


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://www.a.org/", "a.org"),
        ("HTTPS://www.a.org/", "HTTPS://www.a.org"),  # case matters, as in the original
        ("www.a.org", "www.a.org"),  # only after a scheme
        ("http://web.archive.org/web/http://www.a.org/b", "web.archive.org/web/a.org/b"),
        ("http://a.org/?p=1&utm_source=x", "a.org/?p=1&utm_source=x"),
        ("http://a.org/?refresh=1", "a.org"),
        ("http://", ""),
        ("", ""),
    ],
)
def test_normalised_by_example(url: str, wanted: str) -> None:
    assert normalize_urls(pa.array([url])).to_pylist() == [wanted]


def test_slices_and_empty_columns() -> None:
    column = pa.array(["http://a/", "http://b/", None])
    assert normalize_urls(column.slice(1)).to_pylist() == ["b", None]
    assert normalize_urls(column.slice(0, 0)).to_pylist() == []
    assert len(md5_words(column.slice(0, 0))[0]) == 0


@given(st.lists(st.text(max_size=5)), st.integers(1, 2**31))
def test_md5_as_numbers(urls: list[str], divisor: int) -> None:
    column = pa.array(urls, pa.string())
    high, low = md5_words(column)
    assert [(h << 64) | w for h, w in zip(high.tolist(), low.tolist(), strict=True)] == [*map(c4_urls.number, urls)]
    assert md5_remainders(column, divisor).tolist() == [c4_urls.number(url) % divisor for url in urls]


@given(st.lists(st.text(max_size=5)), st.floats(0.001, 1.0))
def test_drawn_as_the_bad_word_fraction_is(urls: list[str], share: float) -> None:
    above, below = float.as_integer_ratio(share)
    assert is_drawn(pa.array(urls, pa.string()), share).tolist() == [c4_urls.number(u) % below < above for u in urls]
