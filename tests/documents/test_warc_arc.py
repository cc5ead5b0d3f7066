"""ARC: both versions, malformed lines, wrong lengths."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.documents.raw_inputs import page, read_all

Write = Callable[[str, bytes], Path]

HEAD = b"filedesc://x.arc 0.0.0.0 20040511211249 text/plain 76\n" + (
    b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n\n"
)


def _record(text: str, line: bytes = b"http://a.example/ 1.2.3.4 20040511211249 text/html %d") -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page(text)
    return line % len(block) + b"\n" + block + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        b"http://a.example/ 1.2.3.4 20040511211249 text/html %d",
        b"http://a.example/with a space 2a02:26f0::132d 20040511211249 text/html %d",
        b"http://a.example/ 1.2.3.4 a0d1fdddf3165d0447b1f7a285c61c1c9 text/html %d",
        b"http://a.example/ 1.2.3.4 20040511211249 text/html 200 - - 123 x.arc %d",
    ],
)
def test_record_lines_of_both_versions(write: Write, line: bytes) -> None:
    out = read_all(write("a.arc", HEAD + _record("one", line) + _record("two")))
    assert out.texts == ["one", "two"]
    assert out.reasons == ["record:not-response"]
    assert out.documents[0]["url"].startswith("http://a.example/")


def test_an_arc_is_recognized_by_its_content(write: Write) -> None:
    assert read_all(write("a.bin", gzip.compress(_record("one")))).texts == ["one"]


@pytest.mark.parametrize(
    "rubbish", [b"rubbish\nmore\n\nrubbish\n", b"http://a.example/ 1.2.3.4 20040511211249 text/html -7\n"]
)
def test_reading_resumes_after_rubbish(write: Write, rubbish: bytes) -> None:
    out = read_all(write("a.arc", HEAD + _record("one") + rubbish + _record("two")))
    assert out.texts == ["one", "two"]
    assert out.reasons == ["record:not-response", "record:unreadable"]


@pytest.mark.parametrize("cut", [1, 30, 100])
def test_a_file_cut_short(write: Write, cut: int) -> None:
    whole = HEAD + _record("one") + _record("two")
    out = read_all(write("a.arc", whole[: -cut - 1]))
    assert out.texts == ["one"]
    assert out.reasons[1:] == ["record:unreadable"]
    out = read_all(write("b.arc.gz", gzip.compress(whole)[:-cut]))
    assert out.reasons[-1] == "record:unreadable"


def test_a_record_above_the_limit(write: Write) -> None:
    out = read_all(write("a.arc", HEAD + _record("x" * 99999) + _record("two")), max_record_bytes=5000)
    assert out.texts == ["two"]
    assert out.reasons == ["record:not-response", "record:too-large"]
