"""Many distinct words side by side: the layout in which a family encodes all of them at once, and the way back.

In: a column of words. Out: their bytes by position, longest word first, so that the words that reach a position are the
first so many of a row; and from (word, id) pairs the ids of each word in order. The decision: whoever encodes this way
takes only words for which it is proven to give the library's ids and leaves the others out, one by one: `Answers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.arrays import I64, Bools
from corpusforge.text import text_bytes
from corpusforge.tokens.columns import code_points

LONGEST = 48
"""Symbols of the longest word encoded in columns: nearly all words are shorter, and each position costs a round."""


class Answers(NamedTuple):
    """Ids of words, flat, and how many each has; ``left`` words have none here: they are for the library."""

    ids: npt.NDArray[Any]
    lengths: I64
    left: Bools


class WordColumns(Protocol):
    """What encodes words by columns."""

    def encode(self, words: pa.StringArray) -> Answers:
        """Ids of normalised words, exactly the library's; words outside of what is proven are left."""


class Letters(NamedTuple):
    """Symbols of words: ``rows[p][k]`` is symbol p of word ``order[k]``, which has ``lengths[k]`` of them.

    Longest words first, so that the words longer than p are the first ones, and row p ends behind them.
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


def known_characters(tokens: Iterable[str]) -> Bools:
    """By code point, whether a character is a token by itself."""
    known = np.zeros(0x110000, bool)
    known[[ord(token) for token in tokens if len(token) == 1]] = True
    return known


def all_known(words: pa.StringArray, known: Bools) -> Bools:
    """The words whose characters are all known."""
    data, offsets = text_bytes(words)
    data = data[: offsets[-1]]
    # Bytes of ASCII by a table; longer characters, which are fewer, by their code points.
    ascii_strange = np.append(~known[:128], np.zeros(128, bool))
    leads = np.flatnonzero(data >= 0xC0)
    strange = [np.flatnonzero(ascii_strange[data]), leads[~known[code_points(data, leads)]]]
    usable = np.ones(len(words) + 1, bool)  # the first for what stands before the column
    for places in strange:
        usable[np.searchsorted(offsets, places, "right")] = False
    return usable[1:]


def gather(total: int, letters: Letters, found: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> Answers:
    """From pairs of arrays (word in ``letters``, id), each word once in a pair, the ids of each word in that order."""
    counts, steps = np.zeros(len(letters.order), np.int64), []
    for words, ids in found:
        steps.append((words, counts[words], ids))
        counts[words] += 1
    lengths = np.zeros(total, np.int64)
    lengths[letters.order] = counts
    firsts = (np.cumsum(lengths) - lengths)[letters.order]
    flat = np.empty(int(lengths.sum()), np.int32)
    for words, ordinals, ids in steps:
        flat[firsts[words] + ordinals] = ids
    return Answers(flat, lengths, lengths == 0)
