"""Mask personal data, or drop its pages: e-mail addresses, public IP addresses and telephone numbers.

A mask is an address or number of the same kind that is reserved for examples (RFC 2606, 5737, 3849; 555-0100 in North
America), not a tag: text stays natural, a vocabulary needs no new entries, and masking twice changes nothing.

The searches work on the UTF-8 bytes of a whole column. Each kind is found from rare anchors ("@", ":" after four
hexadecimal digits, runs of digits), so only their surroundings are read. Precision has priority over recall: what may
as well be a version, a date, an ISBN or a decimal number is not matched.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64, U8, Bools
from corpusforge.clean.step import Codes, Edits, Verdict
from corpusforge.text import bytes_in, slices, text_bytes, union

KINDS = ("email", "ip", "phone")
MASKS = ("email@example.com", "192.0.2.1", "2001:db8::1", "555-0100")
"""The masks of EMAIL, IPV4, IPV6, PHONE."""
REASONS = ("kept", "page:pii")
EDITS = ("kept", "text:email", "text:ip", "text:phone")
_EDIT_OF = np.array([1, 2, 2, 3], np.int8)


@dataclass(frozen=True)
class PiiStep:
    """``action``: "mask" or "drop". ``kinds``: which of `KINDS` to look for."""

    action: str = "mask"
    kinds: tuple[str, ...] = KINDS

    @property
    def name(self) -> str:
        """What rejects say dropped a page."""
        return "pii"

    def check(self) -> None:
        """Raises `errors.RecipeInvalid` for an unknown action or kind."""
        if self.action not in ("mask", "drop"):
            raise errors.RecipeInvalid("clean.pii", f"{self.action!r} is not an action", "use off, mask or drop")
        if not self.kinds or set(self.kinds) - set(KINDS):
            raise errors.RecipeInvalid("clean.pii_kinds", f"{list(self.kinds)}", f"name some of {', '.join(KINDS)}")

    def resources(self) -> dict[str, Any]:
        """Nothing: the output depends on code and settings only."""
        return {}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Mask what is found, or drop the documents that hold any."""
        texts = documents["text"]
        data, offsets = text_bytes(texts)
        finds = _without_masks(data, find(data, offsets, self.kinds))
        owners = np.searchsorted(offsets, finds.starts, "right") - 1
        codes = np.zeros(len(texts), np.int8)
        edits = _EDIT_OF[finds.kinds]
        if self.action == "drop":
            codes[owners] = 1
            return Verdict(REASONS, codes, texts, _details(owners, edits))
        masked = mask(texts, finds) if len(finds.starts) else texts
        return Verdict(REASONS, codes, masked, edits=Edits(EDITS, owners, edits, finds.stops - finds.starts))


def _without_masks(data: Any, finds: Finds) -> Finds:
    """Without what is the mask of an e-mail address already; the other masks are never found."""
    own = np.frombuffer(MASKS[0].encode(), np.uint8)
    same = np.flatnonzero(finds.stops - finds.starts == len(own))
    same = same[(data[finds.starts[same][:, None] + np.arange(len(own))] == own).all(1)]
    kept = np.ones(len(finds.starts), bool)
    kept[same] = False
    return finds if not len(same) else Finds(finds.starts[kept], finds.stops[kept], finds.kinds[kept])


def _details(owners: I64, edits: Codes) -> dict[int, str]:
    """``"2 email, 1 phone"`` of every document with finds."""
    details: dict[int, str] = {}
    pairs, counts = np.unique(owners * len(EDITS) + edits, return_counts=True)
    # A Python loop over dropped documents only.
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        owner, kind = divmod(pair, len(EDITS))
        text = f"{count} {EDITS[kind].removeprefix('text:')}"
        details[owner] = f"{details[owner]}, {text}" if owner in details else text
    return details


def mask(texts: pa.StringArray, finds: Finds) -> pa.StringArray:
    """The column with every find replaced by the mask of its kind."""
    data, offsets = text_bytes(texts)
    cuts = union(offsets, finds.starts, finds.stops)
    parts = slices(data, cuts)
    is_find = np.zeros(len(parts), bool)
    is_find[np.searchsorted(cuts, finds.starts)] = True
    masks = pa.array(MASKS).take(pa.array(finds.kinds))
    replaced = pc.replace_with_mask(parts, pa.array(is_find), masks)
    bounds = np.searchsorted(cuts, offsets).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds), replaced), "")


