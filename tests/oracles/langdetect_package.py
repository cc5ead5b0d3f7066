"""langdetect itself, a new detector with seed 0 for every text, profiles in the order of their names."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import langdetect
from langdetect.lang_detect_exception import LangDetectException

ADDS_FROM_THE_LEFT = sys.version_info < (3, 12)
"""From Python 3.12 on `sum` rounds better, and the package's last bits differ."""


@cache
def factory() -> Any:
    """The package's factory with seed 0."""
    folder = Path(langdetect.PROFILES_DIRECTORY)
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    made = langdetect.DetectorFactory()
    made.load_json_profile([path.read_text("utf-8") for path in files])
    made.set_seed(0)
    return made


def probabilities(text: str) -> list[float]:
    """The package's probability of every language; zeros if it raises."""
    detector = factory().create()
    detector.append(text)
    try:
        detector.get_probabilities()
    except LangDetectException:
        return [0.0] * len(factory().langlist)
    found: list[float] = detector.langprob
    return found


def best(text: str) -> tuple[str | None, float]:
    """The first of the package's answers, as C4 reads it; None if it raises or has no answer."""
    detector = factory().create()
    try:
        detector.append(text)
        answers = detector.get_probabilities()
    except LangDetectException:
        return None, 0.0
    return (answers[0].lang, answers[0].prob) if answers else (None, 0.0)
