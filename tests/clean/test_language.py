"""Languages: exact C4 decisions, whatever was looked at before."""

from __future__ import annotations

import pyarrow as pa
import pytest

from corpusforge import errors
from corpusforge.clean.language import Guess, check_language, guess_languages, is_language

TEXTS = [
    "The weather was fine on the day that we walked along the river to the old mill.",
    "Das Wetter war schön an dem Tag, an dem wir am Fluss entlang zur alten Mühle gingen.",
    "我们沿着河走到旧磨坊的那天天气很好。大家都很高兴，说说笑笑。",
    "la la la no no no si si si",
    "12345 67890",
    "",
]


def test_a_guess_depends_on_its_text_alone() -> None:
    forwards = guess_languages(pa.array(TEXTS), "langdetect")
    backwards = guess_languages(pa.array(TEXTS[::-1] + TEXTS[:1] * 3), "langdetect")
    assert forwards == backwards[: len(TEXTS)][::-1]
    assert [g.code for g in forwards[:3]] == ["en", "de", "zh"]
    assert forwards[4] == forwards[5] == Guess(None, 0.0)


def test_guesses_are_those_of_the_library_with_seed_0() -> None:
    import langdetect

    langdetect.DetectorFactory.seed = 0
    for text, guess in zip(TEXTS[:4], guess_languages(pa.array(TEXTS[:4]), "langdetect"), strict=True):
        best = langdetect.detect_langs(text)[0]
        assert (best.lang, pytest.approx(best.prob, rel=1e-9)) == guess


def test_probability_binds_langdetect_only() -> None:
    assert is_language(Guess("zh-cn", 0.995), "zh", "langdetect", 0.99)
    assert not is_language(Guess("zh-cn", 0.98), "zh", "langdetect", 0.99)
    assert not is_language(Guess(None, 0.0), "zh", "langdetect", 0.0)
    assert is_language(Guess("en", 700.0), "en", "fast", 0.99)
    assert [Guess("nl", 0.871).detail, Guess("nl", 700.0).detail, Guess(None, 0.0).detail] == [
        "nl 0.87",
        "nl 700",
        "no answer",
    ]


@pytest.mark.parametrize("detector", ["langdetect", "fast"])
def test_languages_no_detector_answers_are_refused(detector: str) -> None:
    check_language("en", detector)
    check_language("zh", detector)
    with pytest.raises(errors.RecipeInvalid, match="knows no 'klingon'"):
        check_language("klingon", detector)
