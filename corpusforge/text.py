"""Columns of text: flatten to rows, judge rows, regroup by offsets.

Kernels work on an Arrow string column: *flatten* turns documents into one long column of lines or byte spans,
vectorized kernels *judge* every row, and *regroup* returns to documents by offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, U8, Bools, run_starts


def bytes_in(*ranges: range | bytes) -> Bools:
    """A table of 256 entries: whether a byte is in one of the ranges."""
    table = np.zeros(256, bool)
    table[[b for r in ranges for b in r]] = True
    return table


SPACE = bytes_in(range(0x09, 0x0E), range(0x1C, 0x21))
"""White space of ASCII, as `str.isspace` has it."""
WIDE_SPACE: I64 = np.array(
    sorted(int.from_bytes(chr(c).encode(), "big") for c in range(0x80, 0x3001) if chr(c).isspace()), np.int64
)
"""White space beyond ASCII, as `str.isspace` has it: UTF-8 bytes as big-endian integers, ascending."""
_SPACE_EDGE = SPACE | bytes_in(range(0x80, 0xC0), b"\xc2\xe1\xe2\xe3")  # may be part of white space


class Rows(NamedTuple):
    """Values of many documents in one column; document i owns ``values[offsets[i]:offsets[i + 1]]``."""

    values: pa.StringArray
    offsets: I64


class Spans(NamedTuple):
    """Byte spans in one buffer; document i owns spans ``offsets[i]`` to ``offsets[i + 1]``.

    ``data``: the UTF-8 bytes of all documents; span j is ``data[starts[j]:stops[j]]``, trimmed of white space, never
    empty; every character that is not white space lies in exactly one span. ``bases[i]``: where document i begins in
    ``data``.
    """

    data: U8
    starts: I64
    stops: I64
    offsets: I64
    bases: I64


def text_bytes(text: pa.StringArray) -> tuple[U8, I64]:
    """The UTF-8 bytes of a column and its ``n + 1`` offsets into them, without copying."""
    offsets = np.frombuffer(text.buffers()[1], np.int32, len(text) + 1, text.offset * 4).astype(np.int64)
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    return data, offsets


def split_lines(text: pa.StringArray) -> Rows:
    """The lines of every document by the rules of ``str.splitlines``, each stripped as ``str.strip`` does.

    >>> split_lines(pa.array([" a \\r\\n\\n b", "", "c"])).values.to_pylist()
    ['a', '', 'b', 'c']
    """
    spans = line_spans(text)
    return Rows(byte_slices(spans.data, spans.starts, spans.stops), spans.offsets)


def line_spans(text: pa.StringArray) -> Spans:
    """The same lines as byte spans. Unlike sentences they may be empty: start == stop."""
    data, offsets = text_bytes(text)
    stops = break_stops(data, int(offsets[0]), int(offsets[-1]))
    # "\r\n" is one break, unless a document ends between the two (its end is in offsets).
    inside = np.minimum(stops, len(data) - 1)
    crlf = (data[stops - 1] == 0x0D) & (data[inside] == 0x0A) & (stops < offsets[-1])
    cuts = union(offsets, stops[~crlf])
    starts, stops = trim(data, cuts)
    return Spans(data, starts, stops, np.searchsorted(cuts, offsets), offsets[:-1])


def trim(data: U8, cuts: I64) -> tuple[I64, I64]:
    """Starts and stops of the spans between cuts, white space trimmed; start == stop where nothing is left."""
    starts, stops = cuts[:-1].copy(), cuts[1:].copy()
    last = len(data) - 1
    # Two rounds settle nearly all spans of ASCII; Arrow trims the rest, and what may end in wide white space.
    for _ in range(2):
        starts += (starts < stops) & SPACE[data[np.minimum(starts, last)]]
        stops -= (starts < stops) & SPACE[data[stops - 1]]
    unsure = _SPACE_EDGE[data[np.minimum(starts, last)]] | _SPACE_EDGE[data[stops - 1]]
    rest = np.flatnonzero(unsure & (starts < stops))
    if len(rest):
        texts = byte_slices(data, starts[rest], stops[rest])
        left = np.diff(text_bytes(pc.utf8_ltrim_whitespace(texts))[1])
        right = np.diff(text_bytes(pc.utf8_rtrim_whitespace(texts))[1])
        starts[rest], stops[rest] = stops[rest] - left, starts[rest] + right
        stops[rest[left == 0]] = starts[rest[left == 0]]
    return starts, stops


def byte_slices(data: U8, starts: I64, stops: I64) -> pa.StringArray:
    """The texts ``data[starts[i]:stops[i]]`` as a column; spans ascend and do not overlap."""
    if not len(starts):
        return pa.array([], pa.string())
    cuts = np.stack([starts, stops], 1).reshape(-1)
    return slices(data, cuts).take(pa.array(np.arange(0, len(cuts), 2)))


def slices(data: U8, cuts: I64) -> pa.StringArray:
    """A string column of ``data[cuts[i]:cuts[i + 1]]`` that shares ``data``."""
    return pa.StringArray.from_buffers(len(cuts) - 1, pa.py_buffer(cuts.astype(np.int32)), pa.py_buffer(data))


def break_stops(data: U8, low: int, high: int) -> I64:
    """Ascending offsets after every line break of str.splitlines in ``data[low:high]``.

    \\n \\v \\f \\r \\x1c \\x1d \\x1e, and beyond ASCII NEL (C2 85), LS (E2 80 A8) and PS (E2 80 A9).
    """
    view = data[low:high]
    stops = np.flatnonzero(((view - 0x0A) <= 3) | ((view - 0x1C) <= 2)) + (low + 1)
    leads = np.flatnonzero((view == 0xC2) | (view == 0xE2)) + low
    second = data[leads + 1]
    nel = leads[(data[leads] == 0xC2) & (second == 0x85)] + 2
    wide = leads[(data[leads] == 0xE2) & (second == 0x80)]
    wide = wide[(data[wide + 2] | 1) == 0xA9] + 3
    return union(stops, nel, wide) if len(nel) or len(wide) else stops


def union(*ascending: I64) -> I64:
    """Distinct values of ascending arrays, ascending. Merges runs; np.unique would hash (NumPy 2.3)."""
    merged = np.sort(np.concatenate(ascending), kind="stable")
    return np.asarray(merged[run_starts(merged)])


def refusal_of(expression: str) -> str | None:
    """Why RE2 refuses an expression; None if it accepts it.

    >>> refusal_of("a+"), refusal_of("a" * 2_000_000)
    (None, 'Invalid regular expression: pattern too large - compile failed')
    """
    try:
        pc.match_substring_regex(pa.array([""]), expression)
        pc.find_substring_regex(pa.array([""]), expression)
    except pa.ArrowInvalid as error:
        return " ".join(str(error).split())[:200]
    return None


def escape(text: str) -> str:
    """An RE2 expression that matches a text literally."""
    return "".join(f"\\x{{{ord(c):x}}}" if c.isascii() and not c.isalnum() else c for c in text)