DIGIT = bytes_in(range(0x30, 0x3A))
ALPHA = bytes_in(range(0x41, 0x5B), range(0x61, 0x7B))
ALNUM = DIGIT | ALPHA


class Reader(NamedTuple):
    """Bytes of a column whose document i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: U8
    offsets: I64

    def edges(self, where: I64) -> tuple[I64, I64]:
        """First byte of the document that each place lies in, and the one after its last."""
        document = np.searchsorted(self.offsets, where, "right") - 1
        return self.offsets[document], self.offsets[document + 1]

    def byte(self, where: I64, low: I64, high: I64) -> U8:
        """The bytes at some places; 0 outside of [low, high)."""
        inside = (where >= low) & (where < high)
        return np.asarray(self.data[np.where(inside, where, 0)] * inside)

    def window(self, first: I64, step: int, width: int, low: I64, high: I64) -> U8:
        """``width`` bytes from each place on, forwards (step 1) or backwards (-1), one row each."""
        return self.byte(first[:, None] + step * np.arange(width), low[:, None], high[:, None])


EMAIL, IPV4, IPV6, PHONE = range(4)

IPV6_BYTES = 36  # of an IPv6 address after its first group, with one more to see that it ends
MIN_OCTET = 20  # "1.2.3.4": if all numbers are smaller it is a version or a heading, hardly ever an address
MIN_DIGITS, MAX_DIGITS = 9, 15  # of an international number with its country code; the most: ITU-T E.164, section 6
PHONE_GROUPS = 8  # groups of digits in an international number, at most
_BLOCK = 1 << 15  # anchors examined together: bounds memory for text that consists of anchors

_WORD = ALNUM | bytes_in(b"_", range(0x80, 0x100))
_HEX = DIGIT | bytes_in(b"abcdefABCDEF")
_BETWEEN = bytes_in(b" -.()/")
_RESERVED = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    "224.0.0.0/3",
)
"""IPv4 addresses that are not public: IANA's special-purpose address registry, multicast and class E."""
_RESERVED_RANGES = np.array(
    [(int(n.network_address), int(n.broadcast_address)) for n in map(ipaddress.ip_network, _RESERVED)], np.int64
)


class Finds(NamedTuple):
    """Spans in the bytes of a column: ``data[starts[i]:stops[i]]`` is of kind ``kinds[i]`` (EMAIL, IPV4...)."""

    starts: I64
    stops: I64
    kinds: I64


def find(data: U8, offsets: I64, kinds: tuple[str, ...]) -> Finds:
    """Everything of ``kinds`` ("email", "ip", "phone"); of overlapping finds the one that begins first."""
    reader, finds = Reader(data, offsets), []
    if "email" in kinds:
        finds.append((*_joined([emails(reader, at) for at in _anchors(reader, 0x40)]), EMAIL))
    if {"ip", "phone"} & set(kinds):
        runs = _digit_runs(reader)
        if "ip" in kinds:
            finds += [
                (*_ipv4(reader, runs), IPV4),
                (*_joined([_ipv6(reader, at) for at in _anchors(reader, 0x3A)]), IPV6),
            ]
        if "phone" in kinds:
            finds += [(*_international(reader, runs), PHONE), (*_north_american(reader, runs), PHONE)]
    starts = np.concatenate([f[0] for f in finds])
    stops = np.concatenate([f[1] for f in finds])
    labels = np.concatenate([np.full(len(f[0]), f[2], np.int64) for f in finds])
    order = np.lexsort((-stops, starts))
    starts, stops, labels = starts[order], np.maximum.accumulate(stops[order]), labels[order]
    first = np.ones(len(starts), bool)
    first[1:] = starts[1:] >= stops[:-1]
    last = np.append(first[1:], True)[: len(first)]
    return Finds(starts[first], stops[last], labels[first])


