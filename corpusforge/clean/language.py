"""Keep pages in one language: the step, and the three detectors it can use.

C4 3.1.0 requires the best guess of langdetect with seed 0 to be English with probability 0.99 or more
(tensorflow-datasets 4.9.10, ``text/c4_utils.py``, `detect_english`); a page without an answer is dropped. A guess
depends on the text alone. ``langdetect`` gives the answers of the package langdetect 1.0.9 with seed 0 and a new
detector for every text, computed by columns (`langdetect`); ``fast`` gives those of resiliparse's ``detect_fast``;
``cascade`` runs resiliparse first and langdetect on every page where the result is not clear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import F64, Bools
from corpusforge.clean import langdetect_profiles
from corpusforge.clean.langdetect import probabilities
from corpusforge.clean.langdetect_profiles import MAX_CHARACTERS, find_ngrams, prepare
from corpusforge.clean.step import Verdict, page_verdict

DETECTORS = ("langdetect", "fast", "cascade")
SEED = 0
"""tensorflow-datasets 4.9.10, ``text/c4_utils.py``, `detect_english`: ``DetectorFactory.seed = 0``."""


def check_language(language: str, detector: str) -> None:
    """Raises `errors.RecipeInvalid` for a language that the detector never answers: every page would be dropped."""
    known = languages_of(detector)
    if language not in known:
        raise errors.RecipeInvalid("clean.language", f"{detector} knows no '{language}'", f"known: {', '.join(known)}")


@dataclass(frozen=True)
class LanguageStep:
    """Keeps pages in one language and writes it into their column ``language``.

    ``detector``: one of `DETECTORS`. ``min_probability`` applies to answers of langdetect only.
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
        """Drop pages in other languages."""
        guesses = guess_languages(documents["text"], self.detector, self.language)
        other = ~guesses.are(self.language, self.min_probability)
        details = {n: guesses.detail(n) for n in np.flatnonzero(other).tolist()}
        verdict = page_verdict(documents, "page:language", other, details)
        return replace(verdict, language=pa.array([self.language] * documents.num_rows, pa.string()))


NAMED = 0.1
"""A language is an answer only above this probability (langdetect 1.0.9, ``detector.py``, PROB_THRESHOLD)."""

GROUP_CHARACTERS = 1 << 22
"""Characters of text whose n-grams are in memory at once, about 12 bytes each. No result depends on it."""

CLEARLY_IN, CLEARLY_OUT, CLEAR_CHARACTERS = 50, 80, 150
"""The cascade trusts resiliparse where a page is long enough and the requested language leads all others by 50 ranks,
or trails the best by 80. Chosen on 58,000 parts of the texts that `benchmarks/language_vs_langdetect.py`
reads: these values decide half of them and differ from langdetect on 0.03 % of all; 40 and 60 would decide a tenth
more and differ on 0.17 %. docs/cleaning.md has the rates by kind of text."""
_NO_CUTOFF = 1 << 30  # of detect_fast: answer a language however far the text is from it


class Guesses(NamedTuple):
    """``languages``: as the detector names them, null for no answer. ``scores``: probabilities of langdetect, or ranks
    of resiliparse (lower is surer; never below 2); 0 without an answer."""

    languages: pa.StringArray
    scores: F64

    def detail(self, number: int) -> str:
        """For the reject: ``"nl 0.87"``, or with a rank ``"nl 873"``."""
        language, score = self.languages[number].as_py(), self.scores[number]
        return (
            "no answer" if language is None else f"{language} {score:.2f}" if score <= 1 else f"{language} {score:.0f}"
        )

    def are(self, wanted: str, min_probability: float) -> Bools:
        """Which texts are in a language, "zh" or with a region "zh-cn"; the probability applies to langdetect only."""
        names = [n for n in pc.unique(self.languages.drop_null()).to_pylist() if wanted in (n, n.split("-")[0])]
        named = pc.is_in(self.languages, value_set=pa.array(names, pa.string())).to_numpy(zero_copy_only=False)
        return np.asarray(named & ((self.scores > 1) | (self.scores >= min_probability)))


