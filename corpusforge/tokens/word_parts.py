"""Words cut where no token crosses, so that `word,` and `word.` are encoded once as `word`.

In: distinct words of SentencePiece's families. Out: their ids, from those of their parts. The decision: ASCII letters,
digits and signs are three classes, and between two characters is a cut where no token has such two classes side by side
and both characters are tokens themselves. Nothing is joined across such a place, nor are unknown characters, so that
merges left and right of it do not touch each other. Best paths part there too, if sums of scores are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from corpusforge.text import slices, text_bytes
from corpusforge.tokens.columns import ragged_positions
from corpusforge.tokens.word_columns import Answers, WordColumns

_LONGEST = 1 << 12  # bytes of a word whose sums are exact
_SCORE, _STEP = 2.0**10, 2.0**-30
"""Scores up to the first that are multiples of the second: sums of so many of them have 52 bits (IEEE 754: 53)."""


class WordParts:
    """Encodes words by their parts. ``tokens``: all that text can give."""

    def __init__(self, parts: WordColumns, tokens: Iterable[str]) -> None:
        tokens = list(tokens)
        self._parts, self._classes = parts, np.zeros(256, np.uint8)
        for token in tokens:
            if len(token) == 1 and token.isascii():
                self._classes[ord(token)] = 1 if token.isalpha() else 2 if token.isdigit() else 3
        joined = self._classes[np.frombuffer("\u2581".join(tokens).encode(), np.uint8)]
        self._cut = np.ones((4, 4), bool)
        self._cut[0], self._cut[:, 0] = False, False
        self._cut[joined[:-1], joined[1:]] = False

    def encode(self, words: pa.StringArray) -> Answers:
        data, offsets = text_bytes(words)
        begins = np.zeros(len(data) + 1, bool)
        classes = self._classes[data]
        begins[1:-1] = self._cut[classes[:-1], classes[1:]]
        begins[offsets] = True
        cuts = np.flatnonzero(begins[: offsets[-1] + 1])
        cuts = cuts[cuts >= offsets[0]]
        coded = slices(data, cuts).dictionary_encode()
        ids, lengths, left = self._parts.encode(coded.dictionary)
        numbers, ends = coded.indices.to_numpy(), np.searchsorted(cuts, offsets)
        word = np.repeat(np.arange(len(words)), np.diff(ends))  # of each part
        given_up = np.diff(offsets) > _LONGEST
        given_up[word[left[numbers]]] = True
        firsts, counts = (np.cumsum(lengths) - lengths)[numbers], np.where(given_up[word], 0, lengths[numbers])
        totals = np.bincount(word, counts, len(words)).astype(np.int64)
        return Answers(ids[ragged_positions(firsts, counts)], totals, given_up)


def sums_are_exact(scores: Sequence[float]) -> bool:
    """Whether scores can be added in any order, and the sum be the same."""
    steps = np.array(scores, np.float64) / _STEP
    return bool(np.all(steps == np.rint(steps)) and np.all(np.abs(steps) <= _SCORE / _STEP))