def _anchors(reader: Reader, byte: int) -> list[I64]:
    """The offsets of a byte, in blocks."""
    begin = int(reader.offsets[0])
    at = np.flatnonzero(reader.data[begin : reader.offsets[-1]] == byte) + begin
    return [at[k : k + _BLOCK] for k in range(0, max(1, len(at)), _BLOCK)]


def _joined(parts: list[tuple[I64, I64]]) -> tuple[I64, I64]:
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


class _Runs(NamedTuple):
    """Runs of digits, ascending, with the edges of their documents."""

    starts: I64
    stops: I64
    low: I64
    high: I64

    def groups(self, count: int) -> I64:
        """Numbers of the runs that begin ``count`` runs in a row of one document."""
        first = np.arange(max(0, len(self.starts) - count + 1))
        return np.asarray(first[self.low[first] == self.low[first + count - 1]])

    @property
    def sizes(self) -> I64:
        return self.stops - self.starts


def _digit_runs(reader: Reader) -> _Runs:
    begin, end = int(reader.offsets[0]), int(reader.offsets[-1])
    digit = (reader.data[begin:end] - np.uint8(0x30)) < 10
    starts, stops = digit.copy(), digit.copy()
    starts[1:] &= ~digit[:-1]
    stops[:-1] &= ~digit[1:]
    filled = np.flatnonzero(np.diff(reader.offsets))
    heads, tails = reader.offsets[filled] - begin, reader.offsets[filled + 1] - begin - 1
    starts[heads], stops[tails] = digit[heads], digit[tails]
    at = np.flatnonzero(starts) + begin
    return _Runs(at, np.flatnonzero(stops) + begin + 1, *reader.edges(at))


def _ipv4(reader: Reader, runs: _Runs) -> tuple[I64, I64]:
    """Four numbers up to 255 that are a public address and do not look like a version."""
    first = runs.groups(4)
    fits = np.ones(len(first), bool)
    for k in range(4):
        fits &= (runs.sizes[first + k] <= 3) & (
            (runs.sizes[first + k] == 1) | (reader.data[runs.starts[first + k]] > 48)
        )
    for k in range(3):
        gap = runs.stops[first + k]
        fits &= (runs.starts[first + k + 1] - gap == 1) & (reader.data[gap] == 0x2E)
    first = first[fits]
    low, high, start, stop = runs.low[first], runs.high[first], runs.starts[first], runs.stops[first + 3]
    octets = np.stack([_value(reader, runs, first + k) for k in range(4)]).reshape(4, len(first))
    address = octets[0] << 24 | octets[1] << 16 | octets[2] << 8 | octets[3]
    reserved = ((address[:, None] >= _RESERVED_RANGES[:, 0]) & (address[:, None] <= _RESERVED_RANGES[:, 1])).any(1)
    good = (octets <= 255).all(0) & (octets >= MIN_OCTET).any(0) & ~reserved
    before, earlier = reader.byte(start - 1, low, high), reader.byte(start - 2, low, high)
    after, later = reader.byte(stop, low, high), reader.byte(stop + 1, low, high)
    # "Chrome/90.0.44.10" is a version, "http://90.0.44.10/" an address.
    good &= ~_WORD[before] & (before != 0x2E) & (before != 0x2D) & ((before != 0x2F) | (earlier == 0x2F))
    good &= ~_WORD[after] & ~(((after == 0x2E) | (after == 0x2D)) & _WORD[later])
    return start[good], stop[good]


def _value(reader: Reader, runs: _Runs, chosen: I64) -> I64:
    """Numbers of up to three digits."""
    value = np.zeros(len(chosen), np.int64)
    for k in range(3):
        more = runs.sizes[chosen] > k
        digit = reader.data[np.where(more, runs.starts[chosen] + k, runs.starts[chosen])].astype(np.int64) - 0x30
        value = np.where(more, value * 10 + digit, value)
    return value


