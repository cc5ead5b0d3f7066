"""The step of FineWeb's rules against the plain reading of them, on any text and with any limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.fineweb import REASONS, FinewebRules, FinewebStep
from corpusforge.clean.packs import load_pack
from tests.oracles.fineweb import first_broken

LINES = [
    "", " ", "\u3000", "\x85", "Home", "About us", "A line that ends well.", "这是一句话。", "这是一句话", "Really?",
    "One more line of more than thirty characters", "x" * 30, "é" * 30, "x" * 31, "ends in a space. ", "quote.\"", "\r",
    "។", "A line that ends well.\r", "word " * 20 + "!", "\U0001f600",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=12).map("\n".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
)


@pytest.fixture(scope="module")
def fineweb() -> FinewebRules:
    loaded = load_pack("fineweb")
    assert isinstance(loaded, FinewebRules)
    return loaded


@given(st.lists(TEXTS, max_size=5), st.data())
def test_any_text_and_limits_as_the_oracle(
    documents_of: Callable[..., pa.RecordBatch], fineweb: FinewebRules, texts: list[str], data: st.DataObject
) -> None:
    off = {name: 0 for name in fineweb.rules() if name.startswith(("min_", "max_")) and data.draw(st.booleans())}
    rules = dataclasses.replace(fineweb, **off)
    verdict = FinewebStep(rules).apply(documents_of(texts))
    assert [REASONS[code] for code in verdict.codes.tolist()] == [first_broken(text, rules) for text in texts]


def test_details_and_resources(documents_of: Callable[..., pa.RecordBatch], fineweb: FinewebRules) -> None:
    texts = ["\n \n", "Home\nAbout\nNews", "Home.\nAbout.\nA line of more than thirty characters.", "Good line." * 9]
    texts.append("\n".join(["A line of more than thirty characters stands here twice."] * 2))
    texts.append("\n".join(f"A_line_of_more_than_thirty_characters_of_one_word_{n}." for n in range(5)))
    step = FinewebStep(fineweb)
    verdict = step.apply(documents_of(texts))
    assert [REASONS[code] for code in verdict.codes.tolist()] == [
        "page:no-lines",
        "page:few-line-ends",
        "kept",
        "kept",
        "page:duplicate-line-characters",
        "page:list",
    ]
    assert verdict.details == {
        1: "lines with an end mark 0.000 < 0.12",
        4: "characters in duplicate lines 0.500 > 0.01",
        5: "line breaks a word 0.800 > 0.3",
    }
    assert (step.name, step.resources()) == ("fineweb", {"pack": fineweb.values()})


def test_a_rule_about_ends_needs_ends(fineweb: FinewebRules) -> None:
    with pytest.raises(errors.RecipeInvalid, match="end_characters is empty"):
        dataclasses.replace(fineweb, end_characters=()).check("mine.toml")
