"""Drop pages that contain a bad word of their language.

As in tensorflow-datasets 4.9.10, ``text/c4_utils.py``, ``get_badwords_filter_fn``: an entry counts in the ``str.lower``
of a text, flanked by non-word characters or the edge of the text; in languages without spaces it counts anywhere.

One RE2 expression over the column finds all suspects and perhaps more; Python's own expression decides about those.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.bundled import cache_folder
from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.fetch import LISTS
from corpusforge.clean.step import FieldsOnly, Verdict, page_verdict
from corpusforge.clean.urls import is_drawn, normalize_urls
from corpusforge.text import escape, refusal_of

LONGEST = 1000
"""Most characters of an entry; the longest of LDNOOBW's 28 lists has 32."""


class Badwords:
    """The list of one language. ``edges``: entries must be flanked by non-word characters."""

    def __init__(self, entries: list[str], *, edges: bool) -> None:
        self.entries, self.edges = sorted(set(entries)), edges

    def find(self, texts: pa.StringArray) -> list[str | None]:
        """The first entry in each text, or None."""
        matches: list[str | None] = [None] * len(texts)
        if not self.entries:
            return matches
        # The lower case of these two letters depends on their context.
        inexact = np.asarray(pc.match_substring_regex(texts, "[İΣ]"), bool)
        suspects = np.flatnonzero(inexact | np.asarray(pc.match_substring_regex(texts, self._wide), bool))
        chosen = texts.take(pa.array(suspects))
        # Arrow searches for positions byte by byte and misses capitals beyond ASCII; `_decide` finds them.
        places = pc.find_substring_regex(chosen, self._wide).to_pylist()
        # A Python loop with a reason: only pages that hold an entry between ASCII non-word characters.
        for number, place, text in zip(suspects.tolist(), places, chosen.to_pylist(), strict=True):
            near = None if inexact[number] or place < 0 else self._at(text, place)
            matches[number] = near or self._decide(text.lower())
        return matches

    def _at(self, text: str, place: int) -> str | None:
        """The first entry (in sorted order) at the byte where Arrow found a match, if Python's expression agrees."""
        data = text.encode()
        window = data[place : place + self._reach].decode("utf-8", "ignore").lower()
        if not self.edges:
            return next((e for e in self.entries if window.startswith(e)), None)
        # Except at the beginning of a text the first character is the one before the entry.
        head = r"\W" if place else r"(?:\W|^)"
        near = (e for e in self.entries if e in window)
        return next((e for e in near if re.match(rf"{head}{re.escape(e)}(?:\W|$)", window)), None)

    def _decide(self, lowered: str) -> str | None:
        """The first entry (in sorted order) anywhere, where `_at` does not decide."""
        inside = [entry for entry in self.entries if entry in lowered]
        if not self.edges:
            return inside[0] if inside else None
        return next((e for e in inside if re.search(rf"(?:\W|^){re.escape(e)}(?:\W|$)", lowered)), None)

    @cached_property
    def _reach(self) -> int:
        """Bytes enough for any entry, also in capitals, with a character on both sides and one more."""
        return max(4 * len(entry) for entry in self.entries) + 12

    @cached_property
    def _wide(self) -> str:
        """For RE2: case folded (which covers str.lower except for İ), flanked by ASCII non-word characters."""
        entries = "|".join(escape(entry) for entry in self.entries)
        return f"(?i)(?:^|[^0-9a-z_])(?:{entries})(?:[^0-9a-z_]|$)" if self.edges else f"(?i){entries}"

    def check(self, where: str) -> None:
        """Raises `errors.InputUnreadable` for a list that is too large for an expression."""
        if refusal_of(self._wide):
            size = sum(map(len, self.entries))
            what = f"{len(self.entries)} entries of {size} characters are more than RE2 takes as one expression"
            raise errors.InputUnreadable(where, what, "leave some out")

    def digest(self) -> str:
        """SHA-256 of the entries, for the digest of a stage."""
        return hashlib.sha256("\n".join([str(self.edges), *self.entries]).encode()).hexdigest()


