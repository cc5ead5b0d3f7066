"""Personal data: the kernels find what plain expressions find, and nothing else is masked."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.pii import KINDS, MASKS, PiiStep, find
from corpusforge.text import text_bytes
from tests.oracles.pii import finds

PIECES = [
    *(
        "a@b.co",
        "x.y+z@mail.example.org",
        "@",
        ".",
        "-",
        "a",
        "Z",
        "_",
        "com",
        ".co",
        "é",
        "中",
        "o\u0308",
        "ж@",
        "@2x.png",
        ".JPG",
        ".html",
        " ",
        " ",
        "\n",
        "(",
        ")",
    ),
    *(
        "8.8.8.8",
        "93.184.216.34",
        "10.0.0.1",
        "192.168.1.20",
        "300.1.1.1",
        "01.20.30.40",
        "v",
        "/",
        "//",
        "1",
        "20",
        "0",
    ),
    *("2001:4860::8888", "2606:2800:220:1:248:1893:25c8:1946", "2001:db8::1", ":", "::", "2a00", "fe80::1"),
    *(
        "+",
        "+1",
        "+44",
        "(212)",
        "212",
        "555",
        "0123",
        "212-555-0123",
        "(212) 555-0123",
        "1-800-555-1212",
        "20 7946 0958",
    ),
    *MASKS,
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def found(texts: list[str], kinds: tuple[str, ...]) -> list[list[tuple[str, int]]]:
    column = pa.array(["a@b.co 1", *texts, "2 c@d.co"], pa.string()).slice(1, len(texts))
    data, offsets = text_bytes(column)
    spans = find(data, offsets, kinds)
    rows = [(int(a), bytes(data[a:b]).decode(), int(k)) for a, b, k in zip(*spans, strict=True)]
    return [[(t, k) for a, t, k in rows if low <= a < high] for low, high in itertools.pairwise(offsets)]


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from([KINDS, ("email",), ("ip",), ("phone",)]))
@example(["1", "2.3.4.50"], KINDS)
@example(["a" * 70 + "@b.co", "a@" + "b" * 140 + ".co", "a@b.co--x", "a@b.c"], KINDS)
@example(
    ["é" * 31 + "a@b.co", "a" + "é" * 32 + "@b.co", "éa@b.co", "é" * 40 + "@b.co", "ѿ@b.co", "Ԁ@b.co", "ʰ@b.co"], KINDS
)
@example(["+49 30 123456 2018", "+1 212 555 0123 12", "(+48) 600 033 044"], KINDS)
def test_finds_are_those_of_the_oracle(texts: list[str], kinds: tuple[str, ...]) -> None:
    expected = [[(t[a:b], k) for a, b, k in finds(t, kinds)] for t in texts]
    assert found(texts, kinds) == expected


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Write to <a.b+c@ex-ample.co.uk>, or not.", "Write to <email@example.com>, or not."),
        ("jöe@corp.org, jo\u0308e@corp.org, Иван@corp.ru", "email@example.com, email@example.com, email@example.com"),
        ("邮箱joe@corp.org，«joe@corp.org»", "邮箱email@example.com，«email@example.com»"),
        ("DNS 134.2.3.4, http://93.184.216.34/x", "DNS 192.0.2.1, http://192.0.2.1/x"),
        ("at 2001:4860:4860::8888: timeout", "at 2001:db8::1: timeout"),
        ("Tel. +49 (0) 89 98103987, fax (212) 555-0123", "Tel. 555-0100, fax 555-0100"),
        ("1-800-555-1212 or 212.555.0199.", "555-0100 or 555-0100."),
        ("(+48) 600 033 044 / +79619312400", "555-0100 / 555-0100"),
    ],
)
def test_masks(text: str, masked: str, documents_of: Callable[..., pa.RecordBatch]) -> None:
    first = PiiStep().apply(documents_of([text, "nothing"]))
    assert first.texts.to_pylist() == [masked, "nothing"] and not first.codes.any()
    again = PiiStep().apply(documents_of([masked]))
    assert again.texts.to_pylist() == [masked] and again.edits is not None and not len(again.edits.codes)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "v1.2.3.44",
            "Chrome/91.0.44.72",
            "section 1.2.3.4",
            "10.0.0.1",
            "192.168.1.77",
            "1.22.333.4444",
            "31.12.2018",
        ),
        *("ISBN 978-0-306-40615-7", "0-306-40615-2", "2018-12-31", "12:30:45", "3.14159265358979", "$1,234,567.89"),
        *(
            "retina@2x.png",
            "img/logo@3X.JPG?v=1",
            "jquery@3.min.js",
            "std::vector",
            "dead:beef",
            "00:1A:2b:3c:4d:5e",
            "user@localhost",
            "@handle",
            "a @ b.com",
            "1+100000000",
        ),
        *("doi:10.1111/j.1365-294X.2009.04294.x", "437–456", "123-456-7890", "2001-2002-2003"),
    ],
)
def test_what_is_not_matched(text: str) -> None:
    assert found([text, f"See {text} there."], KINDS) == [[], []]


def test_pages_are_dropped_and_edits_counted(documents_of: Callable[..., pa.RecordBatch]) -> None:
    documents = documents_of(["a@b.co and c@d.org, 93.184.216.34", "clean", "+44 20 7946 0958"])
    dropped = PiiStep("drop").apply(documents)
    assert dropped.codes.tolist() == [1, 0, 1] and dropped.edits is None
    assert dropped.details == {0: "2 email, 1 ip", 2: "1 phone"}
    edits = PiiStep("mask").apply(documents).edits
    assert edits is not None
    assert [(d, edits.reasons[c], s) for d, c, s in zip(edits.documents, edits.codes, edits.sizes, strict=True)] == [
        (0, "text:email", 6),
        (0, "text:email", 7),
        (0, "text:ip", 13),
        (2, "text:phone", 16),
    ]
    only = PiiStep("mask", ("phone",)).apply(documents)
    assert only.texts.to_pylist() == ["a@b.co and c@d.org, 93.184.216.34", "clean", "555-0100"]


def test_wrong_settings() -> None:
    with pytest.raises(errors.RecipeInvalid, match="off, mask or drop"):
        PiiStep("hide").check()
    with pytest.raises(errors.RecipeInvalid, match="email, ip, phone"):
        PiiStep("mask", ("name",)).check()
    PiiStep().check()


@pytest.mark.parametrize("piece", ["@", "a@", "2222:", "1.", "+1 ", "+9-", "212-555-", "a@b."])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    column = pa.array([piece * (200_000 // len(piece))])
    begin = time.perf_counter()
    find(*text_bytes(column), KINDS)
    assert time.perf_counter() - begin < 5
