"""Lines and paragraphs as the Gopher and FineWeb rules see them: cut at "\\n", and not stripped.

Comes in: a string column. Goes out: `Pieces`: byte spans by document; which of them repeat an earlier one of the same
document; which begin or end with given strings. Unlike the lines of C4 these are cut at "\\n" alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, U8, Bools
from corpusforge.clean.words import Words
from corpusforge.text import byte_slices, text_bytes


class Pieces(NamedTuple):
    """Ascending byte spans ``data[starts[i]:stops[i]]``; document i owns ``offsets[i]:offsets[i + 1]``."""

    data: U8
    starts: I64
    stops: I64
    offsets: I64

    def choose(self, mask: Bools) -> Pieces:
        """Some of them, of the same documents."""
        offsets = np.append(0, np.cumsum(mask))[self.offsets]
        return Pieces(self.data, self.starts[mask], self.stops[mask], offsets)


def split_at_runs(text: pa.StringArray) -> Pieces:
    """Each document cut at every run of "\\n", as ``re.split("\\n+", ...)``.

    >>> found = split_at_runs(pa.array(["a\\n\\nb", "", "\\nc"]))
    >>> byte_slices(*found[:3]).to_pylist(), found.offsets.tolist()
    (['a', 'b', '', '', 'c'], [0, 2, 3, 5])
    """
    data, offsets = text_bytes(text)
    return _cut(data, offsets[:-1], offsets[1:], *_newline_runs(data, offsets, 1))


def split_paragraphs(text: pa.StringArray, words: Words) -> Pieces:
    """Each document without white space at its edges, cut at runs of two "\\n" and more. ``words``: its words."""
    data, offsets = text_bytes(text)
    run_starts, run_stops = _newline_runs(data, offsets, 2)
    has = words.counts > 0
    starts, stops = offsets[:-1].copy(), offsets[:-1].copy()
    starts[has] = words.starts[words.offsets[:-1][has]]
    stops[has] = words.stops[words.offsets[1:][has] - 1]
    if len(run_starts):
        owners = np.searchsorted(offsets, run_starts, "right") - 1
        inner = (run_starts > starts[owners]) & (run_stops < stops[owners])
        run_starts, run_stops = run_starts[inner], run_stops[inner]
    return _cut(data, starts, stops, run_starts, run_stops)


def split_at_each(text: pa.StringArray) -> Pieces:
    """Each document cut at every "\\n", as ``str.split("\\n")``."""
    data, offsets = text_bytes(text)
    at = _newlines(data, offsets)
    return _cut(data, offsets[:-1], offsets[1:], at, at + 1)


def repeats(pieces: Pieces) -> Bools:
    """Which pieces are equal, byte by byte, to an earlier one of the same document."""
    found = np.zeros(len(pieces.starts), bool)
    encoded = pc.dictionary_encode(byte_slices(pieces.data, pieces.starts, pieces.stops))
    owners = np.repeat(np.arange(len(pieces.offsets) - 1), np.diff(pieces.offsets))
    keys = owners * len(encoded.dictionary) + np.asarray(encoded.indices)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    found[order[1:]] = ordered[1:] == ordered[:-1]
    return found


def characters_in(pieces: Pieces) -> I64:
    """The characters of each document's pieces; for a few pieces of a text."""
    lengths = pc.utf8_length(byte_slices(pieces.data, pieces.starts, pieces.stops))
    return sums(np.asarray(lengths), pieces.offsets)


def sums(values: npt.NDArray[np.generic], offsets: I64) -> I64:
    """The sum of each document's values (numbers, or true as 1)."""
    total = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=total[1:])
    return np.diff(total[offsets])


def beginning_with(data: U8, starts: I64, stops: I64, strings: tuple[str, ...]) -> Bools:
    """Which byte spans begin with one of a few short strings."""
    found = np.zeros(len(starts), bool)
    for code in (string.encode() for string in strings):
        likely = np.flatnonzero(stops - starts >= len(code))
        for k, byte in enumerate(code):
            likely = likely[data[starts[likely] + k] == byte]
        found[likely] = True
    return found


def ending_with(data: U8, starts: I64, stops: I64, strings: tuple[str, ...]) -> Bools:
    """Which byte spans end with one of the strings.

    >>> text = np.frombuffer("Yes.好。no".encode(), np.uint8)
    >>> ending_with(text, np.array([0, 4, 10]), np.array([4, 10, 12]), (".", "。")).tolist()
    [True, True, False]
    """
    codes = [string.encode() for string in strings]
    last = np.zeros(256, bool)
    last[[code[-1] for code in codes]] = True
    found = np.zeros(len(starts), bool)
    likely = np.flatnonzero(stops > starts)
    likely = likely[last[data[stops[likely] - 1]]]
    present = np.bincount(data[stops[likely] - 1], minlength=256)  # of many strings few occur in a batch
    for code in (code for code in codes if present[code[-1]]):
        hits = likely[stops[likely] - starts[likely] >= len(code)]
        for k, byte in enumerate(reversed(code), 1):
            hits = hits[data[stops[hits] - k] == byte]
        found[hits] = True
    return found


def _newlines(data: U8, offsets: I64) -> I64:
    low, high = int(offsets[0]), int(offsets[-1])
    return np.flatnonzero(data[low:high] == 0x0A) + low


def _newline_runs(data: U8, offsets: I64, least: int) -> tuple[I64, I64]:
    """Starts and stops of runs of at least so many "\\n"; a run ends where its document does."""
    at = _newlines(data, offsets)
    if not len(at):
        return at, at
    fresh = np.ones(len(at), bool)
    owners = np.searchsorted(offsets, at, "right")
    fresh[1:] = (at[1:] != at[:-1] + 1) | (owners[1:] != owners[:-1])
    first = np.flatnonzero(fresh)
    starts, stops = at[first], at[np.append(first[1:], len(at)) - 1] + 1
    long = stops - starts >= least
    return starts[long], stops[long]


def _cut(data: U8, lows: I64, highs: I64, cut_starts: I64, cut_stops: I64) -> Pieces:
    """Documents ``data[lows[i]:highs[i]]`` without the cuts in them: always one piece more than cuts."""
    before = np.searchsorted(cut_starts, lows)
    before = np.append(before, len(cut_starts))
    count = np.diff(before) + 1
    offsets = np.append(0, np.cumsum(count))
    starts, stops = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    first, last = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    first[offsets[:-1]], last[offsets[1:] - 1] = True, True
    starts[first], stops[last] = lows, highs
    starts[~first], stops[~last] = cut_stops, cut_starts
    return Pieces(data, starts, stops, offsets)
