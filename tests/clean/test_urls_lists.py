"""The step `urls`: which pages lists of domains and substrings drop, and their reasons and details."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.urls import UrlLists
from corpusforge.schemas import DOCUMENTS
from tests.oracles import c4_urls

NAMES = ["a.org", "b.a.org", "c.net", "x"]
PARTS = ["/tag/", "?reply", "AD", "ä", "."]
URLS = st.lists(
    st.one_of(
        st.none(), st.lists(st.sampled_from([*NAMES, *PARTS, "http://", "/", "ad", "Ä"]), max_size=5).map("".join)
    )
)


def documents(urls: list[str | None]) -> pa.RecordBatch:
    """DOCUMENTS with these URLs."""
    rows = [
        {"id": str(i), "url": url, "source": "s", "position": i, "timestamp": None, "language": None, "text": "t"}
        for i, url in enumerate(urls)
    ]
    return pa.RecordBatch.from_pylist(rows, DOCUMENTS)


def decide(step: UrlLists, urls: list[str | None]) -> list[tuple[str, str | None]]:
    """(reason, detail) of each URL."""
    verdict = step.apply(documents(urls))
    return [(verdict.reasons[code], verdict.details.get(i)) for i, code in enumerate(verdict.codes.tolist())]


def test_allow_and_block() -> None:
    step = UrlLists(allow=("a.org",), block=("b.a.org",))
    urls: list[str | None] = ["http://a.org/1", "http://x.b.a.org", "http://c.net/", None]
    assert decide(step, urls) == [
        ("kept", None),
        ("page:url-blocked", "b.a.org"),
        ("page:url-not-allowed", "http://c.net/"),
        ("page:url-not-allowed", "no URL"),
    ]


def test_a_page_without_url_passes_lists_of_what_is_blocked() -> None:
    assert decide(UrlLists(block=("a.org",), block_substrings=("/ads/",)), [None, ""]) == [("kept", None)] * 2


@given(URLS, st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(PARTS)))
def test_as_decided_one_by_one(urls: list[str | None], allow: set[str], block: set[str], parts: set[str]) -> None:
    def one(url: str | None) -> str:
        if allow and not (url and c4_urls.covered(url, allow)):
            return "page:url-not-allowed"
        blocked = url and (c4_urls.covered(url, block) or any(part.lower() in url.lower() for part in parts))
        return "page:url-blocked" if blocked else "kept"

    step = UrlLists(tuple(sorted(allow)), tuple(sorted(block)), tuple(sorted(parts)))
    assert [reason for reason, _ in decide(step, urls)] == [one(url) for url in urls]


def test_substrings_are_not_expressions() -> None:
    step = UrlLists(block_substrings=(".*", "(", "$"))
    assert [reason for reason, _ in decide(step, ["http://a/b", "http://a/(b", "http://a/.*"])] == [
        "kept",
        "page:url-blocked",
        "page:url-blocked",
    ]


def test_thousands_of_substrings() -> None:
    step = UrlLists(block_substrings=tuple(f"/part-{i}/" for i in range(3000)))
    assert decide(step, ["http://a/PART-2999/", "http://a/part-3000/"]) == [
        ("page:url-blocked", "/part-2999/"),
        ("kept", None),
    ]
    with pytest.raises(errors.RecipeInvalid, match="substrings"):
        UrlLists(block_substrings=tuple(f"/part-{i}/" for i in range(10_001))).check()


def test_the_digest_covers_entries_not_paths(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# names\nb.org\na.org\n")
    from_file = UrlLists(block=(f"@{tmp_path / 'a.txt'}",))
    assert from_file.resources() == UrlLists(block=("a.org", "b.org")).resources()
    assert from_file.resources() != UrlLists(block=("a.org",)).resources()
    copy = pickle.loads(pickle.dumps(from_file))
    assert decide(copy, ["http://b.org"]) == [("page:url-blocked", "b.org")]


def test_lists_that_could_not_work_stop_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(errors.ResourceMissing):
        UrlLists(block=(f"@{tmp_path / 'none.txt'}",)).check()
    (tmp_path / "empty.txt").write_text("# nothing\n")
    with pytest.raises(errors.RecipeInvalid, match="no page would stay"):
        UrlLists(allow=(f"@{tmp_path / 'empty.txt'}",)).check()
    assert UrlLists().is_empty


def test_substrings_that_are_too_long_stop_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("/ads/\n" + "x" * 3_000_000 + "\n")
    with pytest.raises(errors.RecipeInvalid, match="3000000 characters, the limit is 2000"):
        UrlLists(block_substrings=(f"@{tmp_path / 'long.txt'}",)).check()


@pytest.mark.slow
def test_the_longest_lists_of_substrings_work() -> None:
    """In letters that fold to most bytes: each group compiles."""
    parts = tuple(f"{i:05d}" + "\u1e9e\u212a\u0416" * 600 for i in range(300))
    step = UrlLists(block_substrings=parts)
    step.check()
    assert decide(step, [f"http://a/{parts[299].lower()}", "http://a/"])[0][0] == "page:url-blocked"
