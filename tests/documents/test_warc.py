"""WARC and WET: every kind of record, encodings of bodies, damage."""

from __future__ import annotations

import datetime
import gzip
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.documents.raw_inputs import page, read_all, warc_record

Write = Callable[[str, bytes], Path]

HTML = b"Content-Type: text/html; charset=utf-8\r\n"


def test_a_page_becomes_a_document_with_its_origin(write: Write) -> None:
    path = write("in/a.warc.gz", gzip.compress(warc_record(page("Good morning, Zoë."))))
    (row,) = read_all(path.parent).documents
    assert row["text"] == "Good morning, Zoë."
    assert (row["url"], row["source"], row["position"]) == ("http://a.example/", "a.warc.gz", 0)
    assert row["timestamp"] == datetime.datetime(2024, 5, 18, 1, 58, 10, tzinfo=datetime.UTC)
    assert row["language"] is None
    assert len(row["id"]) == 32


@pytest.mark.parametrize(
    ("record", "reason", "detail"),
    [
        (warc_record(b"", kind=b"revisit"), "record:revisit", None),
        (warc_record(b"", kind=b"request"), "record:not-response", "request"),
        (warc_record(b"", block=b"1.2.3.4", media_type=b"text/dns"), "record:not-response", "text/dns response"),
        (warc_record(page("x"), status=b"404 Not Found"), "record:http-status", "404 Not Found"),
        (warc_record(b"", block=b"<p>no headers"), "record:http-status", "no status line"),
        (warc_record(b"{}", b"Content-Type: application/json\r\n"), "record:content-type", "application/json"),
        (warc_record(b"\x89PNG\r\n\x1a\n\0\0", HTML), "record:content-type", "text/html, but the body"),
        (warc_record(b" \n", HTML), "record:empty-body", None),
        (warc_record(b"<html><script>x()</script></html>", HTML), "record:no-text", None),
        (warc_record(gzip.compress(page("x"))[:-9], HTML + b"Content-Encoding: gzip\r\n"), "record:unreadable", None),
    ],
)  # fmt: skip
def test_records_that_are_not_pages_have_a_reason(write: Write, record: bytes, reason: str, detail: str | None) -> None:
    out = read_all(write("a.warc", record))
    assert out.reasons == [reason]
    if detail:
        assert out.rejects[0]["detail"].startswith(detail)


def _chunked(data: bytes) -> bytes:
    parts = [data[i : i + 700] for i in range(0, len(data), 700)]
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


def _brotli(data: bytes) -> bytes:
    return bytes(pytest.importorskip("brotli").compress(data))


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.compress(data)


@pytest.mark.parametrize(
    ("header", "encode"),
    [
        ("Content-Encoding: gzip", gzip.compress),
        ("Content-Encoding: x-gzip", gzip.compress),
        ("Content-Encoding: deflate", zlib.compress),
        ("Content-Encoding: deflate", lambda b: zlib.compress(b)[2:-4]),
        ("Content-Encoding: br", _brotli),
        ("Content-Encoding: zstd", _zstd),
        ("Transfer-Encoding: chunked", _chunked),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip", lambda b: _chunked(gzip.compress(b))),
        # Crawlers that decode bodies leave headers that are no longer true.
        ("Content-Encoding: gzip", bytes),
        ("Content-Encoding: deflate", bytes),
        ("Content-Encoding: br", bytes),
        ("Content-Encoding: zstd", bytes),
        ("Content-Encoding: utf-8", bytes),
        ("Transfer-Encoding: chunked", bytes),
        ("Transfer-Encoding: chunked", lambda b: _chunked(b)[:-21]),
    ],
)
def test_bodies_are_decoded(write: Write, header: str, encode: Callable[[bytes], bytes]) -> None:
    text = " ".join(f"Sentence number {i} is here." for i in range(99))
    record = warc_record(encode(page(text)), HTML + header.encode() + b"\r\n")
    assert read_all(write("a.warc", record)).texts == [text]


def test_plain_text_resources_and_conversions_are_documents(write: Write) -> None:
    data = (
        warc_record(b"a < b\n", b"Content-Type: text/plain\r\n")
        + warc_record(b"", kind=b"resource", media_type=b"text/html", block=page("resource"))
        + warc_record(b"", kind=b"conversion", media_type=b"text/plain", block="Zoë\nWARC-like line\n".encode())
        + warc_record(b"", kind=b"conversion", media_type=b"application/json", block=b"{}")
    )
    out = read_all(write("a.warc.wet", data))
    assert out.texts == ["a < b\n", "resource", "Zoë\nWARC-like line\n"]
    assert out.reasons == ["record:content-type"]


