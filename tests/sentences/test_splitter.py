"""Sentences of the built-in splitter against a slow one, on any Unicode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.sentences.splitter import ABBREVIATIONS, TITLES, sentence_spans
from corpusforge.text import Spans
from tests.oracles.sentences import sentences
from tests.texts import TEXTS, sliced


def of_documents(spans: Spans) -> list[list[str]]:
    texts = [bytes(spans.data[a:b]).decode() for a, b in zip(spans.starts, spans.stops, strict=True)]
    return [texts[a:b] for a, b in zip(spans.offsets[:-1], spans.offsets[1:], strict=True)]


@given(st.lists(TEXTS, max_size=5))
@example(["a.", ".B", "! C"])
@example(["x" + "." + " " * 64 + "y", "x." + "\u3000" * 22 + "y", "x." + "\u3000" * 21 + "y"])
def test_sentences_are_those_of_the_oracle(texts: list[str]) -> None:
    assert of_documents(sentence_spans(sliced(texts))) == [sentences(t) for t in texts]


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_spans_keep_their_contract(texts: list[str]) -> None:
    column = sliced(texts)
    spans = sentence_spans(column)
    assert spans.bases.tolist() == [int(b) for b in np.cumsum([10, *(len(t.encode()) for t in texts[:-1])])]
    assert (spans.starts < spans.stops).all()
    assert (spans.starts[1:] >= spans.stops[:-1]).all()
    for text, own in zip(texts, of_documents(spans), strict=True):
        assert all(s == s.strip() for s in own)
        assert "".join("".join(own).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. Smith met Dr. Jones. They spoke.", ["Mr. Smith met Dr. Jones.", "They spoke."]),
        ("It fell 3.5 % in the U.S. T. R. Roe wrote. It", ["It fell 3.5 % in the U.S. T. R. Roe wrote.", "It"]),
        ("He left the U.S. In May", ["He left the U.S.", "In May"]),
        ("Noble Energy Inc. (NBL) met Apple Inc. But no", ["Noble Energy Inc. (NBL) met Apple Inc.", "But no"]),
        ("On Dec. 2 J. B. É. Smith won’t. Ann did.", ["On Dec. 2 J. B. É. Smith won’t.", "Ann did."]),
        ("See No. 5 and Fig. 2. The answer: no. We left.", ["See No. 5 and Fig. 2.", "The answer: no.", "We left."]),
        ("Well... Nothing. e.g. This", ["Well... Nothing. e.g.", "This"]),
        ("I sleep.... But not now… Here. . . . Or there", ["I sleep....", "But not now…", "Here. . . .", "Or there"]),
        ('"Stop!" He ran. (Fast.) Then "Why?" she asked.', ['"Stop!"', "He ran.", "(Fast.)", 'Then "Why?" she asked.']),
        ("1. Open it. 2. Close\na. The lid", ["1. Open it.", "2.", "Close", "a. The lid"]),
        ("mr. smith, inc. said. it went on! no more", ["mr. smith, inc. said.", "it went on!", "no more"]),
        ("Yahoo! is a firm. école", ["Yahoo! is a firm. école"]),
        ("It rained.[12][n 7] Then [so] it did.[4]", ["It rained.[12][n 7]", "Then [so] it did.[4]"]),
        ("It ended. - He left. “And then?” – Nothing.", ["It ended.", "- He left.", "“And then?”", "– Nothing."]),
        ("他说：“你好。”她走了！真的？！好", ["他说：“你好。”", "她走了！", "真的？！", "好"]),
        ("我不知道……也许吧!好", ["我不知道……", "也许吧!", "好"]),
        ("wait…what? Yes", ["wait…what?", "Yes"]),
        ("one line\nanother", ["one line", "another"]),
    ],
)  # fmt: skip
def test_sentences_of_known_text(text: str, expected: list[str]) -> None:
    assert of_documents(sentence_spans(pa.array([text]))) == [expected]


def test_empty_columns_have_no_sentences() -> None:
    for column in (pa.array([], pa.string()), pa.array(["", " \n\u3000"]), pa.array(["x"]).slice(1)):
        assert len(sentence_spans(column).starts) == 0


def test_most_abbreviations_are_punkts_own(shared_data: Path) -> None:
    learned = (shared_data / "nltk_data/tokenizers/punkt_tab/english/abbrev_types.txt").read_text().split()
    for words in (TITLES.split(), ABBREVIATIONS.split()):
        assert len(set(words) & set(learned)) > len(words) / 2
