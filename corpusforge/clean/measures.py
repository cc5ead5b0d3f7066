"""Words, lines and paragraphs of documents, and measures of them against the limits of a pack.

`Words` are white-space words as `str.split` finds them (punctuation stays with its word), each with its number in the
vocabulary of the batch: what depends on a word alone is computed once per word of the vocabulary, about a tenth of the
words of a text, and n-grams compare numbers. Lines and paragraphs (`Lines`) are cut at "\\n" alone and not stripped, as
the Gopher and FineWeb rules read them; C4 cuts lines as `str.splitlines` does. `Findings` tries rules in the order of
their codes and records the first that a document breaks and the value measured ("top 2-gram 0.274 > 0.2").
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import F64, I64, U8, Bools, offsets_of, run_starts
from corpusforge.clean.step import KEPT, Codes
from corpusforge.text import SPACE, WIDE_SPACE, byte_slices, text_bytes

_WIDE_LEAD = np.isin(np.arange(256), [0xC2, 0xE1, 0xE2, 0xE3])  # first bytes of white space beyond ASCII


class Words:
    """Words as ascending byte spans ``data[starts[i]:stops[i]]``; document i owns ``offsets[i]:offsets[i + 1]`` and
    begins at ``bases[i]`` of the data."""

    def __init__(self, data: U8, starts: I64, stops: I64, offsets: I64, bases: I64) -> None:
        self.data, self.starts, self.stops, self.offsets, self.bases = data, starts, stops, offsets, bases

    @cached_property
    def counts(self) -> I64:
        """Words of each document."""
        return np.diff(self.offsets)

    @cached_property
    def documents(self) -> I64:
        """The document of each word."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)

    @cached_property
    def characters(self) -> I64:
        """Characters of each word."""
        return count_characters(self.data, self.starts, self.stops)

    @property
    def vocabulary(self) -> pa.StringArray:
        """The distinct words, in the order of their numbers; it may hold words of documents that were dropped."""
        return self._encoded[0]

    @property
    def numbers(self) -> I64:
        """The number of each word in the vocabulary."""
        return self._encoded[1]

    def choose(self, documents: I64, texts: pa.StringArray) -> Words:
        """The words of some documents, by ascending number. ``texts``: the column of these alone."""
        data, offsets = text_bytes(texts)
        mask = np.zeros(len(self.counts), bool)
        mask[documents] = True
        kept = np.repeat(mask, self.counts)
        moved = np.repeat(offsets[:-1] - self.bases[documents], self.counts[documents])
        bounds = offsets_of(self.counts[documents])
        chosen = Words(data, self.starts[kept] + moved, self.stops[kept] + moved, bounds, offsets[:-1])
        if "characters" in self.__dict__:
            chosen.__dict__["characters"] = self.characters[kept]
        if "_encoded" in self.__dict__:
            chosen.__dict__["_encoded"] = (self.vocabulary, self.numbers[kept])
        return chosen

    @cached_property
    def _encoded(self) -> tuple[pa.StringArray, I64]:
        encoded = pc.dictionary_encode(byte_slices(self.data, self.starts, self.stops))
        return encoded.dictionary, np.asarray(encoded.indices).astype(np.int64)


def find_words(text: pa.StringArray) -> Words:
    """The words of every document, as `str.split` finds them.

    >>> words = find_words(pa.array(["Yes, we\\u3000do.", "", " one"]))
    >>> words.counts.tolist(), words.characters.tolist(), words.vocabulary.to_pylist()
    ([3, 0, 1], [4, 2, 3, 3], ['Yes,', 'we', 'do.', 'one'])
    """
    data, offsets = text_bytes(text)
    low, high = int(offsets[0]), int(offsets[-1])
    inside = ~_space_mask(data, low, high)
    if not len(inside):
        empty = np.zeros(0, np.int64)
        return Words(data, empty, empty, np.zeros(len(offsets), np.int64), offsets[:-1])
    changes = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    within = np.unique(offsets[(offsets > low) & (offsets < high)]) - low
    cut = within[inside[within] & inside[within - 1]]  # where one document ends in a word and the next begins with one
    ends = [np.zeros(int(inside[0]), np.int64), np.full(int(inside[-1]), len(inside))]
    edges = np.sort(np.concatenate([changes, cut, cut, *ends]), kind="stable") + low
    starts, stops = edges[::2], edges[1::2]
    return Words(data, starts, stops, np.searchsorted(starts, offsets), offsets[:-1])


def _space_mask(data: U8, low: int, high: int) -> Bools:
    """Which bytes of ``data[low:high]`` belong to white space, as `str.isspace` has it."""
    view = data[low:high]
    space = SPACE[view]
    leads = np.flatnonzero(_WIDE_LEAD[view])
    if len(leads):
        two = view[leads].astype(np.int64) << 8 | view[leads + 1]
        three = two << 8 | view[np.minimum(leads + 2, len(view) - 1)]
        for width, codes in ((2, two), (3, three)):
            starts = leads[WIDE_SPACE[np.minimum(np.searchsorted(WIDE_SPACE, codes), len(WIDE_SPACE) - 1)] == codes]
            for k in range(width):
                space[starts + k] = True
    return np.asarray(space)


