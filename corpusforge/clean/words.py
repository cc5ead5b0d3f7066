"""White-space words of a column of documents.

Comes in: a string column. Goes out: `Words`: where each word lies, how many characters it has, and its number in the
vocabulary of the batch. A word is what `str.split` gives: punctuation stays with its word. What depends on the word
alone is asked once a word of the vocabulary (about a tenth of the words of a text), and n-grams compare numbers.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64, U8, Bools
from corpusforge.text import byte_slices, text_bytes

_SPACE = np.array([byte < 0x80 and chr(byte).isspace() for byte in range(256)])
_WIDE = np.array(sorted(int.from_bytes(chr(c).encode(), "big") for c in range(0x80, 0x3001) if chr(c).isspace()))
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
        """The different words, in the order of their numbers; it may hold words of documents left out."""
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
        bounds = np.append(0, np.cumsum(self.counts[documents]))
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

    >>> found = find_words(pa.array(["Yes, we\\u3000do.", "", " one"]))
    >>> found.counts.tolist(), found.characters.tolist(), found.vocabulary.to_pylist()
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
    cut = within[inside[within] & inside[within - 1]]  # where one document ends in a word and the next begins in one
    ends = [np.zeros(int(inside[0]), np.int64), np.full(int(inside[-1]), len(inside))]
    edges = np.sort(np.concatenate([changes, cut, cut, *ends]), kind="stable") + low
    starts, stops = edges[::2], edges[1::2]
    return Words(data, starts, stops, np.searchsorted(starts, offsets), offsets[:-1])


def _space_mask(data: U8, low: int, high: int) -> Bools:
    """Which bytes of ``data[low:high]`` belong to white space, as `str.isspace` knows it."""
    view = data[low:high]
    space = _SPACE[view]
    leads = np.flatnonzero(_WIDE_LEAD[view])
    if len(leads):
        two = view[leads].astype(np.int64) << 8 | view[leads + 1]
        three = two << 8 | view[np.minimum(leads + 2, len(view) - 1)]
        for width, codes in ((2, two), (3, three)):
            found = leads[_WIDE[np.minimum(np.searchsorted(_WIDE, codes), len(_WIDE) - 1)] == codes]
            for k in range(width):
                space[found + k] = True
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
