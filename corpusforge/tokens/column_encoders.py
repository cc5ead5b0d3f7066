"""Encode many distinct words at once: longest match, best path and pair merges over columns of words.

All three follow the order of steps of the `tokenizers` library, for all words side by side. `Letters` holds the symbols
of words by position, longest word first, so that the words that reach a position are the first of a row. An
encoder takes only words for which it is proven to give the library's ids and leaves the others to the library, one by
one (`Answers.left`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.arrays import I32, I64, U64, Bools, ranges
from corpusforge.text import slices, text_bytes
from corpusforge.tokens.lookup import KeyTable, Trie
from corpusforge.tokens.splitting import code_points

LONGEST = 48
"""Symbols of the longest word encoded in columns: nearly all words are shorter, and each position costs a round."""


class Answers(NamedTuple):
    """Ids of words, flat, and how many each has; ``left`` words have none: the library encodes them."""

    ids: npt.NDArray[Any]
    lengths: I64
    left: Bools


class ColumnEncoder(Protocol):
    """Encodes words by columns."""

    def encode(self, words: pa.StringArray) -> Answers:
        """Ids of normalized words, exactly the library's; words for which that is not proven are left."""


class Letters(NamedTuple):
    """Symbols of words: ``rows[p][k]`` is symbol p of word ``order[k]``, which has ``lengths[k]`` of them.

    Longest words first, so that the words longer than p are the first ones, and row p ends after them.
    """

    order: I64
    lengths: I64
    rows: list[npt.NDArray[Any]]


def letters_of(symbols: npt.NDArray[Any], offsets: I64, usable: Bools | None = None) -> Letters:
    """Word i has ``symbols[offsets[i]:offsets[i + 1]]``; those that are neither empty nor too long, and ``usable``."""
    lengths = np.diff(offsets)
    fit = (lengths > 0) & (lengths <= LONGEST)
    chosen = np.flatnonzero(fit if usable is None else fit & usable)
    order = chosen[np.argsort((LONGEST - lengths[chosen]).astype(np.uint8), kind="stable")]
    firsts, lengths = offsets[order], lengths[order]
    reach = np.cumsum(np.bincount(lengths, minlength=LONGEST + 1)[::-1])[::-1]  # words of p symbols or more
    return Letters(order, lengths, [symbols[firsts[:n] + p] for p, n in enumerate(reach[1:].tolist()) if n])


def all_known(words: pa.StringArray, known: Bools) -> Bools:
    """The words whose characters are all ``known`` (by code point)."""
    data, offsets = text_bytes(words)
    data = data[: offsets[-1]]
    # Bytes of ASCII by a table; longer characters, which are fewer, by their code points.
    ascii_strange = np.append(~known[:128], np.zeros(128, bool))
    leads = np.flatnonzero(data >= 0xC0)
    strange = [np.flatnonzero(ascii_strange[data]), leads[~known[code_points(data, leads)]]]
    usable = np.ones(len(words) + 1, bool)  # the first for what precedes the column
    for places in strange:
        usable[np.searchsorted(offsets, places, "right")] = False
    return usable[1:]


