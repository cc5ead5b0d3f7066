"""Which tokens begin at a place: a trie in two flat tables, walked by many words in step.

In: tokens as bytes. Out: for words and a position, the tokens that match there, by length. The decision: a double array
(Aoe 1989): the children of a node lie at ``base + byte`` of one table, so that a step of all words is two gathers and a
comparison, exact without hashing. Bases are found for all nodes at once by trial, nodes with most children first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corpusforge.arrays import I32, I64, U8
from corpusforge.tokens.columns import ragged_positions

_SPREAD = 0x9E3779B1
"""Knuth's multiplier (The Art of Computer Programming 3, 6.4): bases to try, the same in every process."""


class Trie:
    """Tokens by id; ``roots[i]``: 0 or 1, in which of two tries token i lies (word beginnings, word insides)."""

    def __init__(self, tokens: Sequence[bytes], ids: Sequence[int], roots: Sequence[int]) -> None:
        parents, letters, nodes = _edges(tokens, np.array(roots, np.int64))
        bases, size = _placed(parents, letters)
        slots = np.concatenate([[0, 1], bases[parents] + letters]).astype(np.int32)  # of each node
        self._base, self._owner, self._ids = (np.full(size, -1, np.int32) for _ in range(3))
        self._base[slots] = bases
        self._owner[slots[2:]] = slots[parents]
        self._ids[slots[nodes]] = ids

    def matches(self, rows: Sequence[U8], at: int, words: I64, root: int = 0) -> Iterator[tuple[int, I64, I32]]:
        """Tokens that begin at byte ``at`` of these words (ascending), by length: the words that have one, its id."""
        state = np.int32(root)
        for place in range(at, len(rows)):
            row = rows[place]
            reach = np.searchsorted(words, len(row))  # the others end here
            if reach < len(words):
                words, state = words[:reach], state[:reach] if state.ndim else state
            slots = self._base[state] + row[words]
            on = np.flatnonzero(self._owner[slots] == state)
            words, state = words[on], slots[on]
            if not len(words):
                return
            ids = self._ids[state]
            hit = np.flatnonzero(ids >= 0)
            if len(hit):
                yield place - at + 1, words[hit], ids[hit]


def _edges(tokens: Sequence[bytes], nodes: I64) -> tuple[I64, I64, I64]:
    """Parent and byte of every node from number 2 on, parents ascending, 0 and 1 are roots; the node of each token."""
    flat = np.frombuffer(b"".join(tokens), np.uint8)
    lengths = np.array([len(token) for token in tokens], np.int64)
    firsts, nodes, number, found = np.cumsum(lengths) - lengths, nodes.copy(), 2, []
    for depth in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > depth)
        keys, inverse = np.unique(nodes[longer] << 8 | flat[firsts[longer] + depth], return_inverse=True)
        nodes[longer] = number + inverse
        number += len(keys)
        found.append(keys)
    edges = np.concatenate([np.empty(0, np.int64), *found])
    return edges >> 8, edges & 0xFF, nodes


def _placed(parents: I64, letters: I64) -> tuple[I64, int]:
    """A base for every node so that no two edges share a slot, and the number of slots; 0 and 1 are the roots'."""
    degrees = np.bincount(parents, minlength=len(parents) + 2)
    firsts = np.cumsum(degrees) - degrees
    span = 1 << (2 * len(parents) + 256).bit_length()  # at most half of it fills
    bases, taken, claims = np.zeros(len(degrees), np.int64), np.zeros(span + 256, bool), np.empty(span + 256, np.int64)
    taken[:2] = True
    for low, high in ((33, 257), (9, 33), (3, 9), (1, 3)):
        todo, attempt = np.flatnonzero((degrees >= low) & (degrees < high)), 0
        while len(todo):
            attempt += 1
            trial = (todo * 31 + attempt) * _SPREAD % span
            who = np.repeat(np.arange(len(todo)), degrees[todo])
            slots = trial[who] + letters[ragged_positions(firsts[todo], degrees[todo])]
            claims[slots] = who
            lost = np.zeros(len(todo), bool)
            lost[who[taken[slots] | (claims[slots] != who)]] = True
            bases[todo[~lost]] = trial[~lost]
            taken[slots[~lost[who]]] = True
            todo = todo[lost]
    return bases, span + 256
