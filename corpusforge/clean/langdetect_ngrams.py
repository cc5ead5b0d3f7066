"""The n-grams that langdetect finds in texts, by columns.

Comes in: a column of texts. Goes out: `NGrams`: for every document the n-grams of one to three characters that are in
a profile, in the package's order, not as strings but as places in a column of symbols. The one decision: only places
are kept, as a few hundred of thousands of n-grams are ever drawn; their rows are looked up then.

Facts from langdetect 1.0.9, ``detector.py`` (`append`, `cleaning_text`, `_extract_ngrams`) and ``utils/ngram.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I32, I64, U32, Bools
from corpusforge.clean.langdetect_profiles import EDGE, Profiles
from corpusforge.text import text_bytes

MAX_CHARACTERS = 10_000
"""Characters looked at, counted behind the removal of addresses (``detector.py``, max_text_length)."""
BLOCK_CHARACTERS = 1 << 16
"""Characters worked on at once: about 40 bytes each, so that a block stays in a core's cache."""

_HEAD, _MARGIN = 16_384, 3_000
# Of a longer text with addresses only the head is searched, if enough of it stays. A cut can change what is found only
# where a match reaches it: an URL is at most 2,084 characters, an address 575, a letter with a mark two.

_MARKS = "\u0300\u0301\u0303\u0309\u0323"  # those of Vietnamese letters (messages.properties, DMARK_CLASS)
_BEFORE_AT = re.compile("[-_.0-9A-Za-z]{1,64}")
_BEHIND_AT = re.compile("[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}")


class NGrams(NamedTuple):
    """N-grams of documents. ``symbols``: all documents, an `EDGE` before each. ``places``: four times the place of an
    n-gram's last symbol, plus its length less one; document i owns ``places[offsets[i]:offsets[i + 1]]``."""

    symbols: npt.NDArray[np.uint16]
    places: I32
    offsets: I64

    def rows(self, chosen: I64, table: Profiles) -> I32:
        """Rows of probabilities of some of the n-grams."""
        places = self.places[chosen].astype(np.intp)
        last, longer = places >> 2, places & 3
        final = self.symbols[last].astype(np.intp)
        before = self.symbols[last - 1].astype(np.intp)
        pair = self.symbols[last - 2] * np.intp(table.size) + before
        start = np.where(longer == 2, table.pairs[pair] >> 1, np.where(longer == 1, table.starts[before], table.root))
        return np.asarray(table.rows[start + final])


def prepare(texts: pa.StringArray) -> list[str]:
    """Every text without addresses, with Vietnamese letters composed, and cut."""
    prepared: list[str] = pc.utf8_slice_codeunits(texts, 0, MAX_CHARACTERS).to_pylist()
    odd = pc.or_(pc.match_substring(texts, "http"), pc.match_substring(texts, "@"))
    if (text_bytes(texts)[0] == 0xCC).any():  # the first byte of all marks
        odd = pc.or_(odd, pc.match_substring_regex(texts, f"[{_MARKS}]"))
    # A Python loop with a reason: few texts hold an address or a mark, and the patterns are Python's.
    chosen = np.flatnonzero(odd.to_numpy(zero_copy_only=False))
    for number, text in zip(chosen.tolist(), texts.take(pa.array(chosen)).to_pylist(), strict=True):
        prepared[number] = _prepare_odd(text)
    return prepared


def _prepare_odd(text: str) -> str:
    done = _without_addresses(text[:_HEAD])
    if len(text) > _HEAD and len(done) < MAX_CHARACTERS + _MARGIN:
        done = _without_addresses(text)
    return done[:MAX_CHARACTERS]


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
    """`Detector.MAIL_RE.sub`, looked for from every "@" and not from every letter."""
    pieces: list[str] = []
    done, at = 0, text.find("@")
    while at >= 0:
        name = _BEFORE_AT.match(text[max(done, at - 64) : at][::-1])
        host = _BEHIND_AT.match(text, at + 1)
        if name and host:
            pieces += [text[done : at - name.end()], " "]
            done = host.end()
        at = text.find("@", max(done, at + 1))
    return "".join([*pieces, text[done:]])


def find_ngrams(texts: list[str], table: Profiles) -> NGrams:
    """The n-grams of prepared texts."""
    symbols: list[npt.NDArray[np.uint16]] = []
    places: list[I32] = []
    bounds: list[I64] = [np.zeros(1, np.int64)]
    length = total = 0
    for block in _blocks(texts):
        found = _symbols_of(block, table)
        flags = _known(found.symbols, table)
        ends = np.append(found.edges[1:], len(found.symbols)) * 4
        inside = np.flatnonzero(flags)
        bounds.append(total + np.searchsorted(inside, ends))
        places.append((inside + length * 4).astype(np.int32))
        symbols.append(found.symbols.astype(np.uint16))
        length, total = length + len(found.symbols), total + len(inside)
    if not symbols:
        return NGrams(np.zeros(0, np.uint16), np.zeros(0, np.int32), bounds[0])
    return NGrams(np.concatenate(symbols), np.concatenate(places), np.concatenate(bounds))


def _blocks(texts: list[str]) -> Iterator[list[str]]:
    """Documents of about so many characters together."""
    sizes = np.cumsum([len(text) + 1 for text in texts])
    first = 0
    while first < len(texts):
        done = int(sizes[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(sizes, done + BLOCK_CHARACTERS, "right")))
        yield texts[first:last]
        first = last


class _Symbols(NamedTuple):
    """Symbols of a block of documents; ``edges``: where each document's `EDGE` stands."""

    symbols: npt.NDArray[np.intp]
    edges: I64


def _symbols_of(texts: list[str], table: Profiles) -> _Symbols:
    # The character before every document only makes room for its edge.
    codes = np.frombuffer((" " + " ".join(texts)).encode("utf-32-le", "surrogatepass"), np.uint32)
    edges = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    high = np.flatnonzero(codes >= 0x300)
    if len(high):
        codes, edges = _without_latin(codes, high, edges)
    symbols = np.take(table.symbols, codes, mode="clip")
    symbols[edges] = EDGE
    return _Symbols(symbols, edges)


def _without_latin(codes: U32, high: I64, edges: I64) -> tuple[U32, I64]:
    """Take "A" to "z" out of documents that have more than twice as many characters from U+0300 on."""
    ends = np.append(edges[1:], len(codes))
    latin = codes - np.uint32(0x41) <= 0x39
    places = np.flatnonzero(latin)
    foreign = np.diff(np.searchsorted(high, ends), prepend=0)
    drop = np.diff(np.searchsorted(places, ends), prepend=0) * 2 < foreign
    if not drop.any():
        return codes, edges
    stays = ~(latin & np.repeat(drop, ends - edges))
    return codes[stays], (np.cumsum(stays) - 1)[edges]


def _known(symbols: npt.NDArray[np.intp], table: Profiles) -> Bools:
    """Four flags a symbol: whether the n-grams of length 1, 2 and 3 that end with it count, and one unused.

    None counts where it and the symbol before are upper case, and no longer ones behind two spaces.
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
