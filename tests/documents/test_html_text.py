"""Text out of HTML: three ways, pages that are too much, and what a library fails at."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_inputs import page, read_all, warc_record

from corpusforge import errors
from corpusforge.documents import html_limits
from corpusforge.documents.html_text import PageRefused, check_html, page_text
from tests.oracles import html_depth

Write = Callable[[str, bytes], Path]

STORY = "".join(
    f"<p>Sentence number {i} of the story is long enough to be one, as the others are.</p>" for i in range(9)
)
WHOLE = f"<html><body><nav><a href=/>Home</a></nav><article>{STORY}</article><footer>Imprint</footer></body></html>"
needs_trafilatura = pytest.mark.skipif(
    importlib.util.find_spec("trafilatura") is None, reason="needs trafilatura (corpusforge[html])"
)
PIECES = [
    "<div>",
    "<DIV class=x>",
    "</div>",
    "<article>",
    "</Article>",
    "<p>",
    "<",
    "</",
    "<di",
    "ä",
    "<a href=x>",
    "😀",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_depth_as_counted_one_by_one(text: str) -> None:
    data = np.frombuffer(text.encode() + bytes(16), np.uint8)
    assert html_limits._depth(data) == html_depth.depth(text)


@needs_trafilatura
def test_trafilatura_by_choice(write: Write) -> None:
    path = write("a.warc", warc_record(WHOLE.encode()) + warc_record(page("")))
    out = read_all(path, html="trafilatura")
    assert "Sentence number 8" in out.texts[0]
    assert "Home" not in out.texts[0] and "Imprint" not in out.texts[0]
    assert out.reasons == ["record:no-text"]


@needs_trafilatura
def test_trafilatura_remembers_no_pages() -> None:
    """The same text from every page that has it, whatever came before: its own deduplication is off."""
    first = page_text(WHOLE, "trafilatura")
    assert [page_text(WHOLE, "trafilatura") for _ in range(5)] == [first] * 5


@needs_trafilatura
def test_what_trafilatura_fails_at_is_a_reason(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    import trafilatura

    def fail(*_: object, **__: object) -> str:
        raise RecursionError("maximum depth\nexceeded")

    monkeypatch.setattr(trafilatura, "extract", fail)
    out = read_all(write("a.warc", warc_record(WHOLE.encode())), html="trafilatura")
    assert out.reasons == ["record:unreadable"]
    assert out.rejects[0]["detail"] == "trafilatura: RecursionError maximum depth"


def test_without_trafilatura_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    check_html("main")
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(errors.ExtraMissing, match=r"corpusforge\[html\]"):
        check_html("trafilatura")


@pytest.mark.parametrize(
    ("text", "html", "said"),
    [
        ("<p>" * (html_limits.MOST_TAGS + 1), "all", "tags"),
        ("<p>" * (html_limits.MOST_TAGS_PRECISE + 1), "trafilatura", "tags"),
        ("<article>a" * 513, "main", "513 deep"),
        ("<dIv\n>" * 2000 + "</div>" * 2000, "main", "2000 deep"),
    ],
)
def test_pages_that_are_too_much_are_refused(text: str, html: str, said: str) -> None:
    began = time.monotonic()
    with pytest.raises(PageRefused, match=said) as caught:
        page_text(text, html)
    assert caught.value.reason == "record:too-large"
    assert time.monotonic() - began < 2  # parsed, the last but one would take minutes


def test_what_is_allowed_is_parsed() -> None:
    assert page_text("<div>a" * 500, "main")
    assert page_text("<div>a" * 5000, "all")  # only the search for the main content minds the depth
    assert page_text("<div>a</div>" * 5000, "main")
    assert page_text("a < b, and c < d. " * 100_000, "all")
