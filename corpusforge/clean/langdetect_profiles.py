"""The tables of langdetect, and the n-grams of texts that are in them.

The tables are built once per process from the profiles of the installed package langdetect 1.0.9 (55 JSON files,
``langdetect/profiles``) and its own function that normalizes a character. N-grams are the paths of a trie laid into one
array (a *double array*): a node is a start in the array, its child for symbol s is at ``start + s``, and ``owners``
gives the node that an entry belongs to, so a trigram is looked up in two reads. Languages are in the order of the
sorted file names; the package takes the order of the directory.

`find_ngrams` gives the n-grams of one to three characters of every document that are in a profile, in the package's
order (``detector.py``: `append`, `cleaning_text`, `_extract_ngrams`; ``utils/ngram.py``). Only their positions are
kept, because only a few hundred of thousands of n-grams are drawn; their rows are looked up then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import F64, I32, I64, U32, Bools
from corpusforge.text import text_bytes

CODE_POINTS = 0x20000
"""Code points with an entry of their own: every character of a profile, every character that langdetect 1.0.9
normalizes (``utils/ngram.py``), and every upper-case letter of Unicode lie below; all others are like the last."""

SPACE, EDGE, OTHER = 0, 1, 2
"""Symbols: a space; the edge of a document, which is a space that no n-gram ends with; a character of no n-gram."""


class Profiles(NamedTuple):
    """``symbols``: of every code point. Those from ``known[0]`` to ``known[1]`` are n-grams by themselves; from
    ``upper`` on they are upper case. ``pairs[a * size + b]``: twice the start of the node of ab, plus 1 if ab is an
    n-gram. ``starts[a]``: start of the node of a; ``root``: of the empty path. ``owners``, ``rows``: of every array
    entry. ``probabilities``: a row for each n-gram, a column for each language of ``languages``.
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
    contents = [json.loads(path.read_text("utf-8")) for path in _files()]
    normal = _normalized()
    grams = _matchable(contents, set(normal))
    symbols = _symbols(grams, normal)
    table = np.zeros((len(grams), len(contents)))
    for column, profile in enumerate(contents):
        _fill(table, column, profile, grams)
    places = _lay_out(grams, symbols)
    return Profiles(
        tuple(profile["name"] for profile in contents), symbols.table, symbols.size, symbols.known, symbols.upper,
        *places, table,
    )  # fmt: skip


def _normalized() -> list[str]:
    """Every code point as the package normalizes it; from U+3200 on that changes only Hangul and `CJK_MAP`."""
    from langdetect.utils.ngram import NGram

    normal = [chr(code) for code in range(CODE_POINTS)]
    for code in (*range(0x3200), *range(0xAC00, 0xD7B0), *map(ord, NGram.CJK_MAP)):
        normal[code] = NGram.normalize(chr(code))
    return normal


def languages() -> tuple[str, ...]:
    """Names of the languages, without building the tables: those of the files."""
    return tuple(path.name for path in _files())


def _files() -> list[Path]:
    """The files of the profiles, sorted by name."""
    import langdetect

    folder = Path(langdetect.PROFILES_DIRECTORY)
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _matchable(contents: list[dict[str, Any]], alphabet: set[str]) -> dict[str, int]:
    """The n-grams that text can have, numbered: of normalized characters, not only spaces, no space inside."""
    # A Python loop over 88,000 n-grams, once per process.
    grams: dict[str, int] = {}
    for profile in contents:
        for gram in profile["freq"]:
            fits = len(gram) <= 3 and gram.strip(" ") and " " not in gram[1:-1]
            if fits and gram not in grams and alphabet.issuperset(gram):
                grams[gram] = len(grams)
    return grams


def _fill(table: F64, column: int, profile: dict[str, Any], grams: dict[str, int]) -> None:
    """Set the probability of each n-gram in a language: its frequency over that of all n-grams of its length."""
    known = [gram for gram in profile["freq"] if gram in grams]
    totals = np.array(profile["n_words"], np.float64)
    lengths = np.array([len(gram) for gram in known])
    counts = np.array([profile["freq"][gram] for gram in known], np.float64)
    table[[grams[gram] for gram in known], column] = counts / totals[lengths - 1]


