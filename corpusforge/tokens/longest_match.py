"""WordPiece for all words at once: at every place where a token ended, the longest one that begins there.

In: distinct words. Out: their ids. The decision: the rule of the library (huggingface/tokenizers, models/wordpiece) is
followed for all words side by side: position by position, the words that stand there walk the trie together. A word of
which any part has no token is unknown as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from corpusforge.arrays import I32, I64, Bools
from corpusforge.text import text_bytes
from corpusforge.tokens.trie import Trie
from corpusforge.tokens.word_columns import Answers, Letters, gather, letters_of


class LongestMatch:
    """Encodes words with the ``tokens`` of a WordPiece vocabulary, ``prefix`` in front of those inside words.

    Left are words of more bytes than `LONGEST`, or than the characters from which on a word is unknown: ``longest``.
    """

    def __init__(self, tokens: Sequence[str], prefix: str, unknown: int, longest: int) -> None:
        inside = [(token.removeprefix(prefix), i) for i, token in enumerate(tokens) if token.startswith(prefix)]
        inside = [(token, i) for token, i in inside if token]
        texts = [token.encode() for token in [*tokens, *(token for token, _ in inside)]]
        ids = [*range(len(tokens)), *(i for _, i in inside)]
        self._trie = Trie(texts, ids, [0] * len(tokens) + [1] * len(inside))
        self._unknown, self._longest = unknown, longest

    def encode(self, words: pa.StringArray) -> Answers:
        data, offsets = text_bytes(words)
        # Words of so many characters are unknown: a matter of the library where bytes do not rule it out.
        letters = letters_of(data, offsets, np.diff(offsets) <= self._longest)
        found, known = self._matches(letters)
        kept = [(at[known[at]], ids[known[at]]) for at, ids in found]
        unknown = np.flatnonzero(~known)
        return gather(len(words), letters, [*kept, (unknown, np.full(len(unknown), self._unknown))])

    def _matches(self, letters: Letters) -> tuple[list[tuple[I64, I32]], Bools]:
        """Words and the ids that begin in them, place by place; which words have tokens to their end."""
        count = len(letters.order)
        stands = np.zeros((len(letters.rows) + 1, count), bool)  # by place: a token ended here
        stands[:1] = True
        known, found = np.ones(count, bool), []
        for place, row in enumerate(letters.rows):
            here = np.flatnonzero(stands[place, : len(row)])
            longest, ids = np.zeros(count, np.int64), np.full(count, -1, np.int32)
            for length, words, tokens in self._trie.matches(letters.rows, place, here, int(place > 0)):
                longest[words], ids[words] = length, tokens
            known[here[ids[here] < 0]] = False
            here = here[ids[here] >= 0]
            stands[place + longest[here], here] = True
            found.append((here, ids[here]))
        return found, known
