"""Whether short pages hold enough sentences, counted as NLTK's Punkt does (exact C4) or by the built-in splitter.

Every kept line counts as at least one sentence, so only pages with fewer kept lines than sentences needed are counted.
Punkt runs in Python, so two bounds settle most pages before it: a page cannot have more sentences than lines plus end
marks that something follows; and Punkt always ends a sentence at a plain word of two letters or more, a full stop and a
space before a letter or digit, unless the word is an abbreviation or begins a collocation in its parameters.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import zipfile
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import errors
from corpusforge.arrays import I64, Bools
from corpusforge.sentences import punkt
from corpusforge.sentences.splitter import sentence_spans


class SentenceCounter:
    """Finds pages with enough sentences. ``method``: "punkt" or "builtin". Parameters are loaded when first used."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __getstate__(self) -> dict[str, Any]:
        return {"method": self.method}

    def check(self) -> None:
        """Raises `errors.ResourceMissing` if Punkt's parameters are not on this machine."""
        if self.method == "punkt":
            _ = self._punkt

    def identity(self) -> str:
        """What the counts depend on: the splitter, its version and parameters."""
        if self.method == "builtin":
            return "builtin"
        parts = (self._punkt.abbreviations, self._punkt.collocations, self._punkt.starters)
        digest = hashlib.sha256(repr([sorted(part) for part in parts]).encode()).hexdigest()
        return f"punkt {digest[:16]} nltk {punkt.VERSION}"

    def enough(self, lines: pa.StringArray, offsets: I64, needed: int) -> Bools:
        """Whether each page has ``needed`` sentences; page i owns ``lines[offsets[i]:offsets[i + 1]]``."""
        if self.method == "builtin":
            counted = sentence_spans(lines).offsets[offsets]
            return np.asarray(np.diff(counted) >= needed)
        texts = lines.to_pylist()
        # A Python loop with a reason: Punkt is Python, and few pages have too few lines.
        pages = itertools.pairwise(offsets.tolist())
        return np.array([self._page_has(texts[a:b], needed) for a, b in pages], bool)

    def _page_has(self, lines: list[str], needed: int) -> bool:
        if len(lines) + sum(len(_MAY_END.findall(line)) for line in lines) < needed:
            return False
        words = (word for line in lines for word in _SURELY_ENDS.findall(line))
        certain = (1 for word in words if word.lower() not in self._uncertain)
        if len(lines) + sum(itertools.islice(certain, needed)) >= needed:
            return True
        sentences = (1 for line in lines for _ in punkt.spans(line, self._punkt))
        return sum(itertools.islice(sentences, needed)) >= needed

    @cached_property
    def _punkt(self) -> punkt.Parameters:
        try:
            return punkt.load()
        except (LookupError, OSError, ValueError, zipfile.BadZipFile):
            raise errors.ResourceMissing(
                "sentences = punkt",
                "NLTK's English Punkt model (punkt_tab) is not on this machine",
                "set NLTK_DATA to a folder that holds tokenizers/punkt_tab, run 'corpusforge rules fetch punkt', "
                "or count with --sentences builtin (in Python: sentences='builtin')",
            ) from None

    @cached_property
    def _uncertain(self) -> frozenset[str]:
        """Words after which a full stop may not end a sentence."""
        return self._punkt.abbreviations | {first for first, _ in self._punkt.collocations}


_MAY_END = re.compile(r"[.?!](?=[^A-Za-z0-9.,/_-])")
_SURELY_ENDS = re.compile(r"(?<= )([A-Za-z]{2,})\. (?=[A-Za-z0-9])")
