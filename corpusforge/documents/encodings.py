"""Decode bytes: find the encoding of a page or a file and apply it.

The order is that of the WHATWG Encoding and HTML standards: a byte order mark, the HTTP header, `<meta>` in the first
1,024 bytes, then detection (uchardet, by resiliparse). A declared encoding that does not fit the bytes is skipped; a
few broken bytes among many good ones do not count. Labels mean what they mean to browsers (latin1 is windows-1252).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

SAMPLE = 1 << 17
"""Bytes that detection examines (resiliparse's own default)."""

_BROKEN_SHARE = 0.1
"""A multi-byte encoding fits if at most this share of what is not ASCII cannot be decoded. A page truncated inside a
character has one such place; in a Latin-1 page declared as UTF-8 all of it is."""

_WIDER = {
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gbk": "gb18030",
    "gb2312": "gb18030",
    "big5": "big5hkscs",
    "iso8859-11": "cp874",
}
"""The decoders of the WHATWG Encoding Standard cover the vendors' supersets; Python keeps them apart."""

_REFUSED = {"utf_7", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined"}
"""Python's codecs that a page may not name: the WHATWG Encoding Standard has none of them, and excludes UTF-7 because
of attacks; punycode takes quadratic time."""

_META = re.compile(
    rb"""<meta[^>]*?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]+)|<\?xml[^>]*?encoding\s*=\s*["']([^"']+)""", re.I
)


def decode(data: bytes, declared: str | None = None, *, is_html: bool = False) -> str:
    r"""The text of a page or file.

    ``declared``: the HTTP header's charset. ``is_html``: look for ``<meta charset>`` and ``<?xml encoding>`` too.

    >>> decode("grüß Gott, schöne Müllerin".encode("latin-1"), "utf-8")
    'grüß Gott, schöne Müllerin'
    >>> decode("\ufeff好".encode("utf-16"))
    '好'
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").removeprefix("\ufeff")
    if data.isascii() and b"\x1b" not in data and b"\0" not in data:
        return data.decode("ascii")
    fallback = None
    for encoding in candidates(data, declared, is_html=is_html):
        text = _fitting(data, encoding)
        if text is not None:
            return text
        fallback = fallback or encoding
    return data.decode(fallback or "utf-8", "replace")


def candidates(data: bytes, declared: str | None, *, is_html: bool) -> Iterator[str]:
    """Encodings to try, best first, lazily: detection runs only if nothing declared fits."""
    named = known(declared)
    if named:
        yield named
    if is_html and (meta := _META.search(data, 0, 1024)):
        label = known((meta[1] or meta[2]).decode("ascii", "replace"))
        # A <meta> that could be read byte by byte cannot be UTF-16, whatever it claims (HTML standard, 13.2.3.2).
        if label:
            yield "utf-8" if label.startswith("utf-16") else label
    if wide := _wide(data[:1024]):
        yield wide
    elif data.isascii():  # with escapes: ISO-2022-JP and similar encodings consist of ASCII bytes
        yield detect(data)
        yield "utf-8"
    else:
        yield "utf-8"
        yield detect(data)


def _wide(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without its mark, recognized by the positions of NULs (text that is mostly ASCII)."""
    shares = [head[i::4].count(0) / max(1, len(head) // 4) for i in range(4)]
    return _NUL_PLACES.get("".join("0" if share > 0.4 else "x" for share in shares))


_NUL_PLACES = {
    "x000": "utf-32-le",
    "000x": "utf-32-be",
    "x0x0": "utf-16-le",
    "0x0x": "utf-16-be",
}


def known(label: str | None) -> str | None:
    """The Python codec of a charset label, as browsers read it; None if there is no such encoding.

    >>> known("ISO-8859-1"), known("gb2312"), known("x-sjis"), known("nonsense")
    ('cp1252', 'gb18030', 'cp932', None)
    """
    from resiliparse.parse.encoding import map_encoding_to_html5

    if not label:
        return None
    label = label.strip().strip("\"'").lower()
    codec = map_encoding_to_html5(label, fallback_utf8=False)
    if codec is None:
        try:
            codec = codecs.lookup(label).name
            "".encode(codec)  # not one of Python's bytes-to-bytes codecs
        except (LookupError, ValueError):
            return None
        if codec.replace("-", "_") in _REFUSED:
            return None
    return _WIDER.get(codec, codec)


def detect(data: bytes) -> str:
    """The encoding that uchardet detects; UTF-8 if it detects none."""
    from resiliparse.parse.encoding import detect_encoding

    return known(detect_encoding(data[:SAMPLE], html5_compatible=False)) or "utf-8"


def of_stream(head: bytes) -> str:
    """The codec of a file by its first bytes, for reading it in chunks."""
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return encoding
    head = head[:SAMPLE]
    for encoding in candidates(head, None, is_html=False):
        try:
            codecs.getincrementaldecoder(encoding)().decode(head)  # a truncated character at the end is accepted
        except ValueError:
            continue
        return encoding
    return "utf-8"


def _fitting(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
    except (LookupError, ValueError):
        return None
    broken = text.count("\ufffd")
    foreign = sum(map(len, _FOREIGN.findall(text)))
    return text if broken <= _BROKEN_SHARE * foreign else None


_FOREIGN = re.compile("[^\x00-\x7f]+")
