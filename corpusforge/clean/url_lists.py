"""The step `urls`: pages from domains that are allowed, and not from those that are blocked.

Comes in: documents with their URLs. Goes out: a verdict, ``page:url-not-allowed`` or ``page:url-blocked`` with the name
or substring that decided. The one decision: a page without a URL is on no list. So a list of allowed domains drops it
and a list of blocked ones keeps it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors
from corpusforge.clean.domains import Domains, load_domains, read_entries
from corpusforge.clean.expressions import refusal_of
from corpusforge.clean.step import Verdict

REASONS = ("kept", "page:url-not-allowed", "page:url-blocked")
NOT_ALLOWED, BLOCKED = 1, 2

_GROUP = 20_000
"""Characters of one expression: RE2 refuses expressions beyond 8 MiB compiled (``max_mem`` in re2/re2.h)."""

_MOST_SUBSTRINGS = 10_000
"""Each is looked for in every URL; lists beyond this are lists of domains."""

_LONGEST = 2000
"""Characters of a substring: no URL is longer in practice (the Sitemaps protocol 0.9 has 2,048)."""


@dataclass(frozen=True)
class UrlLists:
    """The lists of the section [urls]: words, or ``@path`` of a file with one entry a line. Empty: no such rule.

    ``allow``, ``block``: domains with their sub-domains; ``block_substrings``: parts of URLs, in any case of letters.
    """

    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    block_substrings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What rejects call this step."""
        return "urls"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.allow or self.block or self.block_substrings)

    def check(self) -> None:
        """Read the lists. Raises `errors.ResourceMissing`, `errors.RecipeInvalid`."""
        if self.allow and not len(self._allowed):
            what = "the list of allowed domains is empty: no page would stay"
            raise errors.RecipeInvalid("urls.allow", what, "name domains, or leave it out")
        _ = self._blocked
        for group, expression in self._expressions:
            if wrong := refusal_of(expression):
                what = f"{len(group)} entries from '{group[0][:40]}' on: {wrong}"
                raise errors.RecipeInvalid("urls.block_substrings", what, "shorten or leave out entries")

    def resources(self) -> dict[str, Any]:
        """Digests of the lists' entries, wherever they were written down."""
        lists = {"allow": self.allow, "block": self.block, "block_substrings": self.block_substrings}
        return {key: digest_of_entries(entries, f"urls.{key}") for key, entries in lists.items() if entries}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Decide about a batch of DOCUMENTS by its URLs."""
        urls = documents["url"]
        codes = np.zeros(documents.num_rows, np.int8)
        details: dict[int, str] = {}
        if self.block:
            self._drop(codes, details, self._blocked.covering(urls), BLOCKED)
        if self.block_substrings:
            for group, expression in self._expressions:
                self._drop(codes, details, _found(urls, group, expression), BLOCKED)
        if self.allow:
            allowed = np.asarray(self._allowed.covering(urls).is_valid(), bool)
            codes[~allowed] = NOT_ALLOWED
            # Loops over dropped pages only: their details are what people read.
            for row in np.flatnonzero(~allowed).tolist():
                details[row] = _shown(urls[row].as_py())
        return Verdict(REASONS, codes, documents["text"], details)

    def _drop(self, codes: Any, details: dict[int, str], found: pa.StringArray, code: int) -> None:
        for row in np.flatnonzero(np.asarray(found.is_valid(), bool) & (codes == 0)).tolist():
            codes[row], details[row] = code, found[row].as_py()

    @cached_property
    def _allowed(self) -> Domains:
        return load_domains(self.allow, "urls.allow")

    @cached_property
    def _blocked(self) -> Domains:
        return load_domains(self.block, "urls.block")

    @cached_property
    def _expressions(self) -> list[tuple[list[str], str]]:
        entries = pc.unique(read_entries(self.block_substrings, "urls.block_substrings")).to_pylist()
        if len(entries) > _MOST_SUBSTRINGS:
            what = f"{len(entries)} substrings, where {_MOST_SUBSTRINGS} are the most"
            raise errors.RecipeInvalid("urls.block_substrings", what, "put names of domains into urls.block")
        if long := next((entry for entry in entries if len(entry) > _LONGEST), None):
            what = f"'{long[:40]}...' has {len(long)} characters, where {_LONGEST} are the most"
            raise errors.RecipeInvalid("urls.block_substrings", what, "give parts of URLs")
        return [(group, f"(?i){'|'.join(_escaped(entry) for entry in group)}") for group in _groups(entries)]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if not key.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _groups(entries: list[str]) -> list[list[str]]:
    """Entries one behind the other, in runs of up to `_GROUP` characters."""
    ends = np.cumsum([len(entry) for entry in entries])
    runs = ends // _GROUP
    bounds = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(entries)]
    return [entries[a:b] for a, b in itertools.pairwise(bounds) if b > a]


def _found(urls: pa.Array, group: Sequence[str], expression: str) -> pa.StringArray:
    """The first substring of the group that each URL holds, null where there is none."""
    hits = np.flatnonzero(np.asarray(pc.fill_null(pc.match_substring_regex(urls, expression), False), bool))
    found: list[str | None] = [None] * len(urls)
    for row in hits.tolist():  # a loop over dropped pages only
        url = urls[row].as_py().casefold()
        found[row] = next((entry for entry in group if entry.casefold() in url), group[0])
    return pa.array(found, pa.string())


def _shown(url: str | None) -> str:
    return "no URL" if not url else url[:200]


def _escaped(text: str) -> str:
    """Text as RE2 takes it literally."""
    return "".join(f"\\x{{{ord(c):x}}}" if c.isascii() and not c.isalnum() else c for c in text)


def digest_of_entries(entries: Sequence[str], key: str) -> str:
    """xxh3-128 of a list's distinct entries, in the order of their letters."""
    lines = sorted(set(read_entries(entries, key).to_pylist()))
    return xxhash.xxh3_128_hexdigest("\n".join(lines).encode())