def _ipv6(reader: Reader, at: I64) -> tuple[I64, I64]:
    """Global unicast (2000::/3, RFC 4291): the first group in full, "2" or "3" and three hexadecimal digits."""
    low, high = reader.edges(at)
    head = np.stack([reader.byte(at - k, low, high) for k in range(5, 0, -1)])
    good = ((head[1] & 0xFE) == 0x32) & _HEX[head[2]] & _HEX[head[3]] & _HEX[head[4]]
    good &= ~_WORD[head[0]] & (head[0] != 0x3A)
    at, low, high = at[good], low[good], high[good]
    rest = reader.window(at, 1, IPV6_BYTES, low, high)
    inside = np.logical_and.accumulate(_HEX[rest] | (rest == 0x3A), 1)
    length = inside.sum(1)
    # "2001:db8::1: not found" ends before its last colon.
    last, earlier = reader.byte(at + length - 1, low, high), reader.byte(at + length - 2, low, high)
    length -= (last == 0x3A) & (earlier != 0x3A)
    likely = np.flatnonzero((inside & (rest == 0x3A)).sum(1) >= 2)
    likely = likely[~_WORD[reader.byte(at[likely] + length[likely], low[likely], high[likely])]]
    starts, stops = at - 4, at + length
    # A Python loop with a reason: hexadecimal digits and two colons close together are rare.
    kept = [n for n in likely.tolist() if _is_global(reader.data[starts[n] : stops[n]].tobytes().decode())]
    return starts[kept], stops[kept]


def _is_global(text: str) -> bool:
    try:
        return ipaddress.IPv6Address(text).is_global
    except ValueError:
        return False


def _international(reader: Reader, runs: _Runs) -> tuple[I64, I64]:
    """ "+", a country code, and groups of digits with one or two of " -.()/" between them."""
    plus = reader.byte(runs.starts - 1, runs.low, runs.high) == 0x2B
    first = np.flatnonzero(plus & (reader.data[runs.starts] != 0x30))
    outer = reader.byte(runs.starts[first] - 2, runs.low[first], runs.high[first])
    first = first[~_WORD[outer]]
    last, digits = first.copy(), runs.sizes[first]
    american = reader.data[runs.starts[first]] == 0x31
    most = np.where(american, 11, MAX_DIGITS)  # the North American plan: 1 and ten digits
    active = np.arange(len(first))
    for _ in range(PHONE_GROUPS - 1):
        here = last[active]
        active = active[here + 1 < len(runs.starts)]
        here = last[active]
        gap, size = runs.starts[here + 1] - runs.stops[here], runs.sizes[here + 1]
        joins = (runs.low[here + 1] == runs.low[here]) & (gap <= 2) & (digits[active] + size <= most[active])
        joins &= _BETWEEN[reader.data[runs.stops[here]]] & _BETWEEN[reader.data[runs.starts[here + 1] - 1]]
        active = active[joins]
        last[active] += 1
        digits[active] += runs.sizes[last[active]]
    enough = (digits >= np.where(american, 11, MIN_DIGITS)) & (digits <= most)
    first, last = first[enough], last[enough]
    # "(+48) 600 033 044" begins at the bracket.
    bracket = reader.byte(runs.starts[first] - 2, runs.low[first], runs.high[first]) == 0x28
    bracket &= reader.byte(runs.stops[first], runs.low[first], runs.high[first]) == 0x29
    start, stop = runs.starts[first] - 1 - bracket, runs.stops[last]
    open_end = ~_WORD[reader.byte(stop, runs.low[first], runs.high[first])]
    return start[open_end], stop[open_end]


