"""Where text holds e-mail addresses.

Comes in: the places of "@". Goes out: spans. The one decision: the name may have letters of Latin, Greek and Cyrillic
(an address is masked whole or not at all), the domain is ASCII, and what ends like a file is no address.
"""

from __future__ import annotations

import numpy as np

from corpusforge.arrays import I64, Bools
from corpusforge.clean.pii_reader import ALNUM, ALPHA, Reader
from corpusforge.text import bytes_in

LOCAL_BYTES = 64  # of an address before the "@": RFC 5321, section 4.5.3.1.1
DOMAIN_BYTES = 128  # looked at behind it; RFC 5321 allows 255, but real ones are shorter

_LOCAL = ALNUM | bytes_in(b"._%+-")
_LEAD, _TRAIL = bytes_in(range(0xC3, 0xD4)), bytes_in(range(0x80, 0xC0))
"""Of characters U+00C0 to U+04FF: letters of Latin, Greek and Cyrillic, and combining marks (RFC 6531, section 3.3).
Other scripts, as Chinese, stand before an address without a space and are no part of it."""
_DOMAIN = ALNUM | bytes_in(b".-")
_ENDINGS = (
    "png jpg jpeg gif webp svg bmp tif tiff ico avif heic css scss js jsx mjs json xml html htm xhtml php asp aspx"
    " jsp pdf txt csv exe dll jar woff ttf eot"
)
FILES = tuple(_ENDINGS.split())
"""Endings of files that are no top-level domains (IANA's root zone): ``logo@2x.png`` is no address."""
_FILE_CODES = np.array([int.from_bytes(f".{name}".encode(), "big") for name in FILES], np.uint64)


def emails(reader: Reader, at: I64) -> tuple[I64, I64]:
    """``local@domain.tld`` around "@"; the domain in ASCII, its last label of 2 to 24 letters, no file's ending."""
    low, high = reader.edges(at)
    before, after = reader.byte(at - 1, low, high), reader.byte(at + 1, low, high)
    wide = _TRAIL[before] & _LEAD[reader.byte(at - 2, low, high)]
    at = at[(_LOCAL[before] & (before != 0x2E) | wide) & ALNUM[after]]
    low, high = reader.edges(at)
    length, good = _domain(reader, at + 1, 24, low, high)
    long = np.flatnonzero(length == 24)
    length[long], good[long] = _domain(reader, at[long] + 1, DOMAIN_BYTES, low[long], high[long])
    good &= ~_is_file(reader, at + 1 + length, low, high)
    at, low, high, length = at[good], low[good], high[good], length[good]
    head = reader.window(at - 1, -1, LOCAL_BYTES + 1, low, high)
    wide = _LEAD[head[:, :-1]] | (_TRAIL[head[:, :-1]] & _LEAD[head[:, 1:]])
    head = head[:, :-1]
    own = np.logical_and.accumulate(_LOCAL[head] | wide, 1) & (ALNUM[head] | _LEAD[head])
    local = (own * np.arange(1, LOCAL_BYTES + 1)).max(1, initial=0)  # up to the outermost letter or digit
    return (at - local)[local > 0], (at + 1 + length)[local > 0]


def _is_file(reader: Reader, stop: I64, low: I64, high: I64) -> Bools:
    """Whether what ends at each place has the ending of a file."""
    tail = reader.window(stop - 1, -1, 7, low, high).astype(np.uint64)
    tail |= np.where((tail >= 0x41) & (tail <= 0x5A), 0x20, 0).astype(np.uint64)
    codes = np.zeros(len(stop), np.uint64)
    found = np.zeros(len(stop), bool)
    for k in range(7):
        codes |= tail[:, k] << np.uint64(8 * k)
        found |= (tail[:, k] == 0x2E) & np.isin(codes, _FILE_CODES)
    return found


def _domain(reader: Reader, first: I64, width: int, low: I64, high: I64) -> tuple[I64, Bools]:
    """How many bytes from each place on could be a domain, ``width`` at most, and whether they are."""
    after = reader.window(first, 1, width + 1, low, high)
    after, following = after[:, :-1], after[:, 1:]
    stray = ((after == 0x2E) & ~ALNUM[following]) | ((after == 0x2D) & ~ALNUM[following] & (following != 0x2D))
    inside = np.logical_and.accumulate(_DOMAIN[after] & ~stray, 1)
    length, columns = inside.sum(1), np.arange(width)
    dot = np.where(inside & (after == 0x2E), columns, -1).max(1)
    label = length - 1 - dot
    letters = (inside & ALPHA[after] & (columns > dot[:, None])).sum(1)
    return length, (dot > 0) & (label >= 2) & (label <= 24) & (letters == label)
