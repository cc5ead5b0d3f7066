"""Which pages hold a bad word.

Comes in: texts of one language and a list of entries. Goes out: the entry found in each, or null. As in
tensorflow-datasets 4.9.10, ``text/c4_utils.py``, ``get_badwords_filter_fn``: on ``str.lower`` of the text, an entry
flanked by non-word characters or the edge of the text; plain substrings in languages without spaces.

One RE2 alternation over the column finds the suspects, never too few; Python's own expression decides about those.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.clean.fetch import LISTS, cache_folder
from corpusforge.clean.rules import Rules


class Badwords:
    """The list of one language. ``edges``: entries must be flanked by non-word characters."""

    def __init__(self, entries: list[str], *, edges: bool) -> None:
        self.entries, self.edges = sorted(set(entries)), edges

    def find(self, texts: pa.StringArray) -> list[str | None]:
        """The first entry (in sorted order) that each text holds, or None."""
        found: list[str | None] = [None] * len(texts)
        if not self.entries:
            return found
        suspects = pc.or_(pc.match_substring_regex(texts, self._wide), pc.match_substring(texts, "İ"))
        # A Python loop with a reason: only pages that hold an entry next to ASCII non-word characters come here.
        for number in np.flatnonzero(np.asarray(suspects, bool)).tolist():
            found[number] = self._decide(texts[number].as_py().lower())
        return found

    def _decide(self, lowered: str) -> str | None:
        inside = [entry for entry in self.entries if entry in lowered]
        if not self.edges:
            return inside[0] if inside else None
        return next((e for e in inside if re.search(rf"(?:\W|^){re.escape(e)}(?:\W|$)", lowered)), None)

    @cached_property
    def _wide(self) -> str:
        """RE2: case folded (which takes in all that str.lower does but İ), flanks by ASCII word characters only."""
        entries = "|".join(_escaped(entry) for entry in self.entries)
        return f"(?i)(?:^|[^0-9a-z_])(?:{entries})(?:[^0-9a-z_]|$)" if self.edges else f"(?i){entries}"

    def digest(self) -> str:
        """SHA-256 of the entries, for the digest of a stage."""
        return hashlib.sha256("\n".join([str(self.edges), *self.entries]).encode()).hexdigest()


def _escaped(text: str) -> str:
    return "".join(f"\\x{{{ord(c):x}}}" if c.isascii() and not c.isalnum() else c for c in text)


def load_badwords(setting: str, language: str, rules: Rules, *, required: bool) -> Badwords | None:
    """The list of a language from the cache ("fetched") or a folder; null: "off", or there is none for it.

    ``required``: the run is about this language. Raises `errors.ResourceMissing` where nothing was fetched, or where
    a folder lacks a list that exists for a required language.
    """
    if setting == "off" or (setting == "fetched" and language not in LISTS):
        return None
    folder = cache_folder("badwords") if setting == "fetched" else Path(setting)
    path = folder / language
    if not path.is_file():
        if folder.is_dir() and not (required and language in LISTS):
            return None
        raise errors.ResourceMissing(
            str(path),
            f"no bad-word list for '{language}'",
            "run 'corpusforge rules fetch badwords', name a folder of lists, or switch it off with '--badwords off'",
        )
    removed = {entry for key, _, entry in (r.partition(":") for r in rules.badwords_removed) if key == language}
    entries = {line.strip() for line in path.read_text("utf-8").split("\n")} - removed - {""}
    return Badwords(sorted(entries), edges=language not in rules.badword_substring_languages)
