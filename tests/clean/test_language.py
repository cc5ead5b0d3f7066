"""Languages: exact C4 decisions, independent of earlier texts; fast ones; and both in a cascade."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors
from corpusforge.clean.language import DETECTORS, Guesses, LanguageStep, check_language, guess_languages, libraries_of
from tests.clean.texts_in_languages import SENTENCES, pages_of
from tests.oracles import langdetect_package as package

TEXTS = [SENTENCES["en"], SENTENCES["de"], SENTENCES["zh"], "la la la no no no si si si", "12345 67890", ""]


def test_a_guess_depends_on_its_text_alone() -> None:
    for detector in DETECTORS:
        forwards = guess_languages(pa.array(TEXTS), detector)
        backwards = guess_languages(pa.array(TEXTS[::-1] + TEXTS[:1] * 3), detector)
        assert forwards.languages.to_pylist() == backwards.languages.to_pylist()[5::-1]
        assert forwards.scores.tolist() == backwards.scores.tolist()[5::-1]


def test_guesses_are_those_of_the_library_with_seed_0() -> None:
    guesses = guess_languages(pa.array(TEXTS), "langdetect")
    found = list(zip(guesses.languages.to_pylist(), guesses.scores.tolist(), strict=True))
    if package.ADDS_FROM_THE_LEFT:
        assert found == [package.best(text) for text in TEXTS]
    assert [name and name[:2] for name, _ in found] == ["en", "de", "zh", found[3][0], None, None]


def test_the_probability_applies_to_langdetect_only() -> None:
    guesses = Guesses(pa.array(["zh-cn", "zh-cn", None, "en", "nl"]), np.array([0.995, 0.98, 0.0, 700.0, 0.871]))
    assert guesses.are("zh", 0.99).tolist() == [True, False, False, False, False]
    assert guesses.are("zh-cn", 0.5).tolist() == [True, True, False, False, False]
    assert guesses.are("en", 0.99).tolist() == [False, False, False, True, False]
    assert [guesses.detail(n) for n in range(1, 5)] == ["zh-cn 0.98", "no answer", "en 700", "nl 0.87"]


@pytest.mark.parametrize("detector", DETECTORS)
def test_unknown_languages_are_refused(detector: str) -> None:
    check_language("en", detector)
    check_language("zh", detector)
    with pytest.raises(errors.RecipeInvalid, match="knows no 'klingon'"):
        check_language("klingon", detector)


def test_the_cascade_needs_a_language_that_both_know() -> None:
    check_language("zh-cn", "langdetect")
    check_language("is", "fast")
    for language in ("zh-cn", "is"):
        with pytest.raises(errors.RecipeInvalid, match=f"cascade knows no '{language}'"):
            check_language(language, "cascade")
    assert [library.split()[0] for library in libraries_of("cascade").split(", ")] == ["resiliparse", "langdetect"]


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_step_keeps_one_language(documents_of: Callable[..., pa.RecordBatch], detector: str) -> None:
    texts = [" ".join([SENTENCES[name]] * 4) for name in ("en", "ru", "fr", "th")] + ["", "12"]
    verdict = LanguageStep("fr", detector).apply(documents_of(texts))
    assert verdict.codes.tolist() == [1, 1, 0, 1, 1, 1]
    assert sorted(verdict.details) == [0, 1, 3, 4, 5]
    assert verdict.details[0].startswith("en ")
    assert detector == "fast" or verdict.details[5] == "no answer"
    assert verdict.language is not None and set(verdict.language.to_pylist()) == {"fr"}


@pytest.mark.slow
def test_the_cascade_is_near_the_exact_answer(shared_data: Path) -> None:
    """Where it trusts resiliparse it nearly always agrees with langdetect; elsewhere it is langdetect."""
    texts = pa.array(pages_of(shared_data, 2_000))
    for wanted in ("en", "zh"):
        exact, cascade = (guess_languages(texts, detector, wanted) for detector in ("langdetect", "cascade"))
        trusted = cascade.scores > 1
        assert trusted.mean() > 0.3
        same = np.asarray(exact.languages.to_pylist(), object) == np.asarray(cascade.languages.to_pylist(), object)
        assert (same | trusted).all()
        assert (exact.scores == cascade.scores)[~trusted].all()
        assert (exact.are(wanted, 0.99) != cascade.are(wanted, 0.99)).mean() <= 0.003
