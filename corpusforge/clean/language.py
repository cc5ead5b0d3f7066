"""The step that keeps pages in one language.

Comes in: a batch of DOCUMENTS. Goes out: a verdict; what stays has the language in its column ``language``. C4 3.1.0
asks for the best guess of langdetect with seed 0 to be English with probability 0.99 or more (tensorflow-datasets
4.9.10, ``text/c4_utils.py``, `detect_english`); no answer drops the page. What guesses is in `detectors`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import errors
from corpusforge.clean.detectors import guess_languages, languages_of, libraries_of
from corpusforge.clean.step import Verdict, page_verdict


def check_language(language: str, detector: str) -> None:
    """Raises `errors.RecipeInvalid` for a language the detector never answers: every page would be dropped."""
    known = languages_of(detector)
    if language not in known:
        raise errors.RecipeInvalid("clean.language", f"{detector} knows no '{language}'", f"known: {', '.join(known)}")


@dataclass(frozen=True)
class LanguageStep:
    """Keeps pages in one language and says so in their column ``language``.

    ``detector``: one of `detectors.DETECTORS`. ``min_probability`` binds answers of langdetect only.
    """

    language: str
    detector: str = "langdetect"
    min_probability: float = 0.99

    @property
    def name(self) -> str:
        """ "language"."""
        return "language"

    def check(self) -> None:
        """Raises `errors.RecipeInvalid` for a language that the detector never answers."""
        check_language(self.language, self.detector)

    def resources(self) -> dict[str, Any]:
        """The library that decides."""
        return {"detector": libraries_of(self.detector)}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Guess the language of every text."""
        guesses = guess_languages(documents["text"], self.detector, self.language)
        other = ~guesses.are(self.language, self.min_probability)
        details = {n: guesses.detail(n) for n in np.flatnonzero(other).tolist()}
        verdict = page_verdict(documents, "page:language", other, details)
        return replace(verdict, language=pa.array([self.language] * documents.num_rows, pa.string()))
