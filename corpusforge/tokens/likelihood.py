"""Learn a WordPiece vocabulary by likelihood, the same one in every run; the family is that of `tokens.wordpiece`.

Where byte-pair merges join the most frequent pair, this joins the pair with the highest count(ab) / (count(a) *
count(b)): the one whose merge raises the likelihood of the corpus most (Schuster and Nakajima, Japanese and Korean
voice search, 2012, section 4; Hugging Face's course, chapter 6.6, for the formula). Google's own trainer was never
released. Memory and time depend on distinct words, never on the size of the corpus; counts have 64 bits throughout.

The words are one column of piece ids with links to the neighbors; a merge touches only the places of its pair and their
neighbors. The score of a pair that is seen once, of pieces that are seen once, is the highest possible, so rare pairs
must wait: see `MIN_PAIR`.
"""

from __future__ import annotations

import itertools
from array import array
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import sections
from corpusforge.arrays import I32, I64
from corpusforge.tokens.vocab import Learned
from corpusforge.tokens.wordpiece import Prepared, arrange, characters_of, prepare

MIN_PAIR = 0
"""Default of ``vocab.min_pair``, occurrences below which a pair is not merged. 0: at first those of the most frequent
pair, and half of that whenever no pair is left. Learned from 95 MB of English (121,329 words seen twice or more), 8,192
ids gave held-out text 1.198 tokens per word that way, merges by count 1.192; with one bound for all merges 3.07 (bound
10), 2.51 (100), 1.29 (800); from 1,000 on pairs did not suffice to fill the vocabulary. One bound is the formula alone;
it spends ids on parts of rare words ("##lthough") before frequent words are whole."""


def learn(counts: pa.Table, settings: sections.Vocab) -> Learned:
    """Learn by merging the pairs of highest likelihood; see `families.learn`.

    Settings: size, unused, lowercase, alphabet, allow_any_size; min_pair: see `MIN_PAIR`.
    """
    prepared = prepare(counts, settings)
    pieces = merge(prepared, settings.min_pair)
    vocab = arrange(pieces, settings.size, settings.unused, prepared.segmentation)
    statistics = {
        **prepared.statistics,
        "words_learned_from": len(prepared.kept),
        "merges": len(pieces) - len(prepared.first),
    }
    return Learned(vocab, statistics)


