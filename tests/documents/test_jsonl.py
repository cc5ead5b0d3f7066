"""JSON Lines: parity with Python's json line by line, bad lines, cuts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from tests.documents.raw_inputs import read_all

Write = Callable[[str, bytes], Path]


def _oracle(data: bytes) -> list[tuple[int, str | None]]:
    """(offset, text or None for a reject) of each line that is not blank, the slow way."""
    found, offset = [], 0
    for line in data.split(b"\n"):
        if line.strip():
            try:
                value = json.loads(line.decode("utf-8", "replace"))
                text = value.get("text") if isinstance(value, dict) else None
            except ValueError:
                text = None
            found.append((offset, _sound(text) if isinstance(text, str) else None))
        offset += len(line) + 1
    return found


def _sound(text: str) -> str:
    return text.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _rows(out: Any) -> list[tuple[int, str | None]]:
    rows = [(r["position"], r["text"]) for r in out.documents] + [(r["position"], None) for r in out.rejects]
    return sorted(rows, key=lambda row: row[0])


LINES = st.lists(
    st.one_of(
        st.text(max_size=20).map(lambda t: json.dumps({"text": t}).encode()),
        st.text(max_size=20).map(lambda t: json.dumps({"text": t}, ensure_ascii=False).encode(errors="replace")),
        st.sampled_from([
            b"", b" ", b"\r", b"\t\r", b"{}", b"[]", b"1", b"{", b"}", b'{"text":', b'"b"}', b'{"text":1}',
            b'{"text":null}',
            b' {"text": "indented"}', b'{"text":"a"} {"text":"b"}', b'{"text":"a","text":"b"}', b'{"text":"\\ud800"}',
            b'{"text":"\\u0000x"}', b'{"text":"\xff"}', b'{"text":"cr"}\r', b'{"text":"n","timestamp":12}',
            b"\xef\xbb\xbf{}",
            b'{"text":"t","timestamp":"2024-05-18T01:58:10Z","url":5}', b'{"text":"nan","x":NaN}', b"\x00", b"\xff\xfe",
        ]),
    ),
    max_size=12,
)  # fmt: skip


@given(lines=LINES, end=st.sampled_from([b"", b"\n"]), cut=st.integers(1, 60))
def test_every_line_is_one_row_for_any_cut(write: Write, lines: list[bytes], end: bytes, cut: int) -> None:
    data = b'{"text":"first"}\n' + b"\n".join(lines) + end
    path = write("a.jsonl", data)
    expected = _oracle(data)
    assert _rows(read_all(path)) == expected
    assert _rows(read_all(path, unit_bytes=cut)) == expected
    assert _rows(read_all(write("a.jsonl.gz", gzip.compress(data)))) == expected


@pytest.mark.slow
def test_a_large_file_cut_anywhere(write: Write) -> None:
    lines = [
        json.dumps({"text": f"{i} " + "x" * (i % 977), "url": f"http://a/{i}", "timestamp": i}) for i in range(9000)
    ]
    data = "\n".join(lines).encode()
    path = write("a.jsonl", data)
    whole = read_all(path)
    assert [t.split()[0] for t in whole.texts] == [str(i) for i in range(9000)]
    assert whole.documents[77]["timestamp"].timestamp() == 77
    for unit_bytes in (1_000_003, 300_000):
        assert read_all(path, unit_bytes=unit_bytes) == whole
    for name, packed in {"b.jsonl.gz": gzip.compress(data), "b.jsonl.zst": zstandard.compress(data)}.items():
        out = read_all(write(name, packed), unit_bytes=1_000_003)
        assert [(r["position"], r["text"]) for r in out.documents] == [
            (r["position"], r["text"]) for r in whole.documents
        ]


def test_a_bad_line_keeps_its_text_and_its_neighbours(write: Write) -> None:
    out = read_all(write("a.jsonl", b'{"text":"a"}\n{"text":"b\n{"text":5}\n{"text":"c"}\n'))
    assert out.texts == ["a", "c"]
    assert out.reasons == ["record:bad-json", "record:no-text"]
    assert out.rejects[0]["text"] == '{"text":"b'


def test_other_columns(write: Write) -> None:
    data = b'{"content":"a","link":"http://x/","date":"2024-05-18 01:58:10.5","text":7}\n'
    out = read_all(write("a.jsonl", data), text_column="content", url_column="link", timestamp_column="date")
    assert out.texts == ["a"]
    assert out.documents[0]["url"] == "http://x/"
    assert out.documents[0]["timestamp"].isoformat() == "2024-05-18T01:58:10+00:00"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1e300", None),
        ("-1e300", None),
        ("NaN", None),
        ("true", None),
        ("1715997490", "2024-05-18T01:58:10+00:00"),
        ("1715997490.5", "2024-05-18T01:58:10+00:00"),
        ("1715997490123", "2024-05-18T01:58:10+00:00"),
        ('"2024-05-18T03:58:10+02:00"', "2024-05-18T01:58:10+00:00"),
        ('"2024-05-18T01:58:10.999Z"', "2024-05-18T01:58:10+00:00"),
        ('"20240518015810"', "2024-05-18T01:58:10+00:00"),
        ('"2024-05-18"', "2024-05-18T00:00:00+00:00"),
        ('"9999-12-31T23:59:59Z"', "9999-12-31T23:59:59+00:00"),
        ('"yesterday"', None),
        ('""', None),
        ("{}", None),
    ],
)
def test_times_in_many_spellings(write: Write, value: str, expected: str | None) -> None:
    out = read_all(write("a.jsonl", b'{"text":"a","timestamp":%s}\n' % value.encode()))
    (row,) = out.documents
    assert (row["timestamp"] and row["timestamp"].isoformat()) == expected


def test_a_missing_column_is_an_error_that_names_the_others(write: Write) -> None:
    with pytest.raises(errors.InputUnreadable, match=r"no column 'text'.*content, id"):
        read_all(write("a.jsonl", b'{"content":"a","id":1}\n' * 9))


def test_one_line_without_the_column_is_only_a_reject(write: Write) -> None:
    out = read_all(write("a.jsonl", b'{"content":"a"}\n{"text":"b"}\n'))
    assert (out.texts, out.reasons) == (["b"], ["record:no-text"])


def test_a_compressed_file_cut_short_keeps_what_came_before(write: Write) -> None:
    lines = b"".join(b'{"text":"%d %s"}\n' % (i, str(hash(str(i))).encode()) for i in range(20000))
    packed = gzip.compress(lines)
    out = read_all(write("a.jsonl.gz", packed[: len(packed) // 2]))
    assert out.reasons == ["record:unreadable"]
    assert len(out.texts) > 1000
    assert out.texts[0].startswith("0 ")
    out = read_all(write("a.jsonl.zst", zstandard.compress(lines)[:-9]))
    assert out.reasons == ["record:unreadable"]


def test_a_line_above_the_limit(write: Write) -> None:
    long = b'{"text":"' + b"x" * (3 << 20) + b'"}\n'
    data = b'{"text":"a"}\n' + long + b'{"text":"b"}\n' + b'{"text":"' + b"y" * 2000 + b'"}\n{"text":"c"}\n' + long[:-1]
    for name, content in {"a.jsonl": data, "a.jsonl.gz": gzip.compress(data)}.items():
        out = read_all(write(name, content), max_record_bytes=1500)
        assert out.texts == ["a", "b", "c"]
        assert out.reasons == ["record:too-large"] * 3
        assert [r["position"] for r in out.rejects] == [13, 13 + len(long) + 13, 13 + len(long) + 13 + 2012 + 13]


def test_an_empty_file_has_no_records(write: Write) -> None:
    assert read_all(write("a.jsonl", b"")).records == 0
    assert read_all(write("a.jsonl.gz", gzip.compress(b""))).records == 0
