"""Learns a WordPiece vocabulary by likelihood, from a table of word counts, the same one in every run.

In: COUNTS (word, count). Out: a `Vocab` of exactly the size asked for, of the same family as `learn_wordpiece` gives.
Where byte-pair merges join the most frequent pair, this joins the pair with the highest count(ab) / (count(a) *
count(b)): the one whose merge raises the likelihood of the corpus most (Schuster and Nakajima, Japanese and Korean
voice search, 2012, section 4; Hugging Face's course, chapter 6.6, for the formula). Google's own trainer was never
released. Memory and time depend on distinct words, never on the size of the corpus; counts have 64 bits throughout.

The words are one column of piece ids with links to the neighbours; a merge touches nothing but the places where its
pair stands and their neighbours. The score of a pair that is seen once, of pieces that are seen once, is the highest
there is, so rare pairs must wait: see `MIN_PAIR`.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.arrays import I32, I64
from corpusforge.tokens.learn_wordpiece import Learned, Prepared, characters_of, prepare
from corpusforge.tokens.pair_scores import PairScores
from corpusforge.tokens.wordpiece import arrange

MIN_PAIR = 0
"""Occurrences below which a pair is not merged; 0: at first those of the most frequent pair, and half of that whenever
no pair is left. Learned from 95 MB of English (121,329 words seen twice or more), 8,192 ids made of held-out text 1.198
tokens a word that way, merges by count 1.192; with one bound for all merges 3.07 (bound 10), 2.51 (100), 1.29 (800);
from 1,000 on pairs did not suffice to fill the vocabulary. One bound is what the formula alone says; it spends ids on
parts of rare words ("##lthough") before frequent words are whole."""


def learn(
    counts: pa.Table,
    size: int,
    *,
    unused: int = 128,
    lowercase: bool = True,
    alphabet: int = 1000,
    min_pair: int = MIN_PAIR,
    allow_any_size: bool = False,
) -> Learned:
    """Learn a WordPiece vocabulary of ``size`` ids, specials and at least ``unused`` slots among them.

    ``counts``: COUNTS in any order; ``alphabet``: most distinct characters kept; ``min_pair``: see `MIN_PAIR`. Where
    the pairs do not suffice to fill the size, more [unusedN] slots do.

    Raises `errors.RecipeInvalid` where the size is no multiple of 64 or too small for specials, slots and characters.
    """
    prepared = prepare(counts, size, unused=unused, lowercase=lowercase, alphabet=alphabet, any_size=allow_any_size)
    pieces = merge(prepared, min_pair)
    vocab = arrange(pieces, size, unused, prepared.normalization)
    statistics = {
        **prepared.statistics,
        "words_learned_from": len(prepared.kept),
        "merges": len(pieces) - len(prepared.first),
        "unused": len(vocab.unused),
    }
    return Learned(vocab, statistics)


def merge(prepared: Prepared, min_pair: int) -> list[str]:
    """The pieces: those to begin with, then what merges made, in their order."""
    pieces = list(prepared.first)
    ids = {piece: i for i, piece in enumerate(pieces)}
    words = _Words(prepared)
    scores = PairScores(prepared.room, min_pair)
    np.add.at(scores.counts, words.pieces[:-1], words.weights_at(np.arange(len(words.pieces) - 1)))
    lefts = np.flatnonzero(words.right[:-1] < len(words.pieces) - 1)
    scores.add(words.pieces[lefts], words.pieces[words.right[lefts]], words.weights_at(lefts))
    scores.lower(min_pair or max(scores.most(), 1))
    # A Python loop with a reason: each merge depends on the one before; within one, all is columns.
    while len(pieces) < prepared.room:
        pair = scores.best()
        if pair is None:
            if min_pair or scores.least == 1:
                break
            scores.lower(scores.least // 2)
            continue
        left, right = pair
        piece = pieces[left] + pieces[right].removeprefix("##")
        made = ids.setdefault(piece, len(pieces))
        if made == len(pieces):
            pieces.append(piece)
        changed = words.join(left, right, made)
        scores.counts[left] -= changed.merged
        scores.counts[right] -= changed.merged
        scores.counts[made] += changed.merged
        scores.add(changed.left, changed.right, changed.weights)
        scores.rescore(sorted({left, right, made}))
    return pieces


class _Changed(NamedTuple):
    """What a merge changed: pairs with the occurrences they gained or lost, and occurrences merged."""

    left: I32
    right: I32
    weights: I64
    merged: int


class _Words:
    """All words as one column of piece ids; the last place is no piece, and the neighbour of both ends of a word."""

    def __init__(self, prepared: Prepared) -> None:
        codes, owners = characters_of(prepared.kept)
        begins = np.append(True, owners[1:] != owners[:-1])[: len(owners)]
        points = np.array([ord(c) for c in prepared.characters], np.uint32)
        inner = np.array([ord(piece[2:]) for piece in prepared.inner], np.uint32)
        # Words as the splitter cuts them have no sign inside; others could not be spelled.
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
        cuts = np.searchsorted(self.pieces[order], np.arange(len(prepared.first) + 1))
        self._places: list[I32] = [order[a:b] for a, b in itertools.pairwise(cuts)]

    def weights_at(self, places: npt.NDArray[np.signedinteger]) -> I64:
        """Occurrences of the words that these places belong to."""
        found: I64 = self._weights[np.searchsorted(self._starts, places, "right") - 1]
        return found

    def join(self, left: int, right: int, made: int) -> _Changed:
        """Put ``made`` for every ``left`` followed by ``right``, from the left where they overlap."""
        at = self._found(left, right)
        behind = self.right[at]
        before, after = self.left[at], self.right[behind]
        weights = self.weights_at(at)
        # Where the place before is the right half of the merge before, that merge counts the pair between them.
        follows = np.append(False, before[1:] == behind[:-1])[: len(at)]
        lead, trail = ~follows & (self.pieces[before] >= 0), self.pieces[after] >= 0
        lost = ((self.pieces[before][lead], left), (left, right), (right, self.pieces[after][trail]))
        self.pieces[at], self.pieces[behind] = made, -1
        self.right[at], self.left[after] = after, at
        self._remember(made, at)
        before = self.left[at]
        gained = ((self.pieces[before][lead], made), (made, self.pieces[after][trail]))
        sizes = [weights[lead], weights, weights[trail]]
        return _changes([*lost, *gained], [*(-w for w in sizes), sizes[0], sizes[2]], int(weights.sum()))

    def _found(self, left: int, right: int) -> I32:
        """Places of ``left`` with ``right`` behind, ascending, none of which overlap."""
        lefts, rights = self._places_of(left), self._places_of(right)
        found: I32 = lefts if len(lefts) <= len(rights) else np.sort(self.left[rights])
        found = found[(self.pieces[found] == left) & (self.pieces[self.right[found]] == right)]
        if left != right or len(found) < 2:
            return found
        chained = np.append(False, self.right[found[:-1]] == found[1:])
        place = np.arange(len(found))
        run = np.maximum.accumulate(np.where(chained, 0, place))
        apart: I32 = found[(place - run) % 2 == 0]
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