def gather(total: int, letters: Letters, steps: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> Answers:
    """From pairs of arrays (word in ``letters``, id), each word once in a pair, the ids of each word in that order."""
    counts, numbered = np.zeros(len(letters.order), np.int64), []
    for words, ids in steps:
        numbered.append((words, counts[words], ids))
        counts[words] += 1
    lengths = np.zeros(total, np.int64)
    lengths[letters.order] = counts
    firsts = (np.cumsum(lengths) - lengths)[letters.order]
    flat = np.empty(int(lengths.sum()), np.int32)
    for words, ordinals, ids in numbered:
        flat[firsts[words] + ordinals] = ids
    return Answers(flat, lengths, lengths == 0)


class LongestMatch:
    """WordPiece: at every place where a token ended, the longest one that begins there.

    The rule is the library's (huggingface/tokenizers, models/wordpiece). Position by position, all words with a
    token boundary there walk the trie together. A word of which any part has no token is unknown as a whole.

    ``tokens`` begin with ``prefix`` inside words. Left are words of more than `LONGEST` bytes, or of more than
    ``longest``, the number of characters beyond which a word is unknown.
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
        # Longer words are unknown; where bytes do not rule that out, the library decides.
        letters = letters_of(data, offsets, np.diff(offsets) <= self._longest)
        steps, known = self._matches(letters)
        kept = [(at[known[at]], ids[known[at]]) for at, ids in steps]
        unknown = np.flatnonzero(~known)
        return gather(len(words), letters, [*kept, (unknown, np.full(len(unknown), self._unknown))])

    def _matches(self, letters: Letters) -> tuple[list[tuple[I64, I32]], Bools]:
        """Words and the ids that begin in them, place by place; which words have tokens to their end."""
        count = len(letters.order)
        boundary = np.zeros((len(letters.rows) + 1, count), bool)  # by place: a token ended here
        boundary[:1] = True
        known, steps = np.ones(count, bool), []
        for place, row in enumerate(letters.rows):
            here = np.flatnonzero(boundary[place, : len(row)])
            longest, ids = np.zeros(count, np.int64), np.full(count, -1, np.int32)
            for length, words, tokens in self._trie.matches(letters.rows, place, here, int(place > 0)):
                longest[words], ids[words] = length, tokens
            known[here[ids[here] < 0]] = False
            here = here[ids[here] >= 0]
            boundary[place + longest[here], here] = True
            steps.append((here, ids[here]))
        return steps, known


class BestPath:
    """Unigram: of all ways to segment a word into pieces the one with the highest sum of scores.

    The dynamic program is the library's (huggingface/tokenizers, models/unigram, encode_optimized), with the same sums
    in the same order in 64 bits and the same rule for equals (the path that came first stays), so that rounding falls
    the same way. Left are words of more than `LONGEST` bytes, and words with a character that is not a piece: its cost,
    and that unknown neighbors become one, are up to the library.
    """

    def __init__(self, pieces: Sequence[str], ids: Sequence[int], scores: Sequence[float]) -> None:
        """``scores`` by id."""
        texts = [piece.encode() for piece in pieces]
        self._trie = Trie(texts, ids, [0] * len(ids))
        self._known = np.zeros(0x110000, bool)  # by code point: the character is a piece
        self._known[[ord(piece) for piece in pieces if len(piece) == 1]] = True
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
        words, ends, steps = np.arange(len(letters.order)), letters.lengths, []
        while len(words):
            ids = flat[firsts[ends] + words]
            steps.append((words, ids))
            ends = ends - self._lengths[ids]
            words, ends = words[ends > 0], ends[ends > 0]
        return steps[::-1]


_PLACE_BITS, _PLACES = 6, 63  # a key is rank and place, so that the least is the pair to join
_NONE = np.int32(2**31 - 1)  # the key of a pair that nothing joins
_NO_SYMBOL = 2**31 - 1  # joined into its left neighbor, or beyond the word


class PairMerges:
    """Byte-pair encoding: in every round each word joins its first pair of the lowest rank.

    This is the library's order (huggingface/tokenizers, models/bpe/word.rs: a heap by rank, then by place), one merge
    per word and round, with the ranks of all pairs known, so that a round is a minimum over positions and two look-ups.

    ``pairs``: ids of the left and the right symbol and of their result, first ones first; ``symbols``: the id of each
    byte, or of each code point (-1: none). Left are words of more than `LONGEST` symbols, and words with a code point
    that has no id.
    """

    def __init__(self, pairs: Sequence[tuple[int, int, int]], symbols: I32) -> None:
        table = np.array(pairs, np.int64).reshape(-1, 3)
        rank = {(left, right): k for k, (left, right, _) in enumerate(pairs)}  # of equal pairs the last counts
        self._ranks = np.array([*rank.values(), -1], np.int64)  # by number of the pair; the last: no pair
        self._pairs = KeyTable()
        self._pairs.add(*table[self._ranks[:-1], :2].T.astype(np.uint64))
        self._results, self._symbols, self._known = table[:, 2].astype(np.int32), symbols, symbols >= 0

    def encode(self, words: pa.StringArray) -> Answers:
        letters = self._letters(words)
        cells = _Cells(letters, lambda left, right: self._ranks[self._pairs.find(left, right)])
        while len(at := cells.pick()):
            cells.join(at, self._results)
        return gather(len(words), letters, cells.left())

    def _letters(self, words: pa.StringArray) -> Letters:
        data, offsets = text_bytes(words)
        if len(self._symbols) == 256:
            return letters_of(self._symbols[data], offsets)
        leads = np.flatnonzero((data & 0xC0) != 0x80)
        usable = all_known(words, self._known)
        return letters_of(self._symbols[code_points(data, leads)], np.searchsorted(leads, offsets), usable)


class _Cells:
    """The symbols of all words as linked lists, row after row; the last cell represents the space beyond a word."""

    def __init__(self, letters: Letters, rank: Callable[[U64, U64], I64]) -> None:
        counts = [len(row) for row in letters.rows]
        self._firsts, self._rank, self._words = np.cumsum([0, *counts]), rank, len(letters.order)
        self._beyond = beyond = int(self._firsts[-1])
        self._places = np.repeat(np.arange(len(counts) + 1, dtype=np.int32), [*counts, 1])
        self._symbols = np.concatenate([*letters.rows, [_NO_SYMBOL]]).astype(np.int64)
        self._next, self._before = np.full(beyond + 1, beyond), np.full(beyond + 1, beyond)
        for place, count in enumerate(counts[1:]):
            here, there = np.arange(count) + self._firsts[place], np.arange(count) + self._firsts[place + 1]
            self._next[here], self._before[there] = there, here
        self._keys = self._keyed(self._symbols, self._symbols[self._next], self._places)

    def pick(self) -> I64:
        """The words that have a pair to join; which one is remembered for `join`."""
        best = np.full(self._words, _NONE)
        for first, stop in itertools.pairwise(self._firsts.tolist()):
            np.minimum(best[: stop - first], self._keys[first:stop], out=best[: stop - first])
        words = np.flatnonzero(best != _NONE)
        self._best = best[words]
        return words

    def join(self, words: I64, results: I32) -> None:
        """Join that pair of each of these words."""
        here = self._firsts[self._best & _PLACES] + words
        right_half = self._next[here]
        right, left = self._next[right_half], self._before[here]
        new = results[self._best >> _PLACE_BITS]
        self._symbols[here], self._symbols[right_half] = new, _NO_SYMBOL
        self._next[here], self._before[right] = right, here
        self._keys[right_half] = _NONE
        self._keys[here] = self._keyed(new, self._symbols[right], self._places[here])
        self._keys[left] = self._keyed(self._symbols[left], new, self._places[left])

    def left(self) -> list[tuple[I64, I32]]:
        """Words and their symbols, place by place."""
        rows = [self._symbols[first:stop] for first, stop in itertools.pairwise(self._firsts.tolist())]
        words = [np.flatnonzero(row != _NO_SYMBOL) for row in rows]
        return [(at, row[at].astype(np.int32)) for at, row in zip(words, rows, strict=True)]

    def _keyed(self, left: npt.NDArray[Any], right: npt.NDArray[Any], places: I32) -> I32:
        ranks = self._rank(left.astype(np.uint64), right.astype(np.uint64))
        return np.where(ranks < 0, _NONE, ranks << _PLACE_BITS | places).astype(np.int32)


_LONGEST_SUM = 1 << 12  # bytes of a word whose sums of scores are exact
_SCORE, _STEP = 2.0**10, 2.0**-30
"""Scores up to the first that are multiples of the second: their sums over a word have 52 bits (IEEE 754: 53)."""


class WordParts:
    """Splits words where no token crosses and encodes the parts, so that `word,` and `word.` need `word` only once.

    ASCII letters, digits and signs are three classes. A word splits between two characters where no token has two such
    classes side by side and both characters are tokens themselves: nothing is joined across such a place, nor are
    unknown characters, so that merges left and right of it do not touch each other. Best paths part there too, if sums
    of scores are exact (`sums_are_exact`).

    ``tokens``: all tokens that text can produce.
    """

    def __init__(self, parts: ColumnEncoder, tokens: Iterable[str]) -> None:
        tokens = list(tokens)
        self._parts, self._classes = parts, np.zeros(256, np.uint8)
        for token in tokens:
            if len(token) == 1 and token.isascii():
                self._classes[ord(token)] = 1 if token.isalpha() else 2 if token.isdigit() else 3
        joined = self._classes[np.frombuffer("\u2581".join(tokens).encode(), np.uint8)]
        self._splits = np.ones((4, 4), bool)
        self._splits[0], self._splits[:, 0] = False, False
        self._splits[joined[:-1], joined[1:]] = False

    def encode(self, words: pa.StringArray) -> Answers:
        data, offsets = text_bytes(words)
        begins = np.zeros(len(data) + 1, bool)
        classes = self._classes[data]
        begins[1:-1] = self._splits[classes[:-1], classes[1:]]
        begins[offsets] = True
        edges = np.flatnonzero(begins[: offsets[-1] + 1])
        edges = edges[edges >= offsets[0]]
        coded = slices(data, edges).dictionary_encode()
        ids, lengths, left = self._parts.encode(coded.dictionary)
        numbers, ends = coded.indices.to_numpy(), np.searchsorted(edges, offsets)
        word = np.repeat(np.arange(len(words)), np.diff(ends))  # of each part
        given_up = np.diff(offsets) > _LONGEST_SUM
        given_up[word[left[numbers]]] = True
        firsts, counts = (np.cumsum(lengths) - lengths)[numbers], np.where(given_up[word], 0, lengths[numbers])
        totals = np.bincount(word, counts, len(words)).astype(np.int64)
        return Answers(ids[ranges(firsts, counts)], totals, given_up)


def sums_are_exact(scores: Sequence[float]) -> bool:
    """Whether scores can be added in any order, and the sum be the same."""
    steps = np.array(scores, np.float64) / _STEP
    return bool(np.all(steps == np.rint(steps)) and np.all(np.abs(steps) <= _SCORE / _STEP))