def merge(prepared: Prepared, min_pair: int) -> list[str]:
    """The pieces: the first ones, then the results of merges, in their order."""
    pieces = list(prepared.first)
    ids = {piece: i for i, piece in enumerate(pieces)}
    words = _Words(prepared)
    scores = PairScores(prepared.room, min_pair)
    np.add.at(scores.counts, words.pieces[:-1], words.weights_at(np.arange(len(words.pieces) - 1)))
    lefts = np.flatnonzero(words.right[:-1] < len(words.pieces) - 1)
    scores.add(words.pieces[lefts], words.pieces[words.right[lefts]], words.weights_at(lefts))
    scores.lower(min_pair or max(scores.most(), 1))
    # Python loop: each merge depends on the one before; a merge itself works on columns.
    while len(pieces) < prepared.room:
        pair = scores.best()
        if pair is None:
            if min_pair or scores.least == 1:
                break
            scores.lower(scores.least // 2)
            continue
        left, right = pair
        piece = pieces[left] + pieces[right].removeprefix("##")
        joined = ids.setdefault(piece, len(pieces))
        if joined == len(pieces):
            pieces.append(piece)
        changed = words.join(left, right, joined)
        scores.counts[left] -= changed.merged
        scores.counts[right] -= changed.merged
        scores.counts[joined] += changed.merged
        scores.add(changed.left, changed.right, changed.weights)
        scores.rescore(sorted({left, right, joined}))
    return pieces


class _Changed(NamedTuple):
    """What a merge changed: pairs with the occurrences they gained or lost, and occurrences merged."""

    left: I32
    right: I32
    weights: I64
    merged: int


class _Words:
    """All words as one column of piece ids; the last place is not a piece, and the neighbor of both ends of a word."""

    def __init__(self, prepared: Prepared) -> None:
        codes, owners = characters_of(prepared.kept)
        begins = np.append(True, owners[1:] != owners[:-1])[: len(owners)]
        points = np.array([ord(c) for c in prepared.characters], np.uint32)
        inner = np.array([ord(piece[2:]) for piece in prepared.inner], np.uint32)
        # Words from the splitter have no sign inside; words that have one cannot be spelled.
        odd = np.isin(owners, owners[~begins & ~np.isin(codes, inner)])
        codes, owners, begins = codes[~odd], owners[~odd], begins[~odd]
        ids = np.where(begins, np.searchsorted(points, codes), len(points) + np.searchsorted(inner, codes))
        end = len(codes)
        self.pieces: I32 = np.append(ids, -1).astype(np.int32)
        places = np.arange(end, dtype=np.int32)
        self.right: I32 = np.append(np.where(np.append(begins[1:], True)[:end], end, places + 1), end).astype(np.int32)
        self.left: I32 = np.append(np.where(begins, end, places - 1), end).astype(np.int32)
        self._starts = np.flatnonzero(begins)
        self._weights: I64 = prepared.kept["count"].to_numpy().astype(np.int64)[owners[begins]]
        order = np.argsort(self.pieces[:-1], kind="stable").astype(np.int32)
        ends = np.searchsorted(self.pieces[order], np.arange(len(prepared.first) + 1))
        self._places: list[I32] = [order[a:b] for a, b in itertools.pairwise(ends)]

    def weights_at(self, places: npt.NDArray[np.signedinteger]) -> I64:
        """Occurrences of the words that these places belong to."""
        weights: I64 = self._weights[np.searchsorted(self._starts, places, "right") - 1]
        return weights

    def join(self, left: int, right: int, joined: int) -> _Changed:
        """Replace every ``left`` followed by ``right`` with ``joined``, from the left where they overlap."""
        at = self._pairs(left, right)
        second = self.right[at]
        before, after = self.left[at], self.right[second]
        weights = self.weights_at(at)
        # Where the place before is the right half of the merge before, that merge counts the pair between them.
        follows = np.append(False, before[1:] == second[:-1])[: len(at)]
        lead, trail = ~follows & (self.pieces[before] >= 0), self.pieces[after] >= 0
        lost = ((self.pieces[before][lead], left), (left, right), (right, self.pieces[after][trail]))
        self.pieces[at], self.pieces[second] = joined, -1
        self.right[at], self.left[after] = after, at
        self._remember(joined, at)
        before = self.left[at]
        gained = ((self.pieces[before][lead], joined), (joined, self.pieces[after][trail]))
        sizes = [weights[lead], weights, weights[trail]]
        return _changes([*lost, *gained], [*(-w for w in sizes), sizes[0], sizes[2]], int(weights.sum()))

    def _pairs(self, left: int, right: int) -> I32:
        """Places of ``left`` followed by ``right``, ascending, none of which overlap."""
        lefts, rights = self._places_of(left), self._places_of(right)
        places: I32 = lefts if len(lefts) <= len(rights) else np.sort(self.left[rights])
        places = places[(self.pieces[places] == left) & (self.pieces[self.right[places]] == right)]
        if left != right or len(places) < 2:
            return places
        chained = np.append(False, self.right[places[:-1]] == places[1:])
        place = np.arange(len(places))
        run = np.maximum.accumulate(np.where(chained, 0, place))
        apart: I32 = places[(place - run) % 2 == 0]
        return apart

    def _places_of(self, piece: int) -> I32:
        places = self._places[piece]
        alive: I32 = places[self.pieces[places] == piece]
        self._places[piece] = alive
        return alive

    def _remember(self, piece: int, places: I32) -> None:
        if piece == len(self._places):
            self._places.append(places)
        else:  # the same text was made of other pieces before
            self._places[piece] = np.sort(np.concatenate([self._places_of(piece), places]))


def _changes(pairs: list[tuple[I32 | int, I32 | int]], weights: list[I64], merged: int) -> _Changed:
    sides = [
        [np.broadcast_to(np.asarray(pair[side], np.int32), w.shape) for pair, w in zip(pairs, weights, strict=True)]
        for side in (0, 1)
    ]
    return _Changed(np.concatenate(sides[0]), np.concatenate(sides[1]), np.concatenate(weights), merged)


_BLOCK = 1024
"""Pairs that share a maximum: from 256 to 16,384 learning takes the same time, with 64 a third more (29,544 merges)."""

_SHIFT = 32
_MASK = (1 << _SHIFT) - 1


class PairScores:
    """Pairs of neighboring pieces with their likelihood scores, and the best of them at any time.

    The score of a pair is how much more often the two are neighbors than pieces of their frequency are by chance. A
    merge of a and b lowers their counts and so raises the scores of all other pairs that they are in; a heap that
    checks what it pops would miss those. So every pair with a piece whose count changed is scored again, in columns:
    a few thousand pairs a merge. The maximum is kept for blocks of pairs, and only the maxima are searched.

    Scores are floats of 64 bits, one multiplication and one division: the same on every machine, and equal where the
    exact values are and count(a) * count(b) is below 2**53. Of equal scores, the more frequent pair is better, then the
    one whose left and then right piece was made first.

    ``counts``: of pieces (at most ``pieces``), by id; pairs seen less than ``least`` times have no score.
    """

    def __init__(self, pieces: int, least: int) -> None:
        self.counts = np.zeros(pieces, np.int64)
        self.least = least
        self._slots: dict[int, int] = {}
        self._keys = self._pairs = np.empty(0, np.int64)
        self._scores = np.empty(0)
        self._tops = np.empty(0)
        self._used = 0
        self._touching = [array("q") for _ in range(pieces)]

    def add(self, left: I32, right: I32, changes: I64) -> None:
        """Change the counts of pairs, which may recur in the columns. `rescore` updates the scores."""
        keys, places = np.unique(left.astype(np.int64) << _SHIFT | right, return_inverse=True)
        sums = np.zeros(len(keys), np.int64)
        np.add.at(sums, places, changes)
        keys, sums = keys[sums != 0], sums[sums != 0]
        # Python lists: one look-up for each distinct pair that a merge changes, some dozens.
        texts = keys.tolist()
        slots = np.array([self._slots.get(key, -1) for key in texts], np.int64)
        fresh = np.flatnonzero(slots < 0)
        slots[fresh] = self._insert([texts[at] for at in fresh.tolist()])
        self._pairs[slots] += sums
        for at in np.flatnonzero(self._pairs[slots] == 0).tolist():
            del self._slots[texts[at]]  # the slot stays, without a score

    def rescore(self, pieces: list[int]) -> None:
        """Score all pairs with one of these pieces again: their counts, or those of their pairs, changed."""
        touched = []
        for piece in pieces:
            slots = np.array(self._touching[piece], np.int64)
            alive = slots[self._pairs[slots] > 0]
            if 2 * len(alive) < len(slots):
                self._touching[piece] = array("q", alive.tobytes())
            touched.append(slots)
        self._score(np.concatenate([np.empty(0, np.int64), *touched]))

    def lower(self, least: int) -> None:
        """Score pairs that are seen ``least`` times or more."""
        self.least = least
        self._score(np.arange(self._used))

    def most(self) -> int:
        """Occurrences of the most frequent pair."""
        return int(self._pairs.max(initial=0))

    def _score(self, slots: I64) -> None:
        keys, pairs = self._keys[slots], self._pairs[slots]
        products = self.counts[keys >> _SHIFT].astype(np.float64) * self.counts[keys & _MASK].astype(np.float64)
        scores = np.zeros(len(slots))
        np.divide(pairs.astype(np.float64), products, out=scores, where=pairs >= self.least)
        self._scores[slots] = scores
        blocks = np.unique(slots // _BLOCK)
        self._tops[blocks] = self._scores.reshape(-1, _BLOCK)[blocks].max(axis=1)

    def best(self) -> tuple[int, int] | None:
        """The pair of the highest score; None where none is frequent enough."""
        top = self._tops.max(initial=0.0)
        if top <= 0:
            return None
        blocks = np.flatnonzero(self._tops == top)
        slots = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        slots = slots[self._scores[slots] == top]
        slots = slots[self._pairs[slots] == self._pairs[slots].max()]
        key = int(self._keys[slots].min())
        return key >> _SHIFT, key & _MASK

    def _insert(self, keys: list[int]) -> I64:
        first = self._used
        self._used += len(keys)
        if self._used > len(self._keys):
            self._grow(max(self._used, 2 * len(self._keys)))
        self._keys[first : self._used] = keys
        for slot, key in enumerate(keys, first):
            self._slots[key] = slot
            self._touching[key >> _SHIFT].append(slot)
            self._touching[key & _MASK].append(slot)
        return np.arange(first, self._used)

    def _grow(self, wanted: int) -> None:
        blocks = -(-wanted // _BLOCK)
        more = blocks * _BLOCK - len(self._keys)
        self._keys, self._pairs = (np.append(column, np.zeros(more, np.int64)) for column in (self._keys, self._pairs))
        self._scores = np.append(self._scores, np.zeros(more))
        self._tops = np.append(self._tops, np.zeros(blocks - len(self._tops)))
