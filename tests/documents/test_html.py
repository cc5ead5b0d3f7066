"""Text of HTML: three extractors, pages above the limits, and failures of a library."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.documents import html, pages
from corpusforge.documents.html import PageRefused, check_html, page_text
from tests.documents.raw_inputs import page, read_all, warc_record
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

MORE = [
    "<b ",
    "</b>",
    " a",
    "=",
    '"',
    "'",
    ">",
    "/",
    "<!--",
    "-->",
    "<!-->",
    "<script>",
    "</script>",
    "<ScRipt a",
    "<title>",
    "</title",
]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_depth_as_counted_one_by_one(text: str) -> None:
    assert html.depth_as_written(text, names=("div", "article")) == html_depth.depth(text, {"div", "article"})
    assert html.depth_as_written(text, without=("p",)) == html_depth.depth(text, html_depth.ALL - {"p"})


@given(st.lists(st.sampled_from(PIECES + MORE), max_size=40).map("".join), st.integers(0, 4))
def test_tags_as_a_browser_reads_them(text: str, most: int) -> None:
    """Depth and attributes beside the tokenizer written out character by character."""
    tags = html_depth.tokens(text)
    named = "".join(f"<{name}>" for name, _ in tags)
    assert html.depth(text, names=("div", "b")) == html_depth.depth(named, {"div", "b"})
    assert html.has_long_tag(text, most) == any(count > most for _, count in tags)


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
def test_a_failure_of_trafilatura_is_a_reason(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    import trafilatura

    def fail(*_: object, **__: object) -> str:
        raise RecursionError("maximum depth\nexceeded")

    monkeypatch.setattr(trafilatura, "extract", fail)
    out = read_all(write("a.warc", warc_record(WHOLE.encode())), html="trafilatura")
    assert out.reasons == ["record:unreadable"]
    assert out.rejects[0]["detail"] == "trafilatura: RecursionError maximum depth"


def test_without_trafilatura_the_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    check_html("main")
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(errors.ExtraMissing, match=r"corpusforge\[html\]"):
        check_html("trafilatura")


ATTRIBUTES = " ".join(f"a{i}=b" for i in range(30_000))


@pytest.mark.parametrize(
    ("text", "html", "message"),
    [
        ("<p>" * (html.MOST_TAGS + 1), "all", "tags"),
        ("<p>" * (html.MOST_TAGS_PRECISE + 1), "trafilatura", "tags"),
        ("<article>a" * 513, "main", "513 deep"),
        (f"<p {ATTRIBUTES}>", "all", "attributes"),
        (f"</p {ATTRIBUTES}>", "main", "attributes"),
        (f"<!--><svg><script><p {ATTRIBUTES} b='>'></script>-->", "all", "attributes"),
        (f"<script><x y='</script><p {ATTRIBUTES}><script>'</script>", "all", "attributes"),
        (f"<!--<x y='--><p {ATTRIBUTES}><!--'-->", "all", "attributes"),
        ("<ul>" * 60_000, "all", "60000 deep"),
        ("<ul><li>" * 10_000, "all", "10000 deep"),
        ("<ol><!--</ol>-->" * 10_000, "main", "10000 deep"),
        ("<a x='<!--'>" + "<ul title='</ul>'>" * 10_000, "all", "10000 deep"),
        ("<div><!--</div>-->" * 10_000, "main", "10000 deep"),
        ("<span></x>" * 40_000 + "<hr>" * 40_000, "all", "40000 deep"),
        ("".join(f"<x{i}>" for i in range(40_000)) + "<hr>" * 40_000, "all", "40000 deep"),
        ("<dIv\n>" * 2000 + "</div>" * 2000, "main", "2000 deep"),
    ],
)
def test_pages_above_the_limits_are_refused(text: str, html: str, message: str) -> None:
    began = time.monotonic()
    with pytest.raises(PageRefused, match=message) as caught:
        page_text(text, html)
    assert caught.value.reason == "record:too-large"
    assert time.monotonic() - began < 2  # parsed, the last but one would take minutes


def test_what_is_allowed_is_parsed() -> None:
    assert page_text("<div>a" * 500, "main")
    assert page_text("<div>a" * 5000, "all")  # depth slows only the search for the main content
    assert page_text("<div>a</div>" * 5000, "main")
    assert page_text("a < b, and c < d. " * 100_000, "all")
    assert page_text(f"<script>if (1 <b {ATTRIBUTES}) f()</script><p>a", "all") == "a"  # a script has no attributes
    assert page_text("<ul><li>a</li></ul>" * 5000, "all")
    assert page_text("<ol><li>a" * 60, "all")


@pytest.mark.parametrize(
    "piece", ["<", "</", "<a ", "<!--", "<script>", '<a b="', "<a b=\"c'", "<a =", "<svg><script "]
)
def test_counting_takes_linear_time(piece: str) -> None:
    began = time.monotonic()
    for names in ((), ("ul",)):
        html.depth(piece * 50_000, names=names)
    html.has_long_tag(piece * 50_000, 10**6)
    assert time.monotonic() - began < 5  # in quadratic time: minutes


@pytest.mark.slow
@pytest.mark.parametrize("extractor", ["main", "all", "trafilatura"])
def test_no_real_page_is_refused(extractor: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(pages, "page_text", lambda page, _: seen.append(page) or "x")
    files = sorted(file for folder in ("warc", "warc_wrapped") for file in (shared_data / folder).iterdir())
    read_all(*files, html=extractor)
    assert len(seen) > 1000
    assert [excess for page in seen if (excess := html.excess_of(page, extractor))] == []
