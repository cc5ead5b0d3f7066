"""Whether pages have enough sentences: the bounds never contradict Punkt, and the model is not pickled."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.sentences.counter import SentenceCounter

WORDS = [
    "word", "The", "he", "Dr.", "e.g.", "U.S.", "J.", "p.m.", "No.", "3.5", "7.", "end.", "End.", "inc.", "etc.", "j.",
    "stop!", "why?", "so...", ". . .", '"Yes."', "(Fast.)", "“Oh.”", "’", "well-known.", "u.s.", "--", "?!", "a.",
    "in.", "\xa0", "\t", "  ", "é.", "x.y", "-", ",", "#7.", "@me.", "[1].", "«", "st.", "s.",
]  # fmt: skip
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)


@given(st.lists(st.lists(LINES, min_size=1, max_size=2), min_size=1, max_size=6), st.integers(1, 5))
def test_bounds_agree_with_punkt(nltk_punkt: Any, pages: list[list[str]], needed: int) -> None:
    model = nltk_punkt
    # Kept lines always count one sentence at least; a line of white space only would not.
    pages = [[line + " go on" for line in page] for page in pages]
    lines = pa.array([line for page in pages for line in page])
    offsets = np.concatenate([[0], np.cumsum([len(page) for page in pages])])
    expected = [sum(len(model.tokenize(line)) for line in page) >= needed for page in pages]
    assert SentenceCounter("punkt").enough(lines, offsets, needed).tolist() == expected


def test_most_real_lines_need_no_punkt(nltk_punkt: Any, shared_data: Path) -> None:
    text = (shared_data / "text_en/botchan.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.count(". ") > 1][:300]
    model, counter = nltk_punkt, SentenceCounter("punkt")
    expected = [len(model.tokenize(line)) >= 3 for line in lines]
    assert counter.enough(pa.array(lines), np.arange(len(lines) + 1), 3).tolist() == expected


def test_builtin_counts_without_a_model() -> None:
    counter = SentenceCounter("builtin")
    counter.check()
    lines = pa.array(["One. Two.", "Three", "Alone. Still."])
    assert counter.enough(lines, np.array([0, 2, 3]), 3).tolist() == [True, False]
    assert counter.identity() == "builtin"


def test_a_pickled_counter_is_small(punkt: Path) -> None:
    counter = SentenceCounter("punkt")
    counter.check()
    assert counter.identity().startswith("punkt ")
    assert len(pickle.dumps(counter)) < 200