def _symbols(grams: dict[str, int], normal: list[str]) -> _Symbols:
    """Number the characters: spaces, others, those only inside n-grams, unigrams, then the same in upper case."""
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
    # Large nodes first; a Python loop over 17,000 nodes, once per process.
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
    """Nodes interleaved so that no two children share an entry. No node starts at 0."""

    WINDOW = 2048
    """Starts tried at once: while the array is half empty, most small nodes fit one of them."""

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
        """Place a node with ``(symbol, row)`` children; returns its start."""
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


MAX_CHARACTERS = 10_000
"""Characters examined, counted after the removal of addresses (``detector.py``, max_text_length)."""
BLOCK_CHARACTERS = 1 << 16
"""Characters processed at once: about 40 bytes each, so that a block stays in a core's cache."""

_HEAD, _MARGIN = 16_384, 3_000
# In a longer text with addresses only the head is searched, if enough of it is left. Truncation can change matches only
# near the end of the head: a URL has at most 2,084 characters, an address 575, a letter with a mark two.

_MARKS = "\u0300\u0301\u0303\u0309\u0323"  # those of Vietnamese letters (messages.properties, DMARK_CLASS)
_BEFORE_AT = re.compile("[-_.0-9A-Za-z]{1,64}")
_AFTER_AT = re.compile("[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}")


class NGrams(NamedTuple):
    """N-grams of documents. ``symbols``: of all documents, an `EDGE` before each. ``places``: four times the index of
    an n-gram's last symbol, plus its length less one; document i owns ``places[offsets[i]:offsets[i + 1]]``."""

    symbols: npt.NDArray[np.uint16]
    places: I32
    offsets: I64

    def rows(self, chosen: I64, table: Profiles) -> I32:
        """Rows of probabilities of the chosen n-grams."""
        places = self.places[chosen].astype(np.intp)
        last, longer = places >> 2, places & 3
        final = self.symbols[last].astype(np.intp)
        before = self.symbols[last - 1].astype(np.intp)
        pair = self.symbols[last - 2] * np.intp(table.size) + before
        start = np.where(longer == 2, table.pairs[pair] >> 1, np.where(longer == 1, table.starts[before], table.root))
        return np.asarray(table.rows[start + final])


def prepare(texts: pa.StringArray) -> list[str]:
    """Every text without addresses, with Vietnamese letters composed, truncated."""
    prepared: list[str] = pc.utf8_slice_codeunits(texts, 0, MAX_CHARACTERS).to_pylist()
    special = pc.or_(pc.match_substring(texts, "http"), pc.match_substring(texts, "@"))
    if (text_bytes(texts)[0] == 0xCC).any():  # the first byte of all marks
        special = pc.or_(special, pc.match_substring_regex(texts, f"[{_MARKS}]"))
    # A Python loop with a reason: few texts hold an address or a mark, and the expressions are Python's.
    chosen = np.flatnonzero(special.to_numpy(zero_copy_only=False))
    for number, text in zip(chosen.tolist(), texts.take(pa.array(chosen)).to_pylist(), strict=True):
        prepared[number] = _prepare_special(text)
    return prepared


def _prepare_special(text: str) -> str:
    prepared = _without_addresses(text[:_HEAD])
    if len(text) > _HEAD and len(prepared) < MAX_CHARACTERS + _MARGIN:
        prepared = _without_addresses(text)
    return prepared[:MAX_CHARACTERS]


def _without_addresses(text: str) -> str:
    from langdetect.detector import Detector
    from langdetect.utils.ngram import NGram

    if "http" in text:
        text = Detector.URL_RE.sub(" ", text)
    if "@" in text:
        text = _without_mail(text)
    composed: str = NGram.normalize_vi(text) if any(mark in text for mark in _MARKS) else text
    return composed


def _without_mail(text: str) -> str:
    """`Detector.MAIL_RE.sub`, searched from every "@" and not from every letter."""
    parts: list[str] = []
    done, at = 0, text.find("@")
    while at >= 0:
        name = _BEFORE_AT.match(text[max(done, at - 64) : at][::-1])
        host = _AFTER_AT.match(text, at + 1)
        if name and host:
            parts += [text[done : at - name.end()], " "]
            done = host.end()
        at = text.find("@", max(done, at + 1))
    return "".join([*parts, text[done:]])


