"""Plain text: whole files and blank lines, encodings, compression."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from corpusforge.documents import files
from tests.documents.raw_inputs import read_all

Write = Callable[[str, bytes], Path]

PARAGRAPHS = "Erster Absatz, schön.\nZweite Zeile.\n\nZweiter Absatz.\n \t\n\n  Dritter, über alles.\n"
PACK = [bytes, gzip.compress, zstandard.compress, bz2.compress, lzma.compress]


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t.encode(),
        lambda t: codecs.BOM_UTF8 + t.encode(),
        lambda t: t.encode("utf-16"),
        lambda t: codecs.BOM_UTF16_BE + t.encode("utf-16-be"),
        lambda t: t.encode("utf-16-le"),
        lambda t: t.encode("cp1252"),
    ],
)
def test_any_encoding_and_compression(
    write: Write, encode: Callable[[str], bytes], pack: Callable[[bytes], bytes]
) -> None:
    path = write("a.txt", pack(encode(PARAGRAPHS)))
    assert read_all(path).texts == [PARAGRAPHS]
    expected = ["Erster Absatz, schön.\nZweite Zeile.", "Zweiter Absatz.", "Dritter, über alles."]
    assert read_all(path, text_split="blank-line").texts == expected


@pytest.mark.parametrize("read", [1, 2, 3, 7, 50])
def test_blank_lines_do_not_depend_on_blocks(write: Write, monkeypatch: pytest.MonkeyPatch, read: int) -> None:
    path = write("a.txt", PARAGRAPHS.encode())
    whole = read_all(path, text_split="blank-line")
    monkeypatch.setattr(files, "READ", read)
    monkeypatch.setattr(files, "_FEED", 100)
    assert read_all(path, text_split="blank-line") == whole


def test_a_paragraph_above_the_limit(write: Write) -> None:
    data = b"one\n\n" + b"x" * 3_000_000 + b"\n\ntwo\n\n" + b"y" * 2000 + b"\n\nthree"
    out = read_all(write("a.txt", data), text_split="blank-line", max_record_bytes=1500)
    assert out.texts == ["one", "two", "three"]
    assert out.reasons == ["record:too-large"] * 2
    assert sorted(r["position"] for r in out.documents + out.rejects) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("split", ["file", "blank-line"])
def test_a_file_cut_short_and_an_empty_one(write: Write, split: str) -> None:
    packed = gzip.compress(b"".join(b"%d\n\n" % (i * i) for i in range(9999)))
    out = read_all(write("a.txt.gz", packed[:-100]), text_split=split)
    assert out.reasons == ["record:unreadable"]
    assert len(out.texts) > 5000 if split == "blank-line" else "998001\n" in out.rejects[0]["text"]
    for data in (b"", b"\n \n\n", gzip.compress(b"")):
        assert read_all(write("b.txt", data), text_split=split).records == 0


def test_a_whole_file_above_the_limit_and_a_binary_one(write: Write) -> None:
    assert read_all(write("a.txt", b"x" * 2000), max_record_bytes=1000).reasons == ["record:too-large"]
    assert read_all(write("b.txt", b"\x89PNG\r\n\x1a\n\0\0\0\r")).reasons == ["record:content-type"]


@pytest.mark.parametrize("pack", PACK[1:])
@pytest.mark.parametrize("members", [1, 3])
def test_codecs_members_and_damage(write: Write, pack: Callable[[bytes], bytes], members: int) -> None:
    content = [bytes([65 + i]) * (3 << 20) for i in range(members)]
    packed = b"".join(map(pack, content))
    with write("a", packed).open("rb") as file:
        parts = list(files.blocks(file))
    assert b"".join(parts) == b"".join(content)
    with write("b", packed[:-3]).open("rb") as file, pytest.raises(files.Damaged):
        list(files.blocks(file))


@pytest.mark.slow
def test_what_one_step_yields_is_bounded(write: Write) -> None:
    for pack in PACK[1:]:
        with write("a", pack(b"\0" * (64 << 20))).open("rb") as file:
            largest = max(map(len, files.blocks(file)))
        assert largest <= (files.READ if pack is not zstandard.compress else 128 << 20)