def count_characters(data: U8, starts: I64, stops: I64) -> I64:
    """Characters of ascending byte spans.

    >>> count_characters(np.frombuffer("aé 中".encode(), np.uint8), np.array([0, 4]), np.array([3, 7])).tolist()
    [2, 1]
    """
    if not len(starts) or data[starts[0] : stops[-1]].max(initial=0) < 0x80:
        return stops - starts
    low, high = int(starts[0]), int(stops[-1])
    before = np.zeros(high - low + 1, np.int32)  # a column of strings holds less than 2^31 bytes
    np.cumsum((data[low:high] & 0xC0) != 0x80, dtype=np.int32, out=before[1:])
    return (before[stops - low] - before[starts - low]).astype(np.int64)


Numbers = I64 | F64


class Findings:
    """The verdicts on the documents of a batch so far, and which are still to be judged.

    ``reasons``: names of the codes; the first is "kept". ``codes``, ``details``: of all documents. ``texts``,
    ``words``: of the documents ``numbers``, those still to be judged; `narrow` removes dropped ones.
    """

    def __init__(self, reasons: tuple[str, ...], texts: pa.StringArray) -> None:
        self.reasons = reasons
        self.codes: Codes = np.full(len(texts), KEPT, np.int8)
        self.details: dict[int, str] = {}
        self.texts, self.words = texts, find_words(texts)
        self.numbers: I64 = np.arange(len(texts))

    def narrow(self) -> None:
        """Continue with the documents that broke no rule so far."""
        kept = np.flatnonzero(self.codes[self.numbers] == KEPT)
        if len(kept) < len(self.numbers):
            self.texts = self.texts.take(pa.array(kept))
            self.words = self.words.choose(kept, self.texts)
            self.numbers = self.numbers[kept]

    def at_most(self, reason: str, label: str, values: Numbers, limit: float) -> None:
        """Drop documents above the limit."""
        if limit:
            self._drop(reason, label, values, limit, ">", values > limit)

    def at_least(self, reason: str, label: str, values: Numbers, limit: float) -> None:
        """Drop documents below the limit."""
        if limit:
            self._drop(reason, label, values, limit, "<", values < limit)

    def drop(self, reason: str, chosen: Bools) -> None:
        """Drop documents for a reason that needs no details."""
        kept = self.codes[self.numbers] == KEPT
        self.codes[self.numbers[chosen & kept]] = self.reasons.index(reason)

    def _drop(self, reason: str, label: str, values: Numbers, limit: float, sign: str, broken: Bools) -> None:
        chosen = np.flatnonzero(broken & (self.codes[self.numbers] == KEPT))
        self.codes[self.numbers[chosen]] = self.reasons.index(reason)
        for number, value in zip(self.numbers[chosen].tolist(), values[chosen].tolist(), strict=True):
            self.details[number] = f"{label} {_shown(value, limit)} {sign} {limit:g}"


def _shown(value: float, limit: float) -> str:
    """A number with three decimals, or with as many as distinguish it from the limit.

    >>> _shown(12, 50), _shown(0.27351, 0.2), _shown(0.300004, 0.3)
    ('12', '0.274', '0.300004')
    """
    if isinstance(value, int):
        return str(value)
    digits = next((d for d in range(3, 16) if round(value, d) != limit), 16)
    return f"{value:.{digits}f}"


def shares(part: Numbers, whole: Numbers) -> F64:
    """``part / whole``, 0 where the whole is 0."""
    return np.asarray(part / np.maximum(whole, 1), np.float64)


class Lines(NamedTuple):
    """Lines or paragraphs: ascending byte spans ``data[starts[i]:stops[i]]``; document i owns ``offsets[i]`` to
    ``offsets[i + 1]``."""

    data: U8
    starts: I64
    stops: I64
    offsets: I64

    def choose(self, mask: Bools) -> Lines:
        """Some of them, of the same documents."""
        offsets = offsets_of(mask)[self.offsets]
        return Lines(self.data, self.starts[mask], self.stops[mask], offsets)


def split_at_runs(text: pa.StringArray) -> Lines:
    """Each document cut at every run of "\\n", as ``re.split("\\n+", ...)``.

    >>> lines = split_at_runs(pa.array(["a\\n\\nb", "", "\\nc"]))
    >>> byte_slices(*lines[:3]).to_pylist(), lines.offsets.tolist()
    (['a', 'b', '', '', 'c'], [0, 2, 3, 5])
    """
    data, offsets = text_bytes(text)
    return _cut(data, offsets[:-1], offsets[1:], *_newline_runs(data, offsets, 1))


