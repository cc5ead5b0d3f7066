"""Domains by columns against a set looked up suffix by suffix; lists from recipes and files."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.urls import Domains, hosts_of, load_domains, read_entries
from tests.oracles import c4_urls

LABELS = st.sampled_from(["a", "b", "co", "uk", "org", "x-1"])
HOSTS = st.lists(LABELS, min_size=1, max_size=5).map(".".join)
URLS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["http://", "https://", "//", "", "ftp://"]),
    st.sampled_from(["", "me@", "me:secret@"]),
    st.one_of(HOSTS, HOSTS.map(str.upper), st.just(""), st.just("[::1]")),
    st.sampled_from(["", ".", ":80"]),
    st.sampled_from(["", "/", "/b.org/c", "?q=http://b.org", "#a.org"]),
)


@given(st.lists(st.one_of(st.none(), URLS)), st.sets(HOSTS))
def test_covering_as_a_set_looked_up_suffix_by_suffix(urls: list[str | None], names: set[str]) -> None:
    column, found = pa.array(urls, pa.string()), Domains(pa.array(sorted(names), pa.string()))
    assert hosts_of(column).to_pylist() == [c4_urls.domain_of(url or "") for url in urls]
    assert found.covering(column).to_pylist() == [c4_urls.covered(url, names) if url else None for url in urls]


@given(st.lists(st.text(max_size=12)))
def test_any_text_is_looked_up(urls: list[str]) -> None:
    assert len(Domains(pa.array(["a.org"])).covering(pa.array(urls, pa.string()))) == len(urls)


def test_a_slice_of_a_column() -> None:
    column = pa.array(["http://x.org", "http://a.org", None, ""]).slice(1)
    assert Domains(pa.array(["a.org"])).covering(column).to_pylist() == ["a.org", None, None]


def test_names_in_other_letters() -> None:
    found = load_domains(["Müller.de", "xn--p1ai"], "urls.block")
    column = pa.array(["http://www.xn--mller-kva.de/", "http://müller.de/", "http://пример.рф/"])
    assert found.covering(column).to_pylist() == ["xn--mller-kva.de", "xn--mller-kva.de", "xn--p1ai"]


def test_a_hostile_host_costs_no_quadratic_memory() -> None:
    column = pa.array(["http://" + "a." * 1_000_000 + "org/"] * 3)
    assert Domains(pa.array(["a.org"])).covering(column).to_pylist() == ["a.org"] * 3


def test_lists_from_files_and_recipes(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes("\ufeff# a comment\n\n*.b.org\r\n  https://c.org/ \n.D.ORG.\nb.org".encode())
    found = load_domains([f"@{path}", "e.org"], "urls.block")
    assert len(found) == 4
    hosts = ["x.b.org", "c.org", "d.org", "e.org", "f.org"]
    assert found.covering(pa.array(hosts)).to_pylist() == ["b.org", "c.org", "d.org", "e.org", None]


@pytest.mark.parametrize("wrong", ["a.org/path", "a b", "a..b", "https://", "a@b.org", "*", "a:80", "x" * 2000])
def test_an_entry_that_is_not_a_domain_is_named(wrong: str) -> None:
    with pytest.raises(errors.RecipeInvalid, match="not a domain"):
        load_domains(["fine.org", wrong], "urls.block")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(errors.ResourceMissing, match=r"urls\.block"):
        read_entries([f"@{tmp_path / 'none.txt'}"], "urls.block")
    (tmp_path / "latin.txt").write_bytes(b"m\xfcller.de\n")
    with pytest.raises(errors.RecipeInvalid, match="UTF-8"):
        read_entries([f"@{tmp_path / 'latin.txt'}"], "urls.block")


@pytest.mark.slow
def test_a_million_names(tmp_path: Path) -> None:
    path = tmp_path / "million.txt"
    path.write_text("\n".join(f"site-{i}.example" for i in range(1_000_000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = load_domains([f"@{path}"], "urls.block")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB, while it is read
    urls = pa.array([f"http://www.site-{i}.example/page" for i in range(999_000, 1_001_000)])
    began = time.monotonic()
    assert found.covering(urls).null_count == 1000
    assert time.monotonic() - began < 1  # 2,000 look-ups: milliseconds on a quiet machine