def load_badwords(setting: str, language: str, rules: Rules, *, required: bool) -> Badwords | None:
    """The list of a language from the cache ("fetched") or a folder; None if "off" or if the language has none.

    ``required``: the run is about this language. Raises `errors.ResourceMissing` if nothing was fetched, or if a folder
    lacks a list that exists for a required language, `errors.InputUnreadable` for a file that is not a list.
    """
    is_code = re.fullmatch("[A-Za-z0-9-]+", language)  # it comes from documents and becomes the name of a file
    if setting == "off" or not is_code or (setting == "fetched" and language not in LISTS):
        return None
    folder = cache_folder("badwords") if setting == "fetched" else Path(setting)
    path = folder / language
    if not path.is_file():
        if folder.is_dir() and not (required and language in LISTS):
            return None
        raise errors.ResourceMissing(
            str(path),
            f"no bad-word list for '{language}'",
            "run 'corpusforge rules fetch badwords', name a folder of lists, or switch it off with --badwords off "
            "(in Python: badwords='off')",
        )
    removed = {entry for key, _, entry in (r.partition(":") for r in rules.badwords_removed) if key == language}
    entries = set(_read(path)) - removed - {""}
    words = Badwords(sorted(entries), edges=language not in rules.badword_substring_languages)
    words.check(str(path))
    return words


def _read(path: Path) -> list[str]:
    mend = "one word per line, in UTF-8"
    try:
        lines = [line.strip() for line in path.read_text("utf-8").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InputUnreadable(str(path), f"is not a list of words ({error})", mend) from None
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST:
            what = f"is not a word: {len(line)} characters, the limit is {LONGEST}"
            raise errors.InputUnreadable(f"{path}, line {number}", what, mend)
    return lines


@dataclass(frozen=True)
class BadwordsStep(FieldsOnly):
    """Drops pages that hold a bad word of their language.

    ``lists``: "fetched" or a folder; ``language``: of the run, or "" for that of each page. ``rules``: which entries
    are removed, which languages need no word boundaries, and the share of pages with a bad word to drop. The share is
    drawn by the MD5 of the normalized URL as in tensorflow-datasets 4.9.10 (``text/c4_utils.py``,
    ``_badwords_predicate``), of pages without a URL by that of their id.
    """

    lists: str
    language: str
    rules: Rules

    @property
    def name(self) -> str:
        """ "badwords"."""
        return "badwords"

    def check(self) -> None:
        """Raises `errors.ResourceMissing` if the list of the run's language is needed and missing.

        Where each page has its own language every list is read, so that a broken one does not stop the run later.
        """
        if self.language:
            self._list_of(self.language)
            return
        folder = cache_folder("badwords") if self.lists == "fetched" else Path(self.lists)
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        for name in filter(re.compile("[a-z]{2,3}").fullmatch, names):
            self._list_of(name)

    def resources(self) -> dict[str, Any]:
        """The list, the entries removed from it, the share."""
        rules = self.rules
        resources: dict[str, Any] = {"fraction": rules.badword_fraction, "removed": list(rules.badwords_removed)}
        resources["substring_languages"] = list(rules.badword_substring_languages)
        if self.language:
            words = self._list_of(self.language)
            resources["badwords"] = words.digest() if words else "off"
        return resources

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Drop pages with a word from the list of their language."""
        codes = pc.utf8_lower(pc.list_element(pc.split_pattern(pc.fill_null(documents["language"], ""), "-"), 0))
        details: dict[int, str] = {}
        for language in sorted(set(codes.unique().to_pylist()) - {""}):
            words = self._list_of(language)
            if words:
                rows = np.flatnonzero(np.asarray(pc.equal(codes, language), bool))
                matches = words.find(documents["text"].take(pa.array(rows)))
                details |= {int(n): entry for n, entry in zip(rows, matches, strict=True) if entry is not None}
        numbers = np.array(sorted(details), np.int64)
        if self.rules.badword_fraction < 1 and len(numbers):
            matching = documents.take(pa.array(numbers))
            keys = pc.coalesce(normalize_urls(matching["url"]), matching["id"])
            numbers = numbers[is_drawn(keys, self.rules.badword_fraction)]
        dropped = np.zeros(documents.num_rows, bool)
        dropped[numbers] = True
        return page_verdict(documents, "page:badword", dropped, {n: details[n] for n in numbers.tolist()})

    def _list_of(self, language: str) -> Badwords | None:
        if language not in self._lists:
            required = language == self.language
            self._lists[language] = load_badwords(self.lists, language, self.rules, required=required)
        return self._lists[language]

    @cached_property
    def _lists(self) -> dict[str, Badwords | None]:
        return {}