def find_ngrams(texts: list[str], table: Profiles) -> NGrams:
    """The n-grams of prepared texts."""
    symbols: list[npt.NDArray[np.uint16]] = []
    places: list[I32] = []
    bounds: list[I64] = [np.zeros(1, np.int64)]
    length = total = 0
    for block in _blocks(texts):
        coded = _symbols_of(block, table)
        flags = _known(coded.symbols, table)
        ends = np.append(coded.edges[1:], len(coded.symbols)) * 4
        inside = np.flatnonzero(flags)
        bounds.append(total + np.searchsorted(inside, ends))
        places.append((inside + length * 4).astype(np.int32))
        symbols.append(coded.symbols.astype(np.uint16))
        length, total = length + len(coded.symbols), total + len(inside)
    if not symbols:
        return NGrams(np.zeros(0, np.uint16), np.zeros(0, np.int32), bounds[0])
    return NGrams(np.concatenate(symbols), np.concatenate(places), np.concatenate(bounds))


def _blocks(texts: list[str]) -> Iterator[list[str]]:
    """Groups of documents of about `BLOCK_CHARACTERS` each."""
    sizes = np.cumsum([len(text) + 1 for text in texts])
    first = 0
    while first < len(texts):
        done = int(sizes[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(sizes, done + BLOCK_CHARACTERS, "right")))
        yield texts[first:last]
        first = last


class _SymbolBlock(NamedTuple):
    """Symbols of a block of documents; ``edges``: the index of each document's `EDGE`."""

    symbols: npt.NDArray[np.intp]
    edges: I64


def _symbols_of(texts: list[str], table: Profiles) -> _SymbolBlock:
    # The character before every document only makes room for its edge.
    codes = np.frombuffer((" " + " ".join(texts)).encode("utf-32-le", "surrogatepass"), np.uint32)
    edges = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    high = np.flatnonzero(codes >= 0x300)
    if len(high):
        codes, edges = _without_latin(codes, high, edges)
    symbols = np.take(table.symbols, codes, mode="clip")
    symbols[edges] = EDGE
    return _SymbolBlock(symbols, edges)


def _without_latin(codes: U32, high: I64, edges: I64) -> tuple[U32, I64]:
    """Remove "A" to "z" from documents that have more than twice as many characters from U+0300 on."""
    ends = np.append(edges[1:], len(codes))
    latin = codes - np.uint32(0x41) <= 0x39
    places = np.flatnonzero(latin)
    foreign = np.diff(np.searchsorted(high, ends), prepend=0)
    drop = np.diff(np.searchsorted(places, ends), prepend=0) * 2 < foreign
    if not drop.any():
        return codes, edges
    kept = ~(latin & np.repeat(drop, ends - edges))
    return codes[kept], (np.cumsum(kept) - 1)[edges]


def _known(symbols: npt.NDArray[np.intp], table: Profiles) -> Bools:
    """Four flags per symbol: whether the n-grams of length 1, 2 and 3 that end with it count, and one unused.

    None counts if the symbol and the one before are upper case; longer ones do not count after two spaces.
    """
    flags = np.zeros((len(symbols), 4), bool)
    large = symbols >= table.upper
    lone = np.ones(len(symbols), bool)
    np.logical_and(large[1:], large[:-1], out=lone[1:])
    np.logical_not(lone[1:], out=lone[1:])
    np.logical_and((symbols >= table.known[0]) & (symbols < table.known[1]), lone, out=flags[:, 0])
    pairs = np.take(table.pairs, symbols[:-1] * table.size + symbols[1:], mode="clip")
    np.logical_and((pairs & 1).astype(bool), lone[1:], out=flags[1:, 1])
    start = pairs[:-1] >> 1
    np.logical_and(table.owners.take(start + symbols[2:], mode="clip") == start, lone[2:], out=flags[2:, 2])
    return flags.reshape(-1)
