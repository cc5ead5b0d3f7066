"""Which language a page is in: langdetect (exact C4), or resiliparse's detector, about a hundred times faster.

Comes in: a column of texts. Goes out: one `Guess` a text. C4 3.1.0 asks for the best guess of langdetect with seed 0
to be English with probability 0.99 or more (tensorflow-datasets 4.9.10, ``text/c4_utils.py``, ``detect_english``).

Every text has a detector of its own, seeded anew, and the profiles are loaded in sorted order (the library takes the
order of the directory), so a guess depends on the text alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from corpusforge import errors
from corpusforge.clean.step import Verdict, page_verdict

SEED = 0


class Guess(NamedTuple):
    """``language``: as the detector names it, null: no answer. ``score``: langdetect's probability, or resiliparse's
    rank (lower is surer)."""

    language: str | None
    score: float

    @property
    def detail(self) -> str:
        """For the reject: ``"nl 0.87"``, or with a rank ``"nl 873"``."""
        score = f"{self.score:.2f}" if self.score <= 1 else f"{self.score:.0f}"
        return f"{self.language} {score}" if self.language else "no answer"

    @property
    def code(self) -> str | None:
        """ISO 639-1 without a region: "zh-cn" is "zh"."""
        return self.language.split("-")[0] if self.language else None


def guess_languages(texts: pa.StringArray, detector: str) -> list[Guess]:
    """The best guess for every text.

    A Python loop with a reason: both libraries take one text at a time, and a text is kilobytes.
    """
    guess = _guess_langdetect if detector == "langdetect" else _guess_fast
    return [guess(text) for text in texts.to_pylist()]


def is_language(guess: Guess, wanted: str, detector: str, min_probability: float) -> bool:
    """Whether a page counts as being in a language; the probability binds langdetect only."""
    sure = detector != "langdetect" or guess.score >= min_probability
    return sure and wanted in (guess.language, guess.code)


def languages_of(detector: str) -> list[str]:
    """Languages a detector can answer, sorted; those with a region also without."""
    if detector == "langdetect":
        names = set(_factory().get_lang_list())
    else:
        from resiliparse.parse.lang import supported_langs

        names = set(supported_langs())
    return sorted(names | {name.split("-")[0] for name in names})


def check_language(language: str, detector: str) -> None:
    """Raises `errors.RecipeInvalid` for a language the detector never answers: every page would be dropped."""
    known = languages_of(detector)
    if language not in known:
        raise errors.RecipeInvalid("clean.language", f"{detector} knows no '{language}'", f"known: {', '.join(known)}")


@cache
def _factory() -> Any:
    import langdetect

    folder = Path(langdetect.PROFILES_DIRECTORY)
    profiles = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    factory = langdetect.DetectorFactory()
    factory.load_json_profile([path.read_text("utf-8") for path in profiles])
    factory.set_seed(SEED)
    return factory


def _guess_langdetect(text: str) -> Guess:
    from langdetect.lang_detect_exception import LangDetectException

    detector = _factory().create()
    try:
        detector.append(text)
        best = detector.get_probabilities()
    except LangDetectException:
        return Guess(None, 0.0)
    return Guess(best[0].lang, best[0].prob) if best else Guess(None, 0.0)


def _guess_fast(text: str) -> Guess:
    from resiliparse.parse.lang import detect_fast

    language, rank = detect_fast(text)
    return Guess(None, 0.0) if language == "unknown" else Guess(language, float(rank))


@dataclass(frozen=True)
class LanguageStep:
    """Keeps pages in one language and says so in their column ``language``."""

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
        library = "langdetect" if self.detector == "langdetect" else "resiliparse"
        return {"detector": f"{library} {version(library)}"}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Guess the language of every text."""
        guesses = guess_languages(documents["text"], self.detector)
        other = [not is_language(g, self.language, self.detector, self.min_probability) for g in guesses]
        details = {n: guess.detail for n, guess in enumerate(guesses) if other[n]}
        verdict = page_verdict(documents, "page:language", np.array(other, bool), details)
        return replace(verdict, language=pa.array([self.language] * len(guesses), pa.string()))
