"""Documents that hold text of evaluation files are dropped: a model must not have read its exams.

Comes in: a batch of DOCUMENTS and the paths of evaluation files. Goes out: a `Verdict`. The rule is that of GPT-3
(Brown et al. 2020, appendix C: 13 words in a row, lower case, without punctuation) with a length of 8 (PaLM, Chowdhery
et al. 2022, section 8) to 13. The one decision: a text shorter than that counts as a whole if it has 8 words or more;
shorter ones are counted, not used, as they are everywhere by chance.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from corpusforge import errors
from corpusforge.arrays import I64, U8, U64
from corpusforge.clean.evaluation_texts import evaluation_texts
from corpusforge.clean.ngrams import NormalWords, normal_words
from corpusforge.clean.step import Verdict, page_verdict

SHORTEST, LONGEST = 8, 13
"""Words of an n-gram: 8 in PaLM (section 8), at most 13 in GPT-3 (appendix C)."""
REASON = "page:contaminated"
_FILTER_BITS = 64  # bits of the filter for each n-gram: one place in 64 without one is looked up in vain


class Table(NamedTuple):
    """The n-grams of all evaluation files.

    ``hashes[m]``: of n-grams of m words, ascending, without repeats; ``files[m]``: number in ``names`` of the first
    file that holds each. ``filter``: bits that are set for the first eight words of every n-gram.
    """

    names: tuple[str, ...]
    hashes: dict[int, U64]
    files: dict[int, I64]
    filter: U8
    texts: int
    too_short: int

    def digest(self) -> str:
        """SHA-256 of all that decides."""
        found = hashlib.sha256("\n".join(self.names).encode())
        for length in sorted(self.hashes):
            found.update(f"\n{length} ".encode() + self.hashes[length].tobytes() + self.files[length].tobytes())
        return found.hexdigest()


class Hits(NamedTuple):
    """Where a batch holds n-grams of the table, ascending: number of the first word, words, number of the file."""

    words: I64
    lengths: I64
    files: I64


@dataclass(frozen=True)
class ContaminationStep:
    """``paths``: evaluation files and folders. ``length``: words of an n-gram. Picklable: files are read where used."""

    paths: tuple[str, ...]
    length: int = LONGEST

    @property
    def name(self) -> str:
        """What rejects say dropped a page."""
        return "contamination"

    def check(self) -> None:
        """Raises an error of `errors` where the length is none or the files hold nothing to look for."""
        if not SHORTEST <= self.length <= LONGEST:
            what, mend = f"{self.length} words", f"from {SHORTEST} to {LONGEST}"
            raise errors.RecipeInvalid("clean.contamination_ngram", what, mend)
        if not any(map(len, self._table.hashes.values())):
            what = f"no text of {SHORTEST} words or more"
            raise errors.InputMissing(", ".join(self.paths), what, "name the files that hold the texts")

    def resources(self) -> dict[str, Any]:
        """The digest of the n-grams, and what was read for them."""
        table = self._table
        counts = {"files": len(table.names), "texts": table.texts, "too_short": table.too_short}
        return {**counts, "ngrams": sum(map(len, table.hashes.values())), "digest": table.digest()}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Drop the documents that hold an n-gram."""
        words = normal_words(documents["text"])
        hits = look_up(words, self._table)
        owners = np.searchsorted(words.offsets, hits.words, "right") - 1
        dropped = np.zeros(documents.num_rows, bool)
        dropped[owners] = True
        # A Python loop with a reason: over dropped documents only, each by its first hit.
        firsts = np.flatnonzero(np.diff(owners, prepend=-1)).tolist()
        details = {int(owners[k]): self._detail(words, hits, k) for k in firsts}
        return page_verdict(documents, REASON, dropped, details)

    def _detail(self, words: NormalWords, hits: Hits, k: int) -> str:
        return f"{self._table.names[hits.files[k]]}: {words.text(int(hits.words[k]), int(hits.lengths[k]))}"

    @property
    def _table(self) -> Table:
        return build_table(self.paths, self.length)


@functools.lru_cache(maxsize=2)
def build_table(paths: tuple[str, ...], length: int) -> Table:
    """Read evaluation files. Once a process: workers are given paths, not tables."""
    names: dict[str, int] = {}
    parts: dict[int, list[tuple[U64, U64, int]]] = {}
    texts = too_short = 0
    for name, column in evaluation_texts(paths):
        number = names.setdefault(name, len(names))
        words = normal_words(column)
        counts = np.diff(words.offsets)
        texts += int((counts > 0).sum())
        too_short += int(((counts > 0) & (counts < SHORTEST)).sum())
        for size in range(SHORTEST, length + 1):
            places = _places(words.offsets, counts, size, whole=size < length)
            if len(places):
                found = words.ngrams_at(places, size), words.ngrams_at(places, SHORTEST), number
                parts.setdefault(size, []).append(found)
    hashes, files = {}, {}
    for size, found_in in sorted(parts.items()):
        together = np.concatenate([part[0] for part in found_in])
        # The first of equal ones is that of the first file.
        hashes[size], first = np.unique(together, return_index=True)
        files[size] = np.repeat([part[2] for part in found_in], [len(part[0]) for part in found_in])[first]
    heads = [part[1] for found_in in parts.values() for part in found_in]
    return Table(tuple(names), hashes, files, _filter_of(heads), texts, too_short)


def _places(offsets: I64, counts: I64, size: int, *, whole: bool) -> I64:
    """First words of the n-grams of ``size`` words: of texts of just that length (``whole``), or of all long enough."""
    if whole:
        return np.asarray(offsets[:-1][counts == size])
    many = np.maximum(counts - size + 1, 0)
    return np.asarray(np.arange(many.sum()) + np.repeat(offsets[:-1] - (np.cumsum(many) - many), many))


def _filter_of(heads: list[U64]) -> U8:
    """A bit set for each head; the number of bits is a power of two."""
    power = max(16, (_FILTER_BITS * sum(map(len, heads))).bit_length())
    marks = np.zeros(1 << (power - 3), np.uint8)
    for head in heads:
        bit = head >> np.uint64(64 - power)
        np.bitwise_or.at(marks, bit >> np.uint64(3), np.uint8(1) << (bit & np.uint64(7)).astype(np.uint8))
    return marks


def look_up(words: NormalWords, table: Table) -> Hits:
    """Every n-gram of the table in a batch; of several that begin at one word the shortest."""
    heads = words.ngrams(SHORTEST)
    bit = heads >> np.uint64(65 - (8 * len(table.filter)).bit_length())
    marked = np.flatnonzero(table.filter[bit >> np.uint64(3)] >> (bit & np.uint64(7)).astype(np.uint8) & 1)
    left = words.offsets[np.searchsorted(words.offsets, marked, "right")] - marked
    lengths, files = np.zeros(len(marked), np.int64), np.zeros(len(marked), np.int64)
    for size, known in table.hashes.items():
        open_ = np.flatnonzero((left >= size) & (lengths == 0))
        asked = words.ngrams_at(marked[open_], size)
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        same = known[at] == asked
        lengths[open_[same]], files[open_[same]] = size, table.files[size][at[same]]
    hit = lengths > 0
    return Hits(marked[hit], lengths[hit], files[hit])