def guess_languages(texts: pa.StringArray, detector: str, wanted: str = "en") -> Guesses:
    """The best guess for every text. ``wanted``: the language that the cascade asks about; the others ignore it."""
    if detector == "cascade":
        return _cascade(texts, wanted)
    return _by_langdetect(texts) if detector == "langdetect" else _by_resiliparse(texts)


def languages_of(detector: str) -> list[str]:
    """Languages a detector can answer, sorted; those with a region also without."""
    from resiliparse.parse.lang import supported_langs

    names = set(langdetect_profiles.languages())
    exact, fast = names | {name.split("-")[0] for name in names}, set(supported_langs())
    return sorted({"langdetect": exact, "fast": fast, "cascade": exact & fast}[detector])


def libraries_of(detector: str) -> str:
    """The libraries that decide, with their versions."""
    used = {"langdetect": ("langdetect",), "fast": ("resiliparse",), "cascade": ("resiliparse", "langdetect")}
    return ", ".join(f"{name} {version(name)}" for name in used[detector])


def langdetect_probabilities(texts: pa.StringArray) -> F64:
    """A row for each text, a column for each language of `langdetect_profiles.profiles`; zeros where the package finds
    no usable text and raises."""
    table = langdetect_profiles.profiles()
    rows = [probabilities(find_ngrams(prepare(group), table), table, SEED) for group in _groups(texts)]
    return np.concatenate(rows) if rows else np.zeros((0, len(table.languages)))


def _groups(texts: pa.StringArray) -> Iterator[pa.StringArray]:
    sizes = np.minimum(pc.utf8_length(texts).to_numpy(zero_copy_only=False), MAX_CHARACTERS).astype(np.int64)
    group = np.cumsum(sizes) // GROUP_CHARACTERS
    cuts = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(texts)]
    for low, high in pairwise(cuts):
        if high > low:
            yield texts.slice(low, high - low)


def _by_langdetect(texts: pa.StringArray) -> Guesses:
    chances = langdetect_probabilities(texts)
    best, scores = chances.argmax(axis=1), chances.max(axis=1)
    nothing = scores <= NAMED
    names = pa.array(langdetect_profiles.profiles().languages, pa.string())
    return Guesses(names.take(pa.array(best, mask=nothing)), np.where(nothing, 0.0, scores))


def _by_resiliparse(texts: pa.StringArray) -> Guesses:
    from resiliparse.parse.lang import detect_fast

    # A Python loop with a reason: the library takes one text at a time, and a text is kilobytes.
    answers = [detect_fast(text) for text in texts.to_pylist()]
    names = [None if name == "unknown" else name for name, _ in answers]
    return Guesses(pa.array(names, pa.string()), np.array([float(rank) for _, rank in answers]))


def _cascade(texts: pa.StringArray, wanted: str) -> Guesses:
    # langdetect has two profiles of Chinese and is seldom sure of one: only pages that are not Chinese can be clear.
    single = wanted in langdetect_profiles.languages()
    # A Python loop for the same reason.
    answers = [_clear(text, wanted, single) for text in texts.to_pylist()]
    unclear = np.flatnonzero([answer is None for answer in answers])
    exact = _by_langdetect(texts.take(pa.array(unclear)))
    names, scores = [a[0] if a else None for a in answers], np.array([a[1] if a else 0.0 for a in answers])
    for number, name in zip(unclear.tolist(), exact.languages.to_pylist(), strict=True):
        names[number] = name
    scores[unclear] = exact.scores
    return Guesses(pa.array(names, pa.string()), scores)


def _clear(text: str, wanted: str, single: bool) -> tuple[str, float] | None:
    """Language and rank of a page that is clearly in the language or clearly not; None: use langdetect."""
    from resiliparse.parse.lang import detect_fast

    if len(text) < CLEAR_CHARACTERS:
        return None
    answers: Any = detect_fast(text, cutoff=_NO_CUTOFF, n_results=2)
    (best, rank), (_, second) = answers
    if best == wanted:
        return (best, float(rank)) if single and second - rank >= CLEARLY_IN else None
    answer = detect_fast(text, cutoff=_NO_CUTOFF, langs=[wanted])
    return (best, float(rank)) if answer[1] - rank >= CLEARLY_OUT else None
