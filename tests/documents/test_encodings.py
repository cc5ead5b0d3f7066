"""Encodings: what is declared, what is detected, and how often that is right on real pages."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.documents.encodings import decode, known

RUSSIAN = "Это обычная русская страница, и на ней достаточно слов, чтобы узнать кодировку."


@pytest.mark.parametrize(
    ("data", "declared", "expected"),
    [
        (RUSSIAN.encode("koi8-r"), "koi8-r", RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "utf-8", RUSSIAN),  # the header is wrong: detection
        (b'<meta charset="windows-1250">' + "Příliš žluťoučký kůň".encode("cp1250"), None, "Příliš žluťoučký kůň"),
        (b"<meta http-equiv=x content='text/html; charset=cp866'>" + RUSSIAN.encode("cp866"), "nonsense", RUSSIAN),
        (b'<?xml version="1.0" encoding="euc-jp"?>' + "日本語".encode("euc-jp"), None, "日本語"),
        (b"<meta charset=utf-16>" + "Zoë".encode(), None, "Zoë"),
        ("“quoted” – dash".encode("cp1252"), "iso-8859-1", "“quoted” – dash"),
        ("①".encode("cp932"), "shift_jis", "①"),
        ("똠방각하".encode("cp949"), "euc-kr", "똠방각하"),
        ("日本語のページ".encode("iso-2022-jp"), "iso-2022-jp", "日本語のページ"),
        ("你好，世界" .encode() + b"\xe4\xbd", "utf-8", "你好，世界\ufffd"),  # cut in a character: still UTF-8
        ("\ufeffmark".encode("utf-16"), "windows-1252", "mark"),  # the mark beats the header
        ("plain words".encode("utf-32-le"), None, "plain words"),
    ],
)  # fmt: skip
def test_which_declaration_is_used(data: bytes, declared: str | None, expected: str) -> None:
    assert re.sub("<[^>]*>", "", decode(data, declared, is_html=True)) == expected


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "utf-8", "utf-16", "shift_jis", "big5", "hz", "x-user-defined", "rot13"]),
)
def test_any_bytes_decode_to_something(data: bytes, declared: str | None) -> None:
    decode(data, declared, is_html=True).encode("utf-8", "surrogatepass")


@given(st.text(max_size=200))
def test_utf8_is_utf8(text: str) -> None:
    if "\x1b" not in text and "\0" not in text:
        assert decode(text.encode("utf-8", "replace")) == text.encode("utf-8", "replace").decode().removeprefix(
            "\ufeff"
        )


def test_labels_that_are_not_text_encodings_are_unknown() -> None:
    assert [known(label) for label in ("base64", "rot13", "hex", "", "\0", "é")] == [None] * 6


@pytest.mark.parametrize("label", ["utf-7", "UTF7", "punycode", "idna", "unicode-escape", "raw_unicode_escape"])
def test_no_page_may_name_codecs_that_browsers_refuse(label: str) -> None:
    assert known(label) is None
    escaped = b"<meta charset=" + label.encode() + b">+ADw-script+AD4- \\u0041 \x1b"
    assert "<script>" not in decode(escaped, label, is_html=True)


PYTHON_NAMES = {"SHIFT_JIS": "cp932", "GB2312": "gb18030", "EUC-KR": "cp949", "Big5": "big5hkscs", "TIS-620": "cp874"}
LANGUAGE = re.compile("-(arabic|bulgarian|czech|greek|hebrew|hungarian|polish|russian|slovak|slovene|turkish)$")


def test_share_of_real_pages_decoded_rightly(shared_data: Path) -> None:
    """230 files in 32 encodings from chardet's tests, nothing declared: 226 are decoded exactly (98.3 %)."""
    wrong, total, encodings = [], 0, set()
    with tarfile.open(shared_data / "nasty/chardet-tests.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is None:
                continue
            data, folder = file.read(), LANGUAGE.sub("", member.name.split("/")[-2])
            true = data.decode(PYTHON_NAMES.get(folder, folder), "replace").removeprefix("\ufeff")
            wrong += [folder] if decode(data, is_html=True) != true else []
            total += 1
            encodings.add(folder)
    assert total == 230 and len(encodings) == 32
    assert sorted(wrong) == ["Johab", "iso-8859-7", "windows-1252", "windows-1252"]
