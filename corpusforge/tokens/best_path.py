"""Unigram for all words at once: of all ways to cut a word into pieces the one with the highest sum of scores.

In: distinct words. Out: their ids. The decision: the library's dynamic programme (huggingface/tokenizers,
models/unigram, encode_optimized) is followed side by side, with the same sums in the same order in 64 bits and the same
rule for equals (the path that came first stays), so that rounding falls the same way. A word with a character that is
no piece is left: what it costs, and that unknown neighbours become one, is the library's affair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I32, I64
from corpusforge.text import text_bytes
from corpusforge.tokens.trie import Trie
from corpusforge.tokens.word_columns import Answers, Letters, all_known, gather, known_characters, letters_of


class BestPath:
    """Encodes words with scored pieces; left are words of more than `LONGEST` bytes and with unknown characters."""

    def __init__(self, pieces: Sequence[str], ids: Sequence[int], scores: Sequence[float]) -> None:
        """``scores`` by id."""
        texts = [piece.encode() for piece in pieces]
        self._trie = Trie(texts, ids, [0] * len(ids))
        self._known = known_characters(pieces)
        self._scores = np.array(scores, np.float64)
        self._lengths = np.zeros(len(scores), np.int64)
        self._lengths[ids] = [len(piece) for piece in texts]

    def encode(self, words: pa.StringArray) -> Answers:
        letters = letters_of(*text_bytes(words), all_known(words, self._known))
        return gather(len(words), letters, self._path(letters, self._last_pieces(letters)))

    def _last_pieces(self, letters: Letters) -> list[I32]:
        """By place, for each word that reaches it the id of the last piece of the best path that ends there."""
        rows = letters.rows
        reach = [len(letters.order), *map(len, rows)]
        best = [np.full(count, -np.inf) for count in reach]
        last = [np.full(count, -1, np.int32) for count in reach]
        best[0][:] = 0.0
        for place, row in enumerate(rows):
            here = np.flatnonzero((row & 0xC0) != 0x80)
            for length, words, ids in self._trie.matches(rows, place, here):
                sums = best[place][words] + self._scores[ids]
                goal = best[place + length]
                better = np.flatnonzero(sums > goal[words])
                words = words[better]
                goal[words], last[place + length][words] = sums[better], ids[better]
        return last

    def _path(self, letters: Letters, last: list[I32]) -> list[tuple[I64, I32]]:
        """The pieces of the best paths, first pieces first."""
        firsts = np.cumsum([0, *map(len, last)])
        flat = np.concatenate(last)
        words, ends, found = np.arange(len(letters.order)), letters.lengths, []
        while len(words):
            ids = flat[firsts[ends] + words]
            found.append((words, ids))
            ends = ends - self._lengths[ids]
            words, ends = words[ends > 0], ends[ends > 0]
        return found[::-1]
