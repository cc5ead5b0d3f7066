"""Whether short pages hold enough sentences: NLTK's Punkt (exact C4), or the built-in splitter.

Comes in: a column of kept lines grouped by page. Goes out: whether each page has enough.
Every kept line counts at least one sentence, so only pages with fewer kept lines than sentences needed come here.

Punkt walks in Python, so two bounds settle most pages without it. A page cannot have more sentences than lines plus
end marks that something follows; and Punkt always ends a sentence at a plain word of two letters or more, a full stop
and a space before a letter or digit, unless the word is an abbreviation or begins a collocation in its parameters
(NLTK ``nltk/tokenize/punkt.py``: `_first_pass_annotation`, `_second_pass_annotation`).
"""

from __future__ import annotations

import hashlib
import itertools
import re
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import errors
from corpusforge.arrays import I64, Bools
from corpusforge.text import sentence_spans


class SentenceCounter:
    """Tells pages with enough sentences. ``method``: "punkt" or "builtin". A model is loaded when first used."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __getstate__(self) -> dict[str, Any]:
        return {"method": self.method}

    def check(self) -> None:
        """Raises `errors.ResourceMissing` where Punkt's parameters are not on this machine."""
        if self.method == "punkt":
            _ = self._punkt

    def identity(self) -> str:
        """What the counts depend on: the splitter, its version and parameters."""
        if self.method == "builtin":
            return "builtin"
        from importlib.metadata import version

        parts = (self._punkt._params.abbrev_types, self._punkt._params.collocations, self._punkt._params.sent_starters)
        digest = hashlib.sha256(repr([sorted(part) for part in parts]).encode()).hexdigest()
        return f"punkt {digest[:16]} nltk {version('nltk')}"

    def enough(self, lines: pa.StringArray, offsets: I64, needed: int) -> Bools:
        """Whether each page has ``needed`` sentences; page i owns ``lines[offsets[i]:offsets[i + 1]]``."""
        if self.method == "builtin":
            counted = sentence_spans(lines).offsets[offsets]
            return np.asarray(np.diff(counted) >= needed)
        texts = lines.to_pylist()
        # A Python loop with a reason: Punkt's decisions are Python, and few pages have so few lines.
        pages = itertools.pairwise(offsets.tolist())
        return np.array([self._page_has(texts[a:b], needed) for a, b in pages], bool)

    def _page_has(self, lines: list[str], needed: int) -> bool:
        if len(lines) + sum(len(_MAY_END.findall(line)) for line in lines) < needed:
            return False
        words = (word for line in lines for word in _SURELY_ENDS.findall(line))
        sure = (1 for word in words if word.lower() not in self._stops)
        if len(lines) + sum(itertools.islice(sure, needed)) >= needed:
            return True
        found = (1 for line in lines for _ in self._punkt.span_tokenize(line))
        return sum(itertools.islice(found, needed)) >= needed

    @cached_property
    def _punkt(self) -> Any:
        return _load_punkt()

    @cached_property
    def _stops(self) -> frozenset[str]:
        """Words after which a full stop may end no sentence."""
        parameters = self._punkt._params
        return frozenset(parameters.abbrev_types) | {first for first, _ in parameters.collocations}


_MAY_END = re.compile(r"[.?!](?=[^A-Za-z0-9.,/_-])")
_SURELY_ENDS = re.compile(r"(?<= )([A-Za-z]{2,})\. (?=[A-Za-z0-9])")


@cache
def _load_punkt() -> Any:
    from nltk.data import path as folders
    from nltk.tokenize.punkt import PunktTokenizer

    from corpusforge.clean.fetch import cache_folder

    fetched = str(cache_folder("nltk_data"))
    if fetched not in folders and Path(fetched).is_dir():
        folders.append(fetched)
    try:
        return PunktTokenizer("english")
    except (LookupError, OSError, ValueError):
        raise errors.ResourceMissing(
            "sentences = punkt",
            "NLTK's English Punkt model (punkt_tab) is not on this machine",
            "set NLTK_DATA to a folder that holds tokenizers/punkt_tab, run 'corpusforge rules fetch punkt', "
            "or count with --sentences builtin (clean.sentences)",
        ) from None
