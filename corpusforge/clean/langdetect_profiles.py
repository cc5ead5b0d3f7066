"""What langdetect knows, as tables: characters to symbols, n-grams of symbols to rows of probabilities.

Comes in: the profile files of the installed package langdetect 1.0.9 (55 JSON files, ``langdetect/profiles``), and its
own function that normalises a character. Goes out: `Profiles`, built once a process. The one decision: n-grams are the
paths of a trie laid into one array (a *double array*): a node is a start in the array, its child for symbol s stands
at ``start + s``, and ``owners`` says which node a place belongs to. So "is this trigram known" is two reads.

Languages are in the order of the sorted file names; the package takes the order of the directory.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corpusforge.arrays import F64, I32

CODE_POINTS = 0x20000
"""Code points with an entry of their own: every character of a profile, every one that langdetect 1.0.9 normalises
(``utils/ngram.py``), and every upper-case letter of Unicode lie below; the rest is like the last."""

SPACE, EDGE, OTHER = 0, 1, 2
"""Symbols: a space; the edge of a document, which is a space that no n-gram ends with; a character of no n-gram."""


class Profiles(NamedTuple):
    """``symbols``: of every code point. Those from ``known[0]`` to ``known[1]`` are n-grams alone; from ``upper`` on
    they are upper case. ``pairs[a * size + b]``: twice the start of the node of ab, plus 1 where ab is an n-gram.
    ``starts[a]``: start of the node of a; ``root``: of the empty path. ``owners``, ``rows``: of every place.
    ``probabilities``: one row an n-gram, one column a language of ``languages``.
    """

    languages: tuple[str, ...]
    symbols: npt.NDArray[np.intp]
    size: int
    known: tuple[int, int]
    upper: int
    pairs: I32
    starts: I32
    root: int
    owners: I32
    rows: I32
    probabilities: F64


class _Symbols(NamedTuple):
    """The alphabet: symbol of a character, and of all code points."""

    of: dict[str, int]
    table: npt.NDArray[np.intp]
    size: int
    known: tuple[int, int]
    upper: int


@cache
def profiles() -> Profiles:
    """The tables of the installed package."""
    import langdetect
    from langdetect.utils.ngram import NGram

    folder = Path(langdetect.PROFILES_DIRECTORY)
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    found = [json.loads(path.read_text("utf-8")) for path in files]
    normal = [NGram.normalize(chr(code)) for code in range(CODE_POINTS)]
    grams = _matchable(found, set(normal))
    symbols = _symbols(grams, normal)
    table = np.zeros((len(grams), len(found)))
    for column, profile in enumerate(found):
        _fill(table, column, profile, grams)
    places = _lay_out(grams, symbols)
    return Profiles(
        tuple(profile["name"] for profile in found), symbols.table, symbols.size, symbols.known, symbols.upper,
        *places, table,
    )  # fmt: skip


def languages() -> tuple[str, ...]:
    """Names of the languages, without building the tables: a profile is named as its file."""
    import langdetect

    folder = Path(langdetect.PROFILES_DIRECTORY)
    return tuple(sorted(p.name for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")))


def _matchable(found: list[dict[str, Any]], alphabet: set[str]) -> dict[str, int]:
    """The n-grams that text can give, numbered: of normalised characters, none of spaces only, no space inside."""
    # A Python loop over 88,000 n-grams, once a process.
    grams: dict[str, int] = {}
    for profile in found:
        for gram in profile["freq"]:
            fits = len(gram) <= 3 and gram.strip(" ") and " " not in gram[1:-1]
            if fits and gram not in grams and alphabet.issuperset(gram):
                grams[gram] = len(grams)
    return grams


def _fill(table: F64, column: int, profile: dict[str, Any], grams: dict[str, int]) -> None:
    """Probability of an n-gram in a language: its frequency by that of all n-grams of its length."""
    known = [gram for gram in profile["freq"] if gram in grams]
    totals = np.array(profile["n_words"], np.float64)
    lengths = np.array([len(gram) for gram in known])
    counts = np.array([profile["freq"][gram] for gram in known], np.float64)
    table[[grams[gram] for gram in known], column] = counts / totals[lengths - 1]


def _symbols(grams: dict[str, int], normal: list[str]) -> _Symbols:
    """Number the characters: spaces, others, part of n-grams only, n-grams alone, then the same in upper case."""
    characters = sorted(set("".join(grams)) - {" "})
    small = [c for c in characters if not c.isupper()]
    large = [c for c in characters if c.isupper()]
    order = [[c for c in small if c not in grams], [c for c in small if c in grams]]
    order += [[c for c in large if c in grams], [c for c in large if c not in grams]]
    numbered = {c: k for k, c in enumerate((c for group in order for c in group), OTHER + 1)}
    first = OTHER + 1 + len(order[0])
    upper = first + len(order[1])
    other_upper = OTHER + 1 + len(characters)
    numbered[" "] = SPACE
    table = np.array([numbered.get(c, other_upper if c.isupper() else OTHER) for c in normal], np.intp)
    return _Symbols(numbered, table, other_upper + 1, (first, upper + len(order[2])), upper)


def _lay_out(grams: dict[str, int], symbols: _Symbols) -> tuple[I32, I32, int, I32, I32]:
    """The double array: ``pairs``, ``starts``, ``root``, ``owners``, ``rows`` of `Profiles`."""
    nodes: dict[str, list[tuple[int, int]]] = {}
    for gram, row in grams.items():
        nodes.setdefault(gram[:-1], []).append((symbols.of[gram[-1]], row))
    array = _DoubleArray(2 * len(grams), symbols.size)
    placed = {}
    # Large nodes first; a Python loop over 17,000 nodes, once a process.
    for path, children in sorted(nodes.items(), key=lambda item: (-len(item[1]), item[0])):
        placed[path] = array.place(np.array(children, np.int32))
    size = symbols.size
    pairs, starts = np.zeros(size * size, np.int32), np.zeros(size, np.int32)
    for path, start in placed.items():
        if len(path) == 1:
            starts[symbols.of[path]] = start
        elif len(path) == 2:
            pairs[symbols.of[path[0]] * size + symbols.of[path[1]]] = 2 * start
    for gram in grams:
        if len(gram) == 2:
            pairs[symbols.of[gram[0]] * size + symbols.of[gram[1]]] |= 1
    starts[EDGE] = starts[SPACE]
    pairs[EDGE * size : (EDGE + 1) * size] = pairs[SPACE * size : (SPACE + 1) * size]
    return pairs, starts, placed[""], array.owners, array.rows


class _DoubleArray:
    """Nodes laid over each other so that no two children share a place. Start 0 is no node's."""

    WINDOW = 2048
    """Starts that are tried at once: most small nodes find one among so many while the array is half empty."""

    def __init__(self, size: int, symbols: int) -> None:
        self._symbols = symbols
        self.owners, self.rows = np.full(0, -1, np.int32), np.zeros(0, np.int32)
        self._free, self._begun = np.ones(0, bool), np.zeros(0, bool)
        self._grow(size)
        self._begun[0] = True
        self._low = 0

    def _grow(self, more: int) -> None:
        self.owners = np.append(self.owners, np.full(more, -1, np.int32))
        self.rows = np.append(self.rows, np.zeros(more, np.int32))
        self._free, self._begun = (
            np.append(self._free, np.ones(more, bool)),
            np.append(self._begun, np.zeros(more, bool)),
        )

    def place(self, children: I32) -> int:
        """Find room for a node with ``(symbol, row)`` children."""
        symbols, low = children[:, 0], self._low
        while True:
            if low + self.WINDOW + self._symbols > len(self._free):
                self._grow(len(self._free))
            fits = ~self._begun[low : low + self.WINDOW]
            for symbol in symbols.tolist():
                fits &= self._free[low + symbol : low + symbol + self.WINDOW]
            if fits.any():
                break
            self._low = low + self.WINDOW // 2
            low += self.WINDOW
        start = low + int(fits.argmax())
        self._begun[start] = True
        self._free[start + symbols] = False
        self.owners[start + symbols] = start
        self.rows[start + symbols] = children[:, 1]
        return start
