"""Which texts hold a phrase: plain substrings, on the text as it is or in lower case.

Comes in: a string column and a few phrases. Goes out: numbers of the texts that hold one. Lower case is that of
`str.lower`: what bytes cannot tell (two letters beyond ASCII lower-case into it) is settled text by text.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I64
from corpusforge.text import text_bytes

_INTO_ASCII = ("\u0130", "\u212a")
"""The letters beyond ASCII that `str.lower` turns into ASCII ones: dotted capital I and the Kelvin sign (Unicode 15,
UnicodeData.txt and SpecialCasing.txt)."""


class Phrases:
    """A column prepared for several searches."""

    def __init__(self, texts: pa.StringArray) -> None:
        data, self._offsets = text_bytes(texts)
        self._texts = texts
        self._content = data[self._offsets[0] : self._offsets[-1]].tobytes()
        self._lowered = self._content.lower()
        self._odd = _holding(self._content, self._offsets, _INTO_ASCII)

    def holding(self, phrases: tuple[str, ...]) -> I64:
        """Numbers of the texts that hold one of the phrases as it is written."""
        return _holding(self._content, self._offsets, phrases)

    def holding_lowered(self, phrases: tuple[str, ...]) -> I64:
        """Numbers of the texts whose lower case holds one of the phrases."""
        if not all(phrase.isascii() for phrase in phrases):
            # A Python loop with a reason: bytes are lower-cased as ASCII; no bundled pack has such a phrase.
            texts = enumerate(self._texts.to_pylist())
            return np.array([n for n, text in texts if any(p in text.lower() for p in phrases)], np.int64)
        found = _holding(self._lowered, self._offsets, phrases)
        if not len(self._odd):
            return found
        # A Python loop with a reason: only the few texts with one of two rare letters.
        lower = {n: self._texts[n].as_py().lower() for n in self._odd.tolist()}
        held = [n for n, text in lower.items() if any(phrase in text for phrase in phrases)]
        return np.union1d(np.setdiff1d(found, self._odd), np.array(held, np.int64))


def _holding(content: bytes, offsets: I64, phrases: tuple[str, ...]) -> I64:
    """Numbers of the texts that hold one of the phrases; ``content`` begins at ``offsets[0]``.

    Python loops with a reason: one step a text that holds a probe, and these are rare; the search itself is C.
    """
    edges, needles = offsets - offsets[0], [phrase.encode() for phrase in phrases]
    found: set[int] = set()
    for probe in _probes(phrases):
        at = content.find(probe)
        while at >= 0:
            number = int(np.searchsorted(edges, at, "right")) - 1
            start, stop = int(edges[number]), int(edges[number + 1])
            # A hit may lie across two texts, or be a part of a phrase only. Either way this text is settled.
            if number not in found and any(content.find(needle, start, stop) >= 0 for needle in needles):
                found.add(number)
            at = content.find(probe, stop)
    return np.array(sorted(found), np.int64)


@cache
def _probes(phrases: tuple[str, ...]) -> tuple[bytes, ...]:
    """A few strings of which every phrase holds one: long words that phrases share, else phrases as they stand.

    >>> _probes(("use cookies", "cookie policy", "terms of use"))
    (b'cookie', b'terms of use')
    """
    found, left = [], list(phrases)
    while left:
        words = {word for phrase in left for word in phrase.split() if len(word) > 4} | set(left)
        best = max(sorted(words), key=lambda word: (sum(word in phrase for phrase in left), len(word)))
        found.append(best.encode())
        left = [phrase for phrase in left if best not in phrase]
    return tuple(found)