def test_main_content_or_all_text(write: Write) -> None:
    body = b"<html><body><nav>Home</nav><main><p>The story is long enough to be one.</p></main></body></html>"
    path = write("a.warc", warc_record(body))
    assert "Home" not in read_all(path, html="main").texts[0]
    assert "Home" in read_all(path, html="all").texts[0]


def test_headers_that_end_in_a_bare_line_feed(write: Write) -> None:
    record = warc_record(b"", block=b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n" + page("old")).replace(
        b"\r\n", b"\n"
    )
    assert read_all(write("a.warc", record)).texts == ["old"]


@pytest.mark.parametrize("codec", ["gzip", "zstd", "plain"])
def test_reading_resumes_after_damage(write: Write, codec: str) -> None:
    packed = {"gzip": gzip.compress, "zstd": _zstd, "plain": bytes}[codec]
    noise = random.Random(1).randbytes(4000).hex()
    records = [packed(warc_record(page(f"{i} {noise}"))) for i in range(5)]
    broken = bytearray(records[2])
    if codec == "plain":
        broken[:6] = b"XXXX/1"
    elif codec == "zstd":
        broken[4:12] = b"\xff" * 8  # FastWARC does not check zstd's checksums
    else:
        broken[len(broken) // 2] ^= 0x55
    out = read_all(write("a.warc", b"".join([*records[:2], bytes(broken), *records[3:]])))
    assert [t[0] for t in out.texts] == ["0", "1", "3", "4"]
    assert out.reasons == ["record:unreadable"]
    assert sorted(r["position"] for r in out.documents + out.rejects) == [0, 1, 2, 3, 4]


def test_a_bad_checksum_is_noticed(write: Write) -> None:
    member = bytearray(gzip.compress(warc_record(page("b"))))
    member[-6] ^= 1
    out = read_all(write("a.warc.gz", gzip.compress(warc_record(page("a"))) + bytes(member)))
    assert out.texts == ["a"]
    assert out.reasons == ["record:unreadable"]


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.arc.gz", "a.warc.wet"])
@pytest.mark.parametrize(
    "data", [b"garbage", b"\0" * 99999, b"\x1f\x8b\x08garbage", gzip.compress(b"garbage\n" * 9999)]
)
def test_garbage_is_one_reject(write: Write, name: str, data: bytes) -> None:
    out = read_all(write(name, data))
    assert out.reasons == ["record:unreadable"]
    assert out.rejects[0]["detail"]


def test_an_empty_archive_has_no_records(write: Write) -> None:
    assert read_all(write("a.warc", b"")).records == 0
    assert read_all(write("a.warc.gz", gzip.compress(b""))).records == 0


def test_a_record_cut_short_is_shown(write: Write) -> None:
    record = warc_record(page("the end is missing"))
    out = read_all(write("a.warc", record[:-25]))
    assert out.reasons == ["record:unreadable"]
    assert "cut short" in out.rejects[0]["detail"]
    assert "the end is miss" in out.rejects[0]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate"])
def test_a_bomb_stops_at_the_limit(write: Write, encoding: str) -> None:
    encode = {"gzip": gzip.compress, "br": _brotli, "zstd": _zstd, "deflate": zlib.compress}[encoding]
    bomb = warc_record(encode(b" " * (64 << 20)), HTML + f"Content-Encoding: {encoding}\r\n".encode())
    out = read_all(write("a.warc", bomb + warc_record(page("after"))), max_record_bytes=1 << 20)
    assert out.reasons == ["record:too-large"]
    assert out.texts == ["after"]


def test_a_record_above_the_limit_is_not_read(write: Write) -> None:
    large = gzip.compress(warc_record(b" " * (8 << 20)))
    out = read_all(write("a.warc.gz", large + gzip.compress(warc_record(page("after")))), max_record_bytes=1 << 20)
    assert out.reasons == ["record:too-large"]
    assert out.texts == ["after"]


def test_a_wrapped_address_is_unwrapped(write: Write) -> None:
    out = read_all(write("a.warc", warc_record(page("x"), url=b"<http://a.example/b c>")))
    assert out.documents[0]["url"] == "http://a.example/b c"


def test_nested_codings_are_limited(write: Write) -> None:
    body = gzip.compress(gzip.compress(page("twice")))
    fine = warc_record(body, HTML + b"Content-Encoding: gzip, identity, gzip\r\n")
    many = warc_record(body, HTML + b"Content-Encoding: " + b"gzip," * 6 + b"\r\n")
    out = read_all(write("a.warc", fine + many))
    assert out.texts == ["twice"]
    assert out.rejects[0]["detail"] == "6 content codings on top of each other"


def test_a_zstd_body_may_be_in_frames(write: Write) -> None:
    whole = page("In two frames.")
    body = _zstd(whole[:20]) + _zstd(whole[20:])
    out = read_all(write("a.warc", warc_record(body, HTML + b"Content-Encoding: zstd\r\n")))
    assert out.texts == ["In two frames."]
