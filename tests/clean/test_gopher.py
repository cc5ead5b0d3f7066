"""The step of Gopher's rules against the plain reading of the paper, on any text and with any limits."""

from __future__ import annotations

import dataclasses
import pickle
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.gopher import REASONS, GopherRules, GopherStep
from corpusforge.clean.packs import load_pack
from tests.oracles.gopher import first_broken

PACKS = ("gopher", "gopher-datatrove")
WORDS = [
    "the", "The", "THE", "of", "and", "with", "that,", "a", "b", "cc", "dog", "house", "12", "3.5", "#", "##", "#tag",
    "...", "....", "......", "…", "wait…", "-", "•", "*", "--", "!", "é", "中文", "一", "²", "e\u0301", "ß",
    "internationalisation", "\U0001f600", "\x00", "\u0660", "ª",
]  # fmt: skip
BREAKS = [" ", " ", " ", " ", "\n", "\n", "\n\n", "\n\n\n", "\r\n", "\t", "\u3000", "\x85", "\u2028", " \n "]
PLAIN = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(BREAKS)), max_size=40).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)
REPETITIVE = st.tuples(
    st.lists(st.sampled_from(WORDS[:12]), min_size=1, max_size=4), st.randoms(use_true_random=False)
).map(lambda drawn: "".join(drawn[1].choice(drawn[0]) + drawn[1].choice(BREAKS) for _ in range(60)))
COPIES = st.tuples(PLAIN, PLAIN, st.integers(1, 4)).map(lambda drawn: drawn[0] + drawn[1] * drawn[2])
TEXTS = st.one_of(PLAIN, REPETITIVE, COPIES, st.text(st.characters(exclude_categories=["Cs"]), max_size=60))


def pack(name: str = "gopher") -> GopherRules:
    loaded = load_pack(name)
    assert isinstance(loaded, GopherRules)
    return loaded


def reasons_of(rules: GopherRules, batch: pa.RecordBatch) -> list[str]:
    verdict = GopherStep(rules).apply(batch)
    assert verdict.reasons == REASONS and verdict.texts is not None and verdict.lines is None
    assert sorted(verdict.details) == [n for n, code in enumerate(verdict.codes.tolist()) if code]
    return [REASONS[code] for code in verdict.codes.tolist()]


def with_limits(rules: GopherRules, draw: Any) -> GopherRules:
    """The pack with most limits off and the others drawn, so that every rule is tested."""
    changes: dict[str, Any] = {}
    for name, kind in rules.rules().items():
        if name.startswith(("min_", "max_")):
            if kind == "int":
                changes[name] = draw(st.sampled_from([0, 0, 2, 5]))
            else:
                top = 8 if "mean" in name else 1
                changes[name] = draw(st.sampled_from([0, 0, 0, 0.1, 0.25, 0.5])) * top
    return dataclasses.replace(rules, **changes)


@given(st.lists(TEXTS, max_size=4), st.sampled_from(PACKS), st.data())
def test_any_text_and_limits_as_the_oracle(
    documents_of: Callable[..., pa.RecordBatch], texts: list[str], name: str, data: st.DataObject
) -> None:
    rules = with_limits(pack(name), data.draw)
    assert reasons_of(rules, documents_of(texts)) == [first_broken(text, rules) for text in texts]


@given(TEXTS, st.sampled_from(PACKS), st.data())
@example("a b c d e f a b c d e f a b c d e", "gopher", None)
def test_any_single_rule_as_the_oracle(
    documents_of: Callable[..., pa.RecordBatch], text: str, name: str, data: st.DataObject | None
) -> None:
    whole = pack(name)
    limits = [key for key in whole.rules() if key.startswith(("min_", "max_"))]
    for key in limits if data is None else [data.draw(st.sampled_from(limits))]:
        off = {other: 0 for other in limits if other != key}
        rules = dataclasses.replace(whole, **off)
        assert reasons_of(rules, documents_of([text])) == [first_broken(text, rules)]


@pytest.mark.parametrize("name", PACKS)
def test_pages_like_those_of_the_web(documents_of: Callable[..., pa.RecordBatch], name: str) -> None:
    """Long pages of a small vocabulary, with planted copies of lines and paragraphs, and the packs as they are."""
    chance = random.Random(5)
    words = ["the", "of", "with", "and", *(f"word{n}" for n in range(300)), "#", "…", "-", "7"]
    texts = []
    for _ in range(300):
        vocabulary = chance.sample(words, chance.choice([5, 40, 200, len(words)]))
        lines = [" ".join(chance.choices(vocabulary, k=chance.randint(1, 30))) for _ in range(chance.randint(1, 12))]
        lines += chance.choices(lines, k=chance.choice([0, 0, 1, 5]))
        texts.append(chance.choice(["\n", "\n\n"]).join(lines))
    found = reasons_of(pack(name), documents_of(texts))
    assert found == [first_broken(text, pack(name)) for text in texts]
    assert len(set(found)) > 6


@pytest.mark.parametrize("name", PACKS)
def test_batches_and_pickles_change_nothing(documents_of: Callable[..., pa.RecordBatch], name: str) -> None:
    texts = ["the one of " * n + "\n" * (n % 3) for n in range(40)]
    batch = documents_of(texts)
    step = pickle.loads(pickle.dumps(GopherStep(pack(name))))
    whole = step.apply(batch)
    parts = [step.apply(batch.slice(n, 1)) for n in range(len(texts))]
    assert whole.codes.tolist() == [part.codes[0] for part in parts]
    assert list(whole.details.values()) == [part.details[0] for part in parts if part.details]
    assert step.resources() == {"pack": pack(name).values()} and step.name == name


def test_details_are_what_was_measured(documents_of: Callable[..., pa.RecordBatch]) -> None:
    common = " ".join(f"word{n} of the" for n in range(40))
    texts = {
        "the few words of a page": "words 6 < 50",
        " ".join(f"the of word{n}" for n in range(20)) + " hey ho" * 30: "top 2-gram 0.500 > 0.2",
        f"{common}\n{common}\n{common}": "duplicate lines 0.667 > 0.3",
        f"{common} " + "# " * 20: "hash marks a word 0.143 > 0.1",
    }
    verdict = GopherStep(pack()).apply(documents_of(list(texts)))
    found = [verdict.details.get(n, "") for n in range(len(texts))]
    assert found == ["words 6 < 50", found[1], "duplicate lines 0.667 > 0.3", "hash marks a word 0.143 > 0.1"]
    assert found[1].startswith("top 2-gram 0.") and found[1].endswith(" > 0.2")


def test_a_million_equal_words_stay_linear(documents_of: Callable[..., pa.RecordBatch]) -> None:
    off = {key: 0 for key in pack().rules() if key.startswith(("min_", "max_")) and "duplicate" not in key}
    rules = dataclasses.replace(pack("gopher-datatrove"), **off)
    verdict = GopherStep(rules).apply(documents_of(["word " * 300_000, "", "one two"]))
    assert [REASONS[code] for code in verdict.codes.tolist()] == ["page:duplicate-5-grams", "kept", "kept"]


def test_a_pack_names_single_characters(tmp_path: Any) -> None:
    from corpusforge.bundled import bundled

    text = (bundled("rules") / "gopher.toml").read_text("utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("[uncounted_characters]\nvalue = []", '[uncounted_characters]\nvalue = ["ab"]'))
    with pytest.raises(errors.RecipeInvalid, match=r"uncounted_characters has 'ab'; give single characters|'ab'"):
        load_pack(str(path))