def _north_american(reader: Reader, runs: _Runs) -> tuple[I64, I64]:
    """ "(212) 555-0123", "212-555-0123", "212.555.0123", with or without "1-": area and exchange begin with 2 to 9."""
    first = runs.groups(3)
    fits = (runs.sizes[first] == 3) & (runs.sizes[first + 1] == 3) & (runs.sizes[first + 2] == 4)
    fits &= (reader.data[runs.starts[first]] > 0x31) & (reader.data[runs.starts[first + 1]] > 0x31)
    first = first[fits]
    low, high, start, stop = runs.low[first], runs.high[first], runs.starts[first], runs.stops[first + 2]
    gap, other = runs.starts[first + 1] - runs.stops[first], runs.starts[first + 2] - runs.stops[first + 1]
    one, two = reader.data[runs.stops[first]], reader.data[runs.stops[first + 1]]
    before, closing = reader.byte(start - 1, low, high), reader.data[runs.starts[first + 1] - 1]
    split = (other == 1) & ((two == 0x2D) | (two == 0x2E) | (two == 0x20))
    plain = (gap == 1) & (one == two) & ((one == 0x2D) | (one == 0x2E))
    bracketed = (before == 0x28) & (one == 0x29) & ((gap == 1) | ((gap == 2) & ((closing == 0x20) | (closing == 0x2D))))
    start = start - bracketed
    before, earlier = reader.byte(start - 1, low, high), reader.byte(start - 2, low, high)
    trunk = (earlier == 0x31) & ((before == 0x2D) | (before == 0x2E) | (before == 0x20))
    outer = reader.byte(start - 3, low, high)
    trunk &= ~_WORD[outer] & ~_is_one_of(outer, b"-./+")
    start = np.where(trunk, start - 2, start)
    before = reader.byte(start - 1, low, high)
    after, later = reader.byte(stop, low, high), reader.byte(stop + 1, low, high)
    good = split & (plain | bracketed) & ~_WORD[before] & ~_is_one_of(before, b"-./+")
    good &= ~_WORD[after] & ~(_is_one_of(after, b"-./") & DIGIT[later])
    return start[good], stop[good]


def _is_one_of(values: U8, members: bytes) -> Bools:
    return np.asarray(bytes_in(members)[values])


LOCAL_BYTES = 64  # of an address before the "@": RFC 5321, section 4.5.3.1.1
DOMAIN_BYTES = 128  # read after it; RFC 5321 allows 255, but real ones are shorter

_LOCAL = ALNUM | bytes_in(b"._%+-")
_LEAD, _TRAIL = bytes_in(range(0xC3, 0xD4)), bytes_in(range(0x80, 0xC0))
"""Of characters U+00C0 to U+04FF: letters of Latin, Greek and Cyrillic, and combining marks (RFC 6531, section 3.3).
In other scripts, such as Chinese, letters directly before an address are not part of it."""
_DOMAIN = ALNUM | bytes_in(b".-")
_ENDINGS = (
    "png jpg jpeg gif webp svg bmp tif tiff ico avif heic css scss js jsx mjs json xml html htm xhtml php asp aspx"
    " jsp pdf txt csv exe dll jar woff ttf eot"
)
FILES = tuple(_ENDINGS.split())
"""File endings that are not top-level domains (IANA's root zone): ``logo@2x.png`` is not an address."""
_FILE_CODES = np.array([int.from_bytes(f".{name}".encode(), "big") for name in FILES], np.uint64)


def emails(reader: Reader, at: I64) -> tuple[I64, I64]:
    """``local@domain.tld`` around "@"; the domain in ASCII, its last label of 2 to 24 letters and not a file ending."""
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
    """Whether the text before each offset has a file ending."""
    tail = reader.window(stop - 1, -1, 7, low, high).astype(np.uint64)
    tail |= np.where((tail >= 0x41) & (tail <= 0x5A), 0x20, 0).astype(np.uint64)
    codes = np.zeros(len(stop), np.uint64)
    is_file = np.zeros(len(stop), bool)
    for k in range(7):
        codes |= tail[:, k] << np.uint64(8 * k)
        is_file |= (tail[:, k] == 0x2E) & np.isin(codes, _FILE_CODES)
    return is_file


def _domain(reader: Reader, first: I64, width: int, low: I64, high: I64) -> tuple[I64, Bools]:
    """How many bytes from each offset on could be a domain, at most ``width``, and whether they are one."""
    after = reader.window(first, 1, width + 1, low, high)
    after, following = after[:, :-1], after[:, 1:]
    stray = ((after == 0x2E) & ~ALNUM[following]) | ((after == 0x2D) & ~ALNUM[following] & (following != 0x2D))
    inside = np.logical_and.accumulate(_DOMAIN[after] & ~stray, 1)
    length, columns = inside.sum(1), np.arange(width)
    dot = np.where(inside & (after == 0x2E), columns, -1).max(1)
    label = length - 1 - dot
    letters = (inside & ALPHA[after] & (columns > dot[:, None])).sum(1)
    return length, (dot > 0) & (label >= 2) & (label <= 24) & (letters == label)