def split_paragraphs(text: pa.StringArray, words: Words) -> Lines:
    """Each document, white space trimmed, cut at runs of two or more "\\n". ``words``: its words."""
    data, offsets = text_bytes(text)
    cut_starts, cut_stops = _newline_runs(data, offsets, 2)
    has_words = words.counts > 0
    starts, stops = offsets[:-1].copy(), offsets[:-1].copy()
    starts[has_words] = words.starts[words.offsets[:-1][has_words]]
    stops[has_words] = words.stops[words.offsets[1:][has_words] - 1]
    if len(cut_starts):
        owners = np.searchsorted(offsets, cut_starts, "right") - 1
        inner = (cut_starts > starts[owners]) & (cut_stops < stops[owners])
        cut_starts, cut_stops = cut_starts[inner], cut_stops[inner]
    return _cut(data, starts, stops, cut_starts, cut_stops)


def split_at_each(text: pa.StringArray) -> Lines:
    """Each document cut at every "\\n", as ``str.split("\\n")``."""
    data, offsets = text_bytes(text)
    at = _newlines(data, offsets)
    return _cut(data, offsets[:-1], offsets[1:], at, at + 1)


def repeats(lines: Lines) -> Bools:
    """Which lines are equal, byte by byte, to an earlier one of the same document."""
    repeated = np.zeros(len(lines.starts), bool)
    encoded = pc.dictionary_encode(byte_slices(lines.data, lines.starts, lines.stops))
    owners = np.repeat(np.arange(len(lines.offsets) - 1), np.diff(lines.offsets))
    keys = owners * len(encoded.dictionary) + np.asarray(encoded.indices)
    order = np.argsort(keys, kind="stable")
    repeated[order] = ~run_starts(keys[order])
    return repeated


def characters_in(lines: Lines) -> I64:
    """The characters of each document's lines; meant for few lines of a text."""
    lengths = pc.utf8_length(byte_slices(lines.data, lines.starts, lines.stops))
    return sums(np.asarray(lengths), lines.offsets)


def sums(values: npt.NDArray[Any], offsets: I64) -> I64:
    """The sum of each document's values (numbers, or true as 1)."""
    return np.diff(offsets_of(values)[offsets])


def beginning_with(data: U8, starts: I64, stops: I64, strings: tuple[str, ...]) -> Bools:
    """Which byte spans begin with one of a few short strings."""
    begins = np.zeros(len(starts), bool)
    for code in (string.encode() for string in strings):
        likely = np.flatnonzero(stops - starts >= len(code))
        for k, byte in enumerate(code):
            likely = likely[data[starts[likely] + k] == byte]
        begins[likely] = True
    return begins


def ending_with(data: U8, starts: I64, stops: I64, strings: tuple[str, ...]) -> Bools:
    """Which byte spans end with one of the strings.

    >>> text = np.frombuffer("Yes.好。no".encode(), np.uint8)
    >>> ending_with(text, np.array([0, 4, 10]), np.array([4, 10, 12]), (".", "。")).tolist()
    [True, True, False]
    """
    codes = [string.encode() for string in strings]
    last = np.zeros(256, bool)
    last[[code[-1] for code in codes]] = True
    ends = np.zeros(len(starts), bool)
    likely = np.flatnonzero(stops > starts)
    likely = likely[last[data[stops[likely] - 1]]]
    present = np.bincount(data[stops[likely] - 1], minlength=256)  # few of many strings occur in a batch
    for code in (code for code in codes if present[code[-1]]):
        hits = likely[stops[likely] - starts[likely] >= len(code)]
        for k, byte in enumerate(reversed(code), 1):
            hits = hits[data[stops[hits] - k] == byte]
        ends[hits] = True
    return ends


def _newlines(data: U8, offsets: I64) -> I64:
    low, high = int(offsets[0]), int(offsets[-1])
    return np.flatnonzero(data[low:high] == 0x0A) + low


def _newline_runs(data: U8, offsets: I64, least: int) -> tuple[I64, I64]:
    """Starts and stops of runs of ``least`` or more "\\n"; a run ends where its document does."""
    at = _newlines(data, offsets)
    if not len(at):
        return at, at
    owners = np.searchsorted(offsets, at, "right")
    first = np.flatnonzero(run_starts(at - np.arange(len(at)), owners))
    starts, stops = at[first], at[np.append(first[1:], len(at)) - 1] + 1
    long = stops - starts >= least
    return starts[long], stops[long]


def _cut(data: U8, lows: I64, highs: I64, cut_starts: I64, cut_stops: I64) -> Lines:
    """Documents ``data[lows[i]:highs[i]]`` split at the cuts in them: one span more than cuts."""
    before = np.searchsorted(cut_starts, lows)
    before = np.append(before, len(cut_starts))
    count = np.diff(before) + 1
    offsets = offsets_of(count)
    starts, stops = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    first, last = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    first[offsets[:-1]], last[offsets[1:] - 1] = True, True
    starts[first], stops[last] = lows, highs
    starts[~first], stops[~last] = cut_stops, cut_starts
    return Lines(data, starts, stops, offsets)
